#pragma once
// Rows and records as the lines of a file: what the file and stdout targets write.
#include <string>

#include "core/batch.h"
#include "core/column.h"
#include "core/pipeline.h"

namespace flow::files {

// Makes lines of a batch's rows. Without a plan the records' own bytes are the lines. Shape: the
// header line (CSV) is the plan's, or that of the CSV records. Errors: class invalid, naming the
// record that cannot be a line.
class LineWriter {
 public:
  LineWriter(const Pipeline& pipeline, const TargetSpec& spec)
      : format_(spec.format), input_(pipeline.format), label_(spec.label) {}

  Result<void> plan(const Columns& columns);
  // The header that the output begins with, without line end; empty: none, or not known before the
  // first record.
  const std::string& header() const { return header_; }
  void set_header(std::string header) { header_ = std::move(header); }

  enum class Start : std::uint8_t {
    empty,
    filled
  };  // whether the output already begins with its header
  // Replaces `out` by the lines of rows.order.
  Result<void> write(const Batch& batch, const RowSet& rows, Start start, std::string& out);

 private:
  Result<void> add_record(const Batch& batch, std::uint32_t record, std::string& out);
  Result<void> take_header(const Batch& batch, const RowSet& rows);

  OutputFormat format_;
  FormatKind input_;
  std::string label_;
  Columns columns_;
  std::string header_;
};

}  // namespace flow::files
