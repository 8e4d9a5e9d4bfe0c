#pragma once
// The few interfaces between the loop and the world. Implemented in connectors/ and state/; each
// has an in-memory twin in tests/ and a conformance suite. No vendor header here.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/batch.h"
#include "core/column.h"
#include "core/dead_letter.h"
#include "core/pipeline.h"
#include "core/result.h"
#include "core/types.h"

namespace flow {

// ---- log
// -------------------------------------------------------------------------------------------

enum class Level : std::uint8_t { debug, info, warn, error };
using Fields = std::vector<std::pair<std::string_view, std::string>>;

// One event a line: `noun.verb key=value`. Never a payload or a secret. Threads: any.
class Log {
 public:
  virtual ~Log() = default;
  virtual void event(Level level, std::string_view noun_verb, const Fields& fields = {}) = 0;
};

// ---- source
// ----------------------------------------------------------------------------------------

// What a reading source asks the loop. Threads: called by the reading thread.
class ReadControl {
 public:
  virtual ~ReadControl() = default;
  virtual bool stopping() const = 0;  // a signal, a limit or a failure: return what you have
  virtual bool writer_idle()
      const = 0;  // the targets wait: hand over a part batch rather than fill it
};

// more: the batch may hold records or span advances (or nothing yet). end: a bounded source is
// finished; the batch holds its last records.
enum class ReadOutcome : std::uint8_t { more, end };

enum class Release : std::uint8_t { revoked, lost };

// What a source tells the loop when partitions come and go. Called on the reading thread, inside
// read() or keep_alive(). released() returns when nothing of these partitions is being written or
// ever will be, and, for revoked, what was durable is committed; the source then drops them from
// the batch it is filling.
class PartitionListener {
 public:
  virtual ~PartitionListener() = default;
  virtual void assigned(const std::vector<PartitionId>& partitions) = 0;
  virtual void released(const std::vector<PartitionId>& partitions, Release how) = 0;
};

// What is known of the distance to the end. Unknown parts are nullopt rather than a guess.
struct SourceProgress {
  std::optional<std::uint64_t> total;  // records or bytes (files) there when last asked
  std::optional<std::uint64_t> done;   // of the same unit
  std::optional<std::uint64_t> lag;    // records to read (Kafka)
  std::string_view unit = "records";
  std::string waiting_for;  // "topic orders to exist", empty when reading
};

// Reads records. Owner: the loop. Threads: read, keep_alive, close by the reading thread; progress
// by any. Errors: transient ones are handled inside (log and go on); a Failure returned ends the
// run.
class Source {
 public:
  virtual ~Source() = default;
  // Connects, checks that topics or files exist; before the first read.
  virtual Result<void> open(PartitionListener& listener) = 0;
  // Appends to `batch` until a limit is reached, or (with something in hand) the source has nothing
  // right now and the writer is idle, or limits.wait has passed since the batch's first record.
  // Returns within about 100 ms when there is nothing to read.
  virtual Result<ReadOutcome> read(Batch& batch, const BatchLimits& limits,
                                   ReadControl& control) = 0;
  // Called instead of read() while the loop has no free batch: keeps a group membership alive
  // without taking records. Returns within about 100 ms.
  virtual Result<void> keep_alive() = 0;
  virtual SourceProgress progress() const = 0;
  virtual void close() = 0;
};

// How far an output had got when a position was committed (file targets): opaque to the loop.
struct TargetMark {
  std::string target;  // label
  std::string mark;
};

// The position authority. Durable: commit() returns when a crash cannot undo it. Errors: transient
// ones are returned (the coordinator retries); spans of partitions that this process no longer owns
// are left out.
class PositionStore {
 public:
  virtual ~PositionStore() = default;
  virtual Result<Spans>
  load() = 0;  // known positions (from == next); Kafka: empty, the source asks the broker
  virtual Result<std::vector<TargetMark>> load_marks() = 0;
  // Marks are durable no later than the spans: in one transaction, or marks first.
  virtual Result<void> commit(const Spans& spans, const std::vector<TargetMark>& marks) = 0;
};

// ---- decode and transform
// --------------------------------------------------------------------------

// Takes fields out of a record's value. bind() once, decode() per record; natural values (JSON
// number tokens stay tokens). Threads: one. No allocation per record but from the arena.
class Decoder {
 public:
  virtual ~Decoder() = default;
  // fields[i] is what cells[i] gets; only FieldSource::From::path entries are bound here.
  virtual Result<void> bind(const std::vector<FieldSource>& fields) = 0;
  // Once per batch, before its decode() calls: for decoders that read record headers (CSV's header
  // line).
  virtual void begin(const Batch& batch) { (void)batch; }
  // False: the record does not decode; `failure` says why (class invalid). Missing fields are
  // Kind::missing.
  virtual bool decode(const Record& record, Arena& arena, Value* cells, Failure& failure) = 0;
};

// Rows to rows, before the casts to the targets' columns. in and out are natural values. Threads:
// one.
class RowTransform {
 public:
  virtual ~RowTransform() = default;
  virtual const std::vector<std::string>& inputs() const = 0;   // columns it reads
  virtual const std::vector<std::string>& outputs() const = 0;  // columns it gives
  // Adds rows to `out` (a record without a row was filtered) and failures for rows that cannot be
  // computed.
  virtual void apply(Batch& batch, const RowSet& in, RowSet& out,
                     std::vector<RecordFailure>& failures) = 0;
};

// ---- target
// ----------------------------------------------------------------------------------------

struct TargetSchema {
  bool passthrough = false;  // wants the records' own bytes when the pipeline has no columns or SQL
  bool fixed = false;        // the store defines the columns; else it takes what the pipeline gives
  Columns columns;           // of the table, when fixed
  std::vector<std::string> key;    // merge
  std::vector<std::string> notes;  // what prepare() created, for people
};

// Makes rows durable somewhere. Owner: the loop. Threads: all by the writing thread, cancel() by
// any.
class Target {
 public:
  virtual ~Target() = default;
  virtual const TargetSpec& spec() const = 0;
  // Connects, checks that what is needed exists (table, constraint, topic, rights); creates the
  // table when told. `columns`: what the pipeline will give, empty when it goes by the table. Read
  // only with `offline` checks off.
  virtual Result<TargetSchema> prepare(const std::vector<ColumnSpec>& columns) = 0;
  // `plan`: the columns, in cell order, that write() will get (empty: the records as they are).
  virtual Result<void> start(const Columns& plan, const std::optional<TargetMark>& mark) = 0;
  // Durable when it returns ok. With a Failure: class and effect say whether to try again. Writes
  // the rows of `rows.order` in that order; passthrough targets write batch.records.
  virtual Result<void> write(const Batch& batch, const RowSet& rows) = 0;
  // As write(), but rows that the target refuses are left out: it returns them (the record's index;
  // the target's is the caller's to know), and the rest is durable. `aside` is told of each, and
  // what it holds goes into the same transaction when keeps_letters(). The default tries again
  // without the row that write() names; targets that can tell many at once do better.
  virtual Result<std::vector<RecordFailure>> write_around(const Batch& batch, const RowSet& rows,
                                                          const Aside& aside);
  // True when the dead-letter table is in this target's own database, so that rows and letters are
  // one transaction.
  virtual bool keeps_letters() const { return false; }
  // After a write: how far the output has got; nullopt for targets that need none.
  virtual std::optional<std::string> mark() const { return std::nullopt; }
  // Makes a write that is under way end soon with a failure. noexcept, any thread.
  virtual void cancel() noexcept = 0;
  virtual void close() = 0;
};

}  // namespace flow
