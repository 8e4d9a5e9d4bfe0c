#pragma once
// From records to rows: decode, transform, cast. One plan for all targets, so that a record is read
// once.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/batch.h"
#include "core/cast.h"
#include "core/pipeline.h"
#include "core/ports.h"

namespace flow {

// What one target gets: its columns, and from which natural cell each is cast.
struct TargetPlan {
  std::string label;
  Mode mode = Mode::append;
  bool tombstones_pass = false;  // a record without value goes on as it is (Kafka, passthrough)
  OnTombstone on_tombstone = OnTombstone::fail;
  std::vector<Caster> casts;
  std::vector<std::size_t> natural;     // casts[i] takes natural cell natural[i]
  std::vector<std::size_t> key;         // indexes into casts
  std::vector<char> required_not_null;  // per cast: the column refuses null
  Columns columns() const;
};

// Threads: the reading thread. Errors: make() finds columns that do not fit before the first read;
// map() puts what cannot be mapped into batch.failures, and with OnError::fail keeps only what
// stands before the first.
class Mapper {
 public:
  static Result<Mapper> make(const Pipeline& pipeline, const std::vector<TargetSchema>& schemas,
                             std::unique_ptr<Decoder> decoder,
                             std::vector<std::unique_ptr<RowTransform>> transforms);

  const std::vector<TargetPlan>& plans() const { return plans_; }
  // Fills batch.rows, .filtered, .failures; sorts and collapses the rows of merge targets.
  void map(Batch& batch);
  // Instead of map(): every record fails for every target, for this failure.
  void refuse(Batch& batch, const Failure& failure, std::int64_t attempts);
  // Again after records were abandoned.
  void order(Batch& batch) const;

 private:
  explicit Mapper(const Pipeline& pipeline) : pipeline_(&pipeline) {}
  Result<void> plan_fields(const std::vector<TargetSchema>& schemas);
  Result<void> plan_named(TargetPlan& plan, const TargetSchema& schema) const;
  Result<void> plan_target(std::size_t t, const TargetSchema& schema);
  bool natural_row(Batch& batch, std::uint32_t record, Value* cells, Failure& failure);
  bool at_cell(const Batch& batch, const Record& record, std::size_t f, Value& cell,
               Failure& failure);
  static Value constant(const FieldSource& field);
  void select_columns(const std::vector<std::string>& have, const std::vector<std::string>& want);
  void to_targets(Batch& batch, std::uint32_t record, const Value* cells);
  void tombstone(Batch& batch, std::uint32_t record);
  bool erase_row(Batch& batch, const TargetPlan& plan, RowSet& set, std::uint32_t record,
                 Failure& failure);
  bool cast_row(const TargetPlan& plan, const Value* cells, Value* out, Arena& arena,
                Failure& failure) const;
  void fail(Batch& batch, std::uint32_t record, std::size_t target, Stage stage, Failure failure);
  void fail_everywhere(Batch& batch, std::uint32_t record, Stage stage, const Failure& failure);
  void run_transforms(Batch& batch);
  void begin(Batch& batch) const;
  void keep_to_policy(Batch& batch) const;
  void transform_piece(Batch& batch, std::uint32_t first, std::uint32_t end);

  const Pipeline* pipeline_;
  std::unique_ptr<Decoder> decoder_;
  std::vector<std::unique_ptr<RowTransform>> transforms_;
  std::vector<FieldSource> fields_;             // natural cells of a record
  std::vector<const ColumnSpec*> field_specs_;  // per field, null without a spec
  std::vector<std::string> names_;              // natural columns after the transforms
  std::vector<TargetPlan> plans_;
  std::vector<Value> cells_;      // one record's natural cells
  std::vector<char> fates_;       // of the records of one piece, with transforms
  RowSet natural_, transformed_;  // with transforms only
  bool decode_ = true;            // raw records without path fields need none
};

}  // namespace flow
