#include "connectors/registry.h"

namespace flow {

namespace {

// Records as they are: a value has no fields, so columns come from @-sources and $ alone.
class RawDecoder final : public Decoder {
 public:
  Result<void> bind(const std::vector<FieldSource>& fields) override {
    for (const FieldSource& field : fields) {
      if (field.from != FieldSource::From::path) continue;
      Failure failure;
      failure.cls = FailureClass::setup;
      failure.where = "format: raw";
      failure.what = "there is no field " + field.text + " in a raw record";
      failure.hint =
          "take columns from $ (the whole value), @key, @topic, @partition, @offset, @timestamp or "
          "@headers.NAME, or set format: json";
      return failure;
    }
    return {};
  }

  bool decode(const Record&, Arena&, Value*, Failure&) override { return true; }
};

}  // namespace

std::unique_ptr<Decoder> make_raw_decoder() { return std::make_unique<RawDecoder>(); }

}  // namespace flow
