#include "cli/print_target.h"

#include <iostream>

#include "core/row_json.h"

namespace flow {

namespace {

class PrintTarget final : public Target {
 public:
  PrintTarget(const TargetSpec& spec, bool name_the_target)
      : spec_(spec), named_(name_the_target) {}

  const TargetSpec& spec() const override { return spec_; }
  Result<TargetSchema> prepare(const std::vector<ColumnSpec>&) override { return TargetSchema{}; }
  Result<void> start(const Columns& plan, const std::optional<TargetMark>&) override {
    plan_ = plan;
    return {};
  }

  Result<void> write(const Batch& batch, const RowSet& rows) override {
    std::string out;
    for (const std::uint32_t r : rows.order) {
      if (named_) {
        out += "{\"target\":";
        append_json_string(out, spec_.label);
        out += ",\"row\":";
      }
      append_row(out, batch, rows, r);
      out += named_ ? "}\n" : "\n";
    }
    std::cout << out << std::flush;
    if (std::cout) return {};
    return Failure{.cls = FailureClass::setup,
                   .where = "stdout",
                   .what = "cannot be written",
                   .hint = "the reader of the pipe has gone",
                   .exit = ExitCode::io};
  }
  void cancel() noexcept override {}
  void close() override {}

 private:
  void append_row(std::string& out, const Batch& batch, const RowSet& rows, std::uint32_t r) const {
    if (!plan_.empty()) {
      append_json_row(out, plan_, rows.row(r));
      return;
    }
    const Record& record = batch.records[rows.record[r]];
    if (record.value.data() == nullptr) {
      out += "null";
    } else {
      out += record.value;
    }
  }

  const TargetSpec& spec_;
  bool named_;
  Columns plan_;
};

}  // namespace

std::unique_ptr<Target> make_print_target(const TargetSpec& spec, bool name_the_target) {
  return std::make_unique<PrintTarget>(spec, name_the_target);
}

}  // namespace flow
