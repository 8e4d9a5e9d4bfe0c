#pragma once
// Casts: natural values (as a record says them) to a column's type, exactly or not at all. The
// rules are the table "values" of flow-pipeline(5), which core/value_rules.h holds; each row of it
// has a test.
#include <memory>
#include <string>
#include <string_view>

#include "core/batch.h"
#include "core/column.h"
#include "core/pipeline.h"
#include "core/value.h"

namespace flow {

class Zone;

// What one cell must become. zone: for times without zone ("" = such a time is refused).
struct CastRule {
  Column column;
  TimeUnit unit = TimeUnit::none;
  std::string zone;
};

// One column's cast, prepared once. cast() true: `cell` now holds a value of the column's type (or
// null, or missing). False: `reason` says why in words with the value's type and a short form of
// it, e.g. "text \"abc\" is not a number" (payload text is cut at 40 characters). A rule whose zone
// does not exist refuses every time that needs it. No allocation but from the arena. Threads: any.
class Caster {
 public:
  explicit Caster(CastRule rule);
  bool cast(Value& cell, Arena& arena, std::string& reason) const;
  const Column& column() const { return rule_.column; }

 private:
  bool cast_integer(Value& cell, std::string& reason) const;
  bool cast_float(Value& cell, Arena& arena, std::string& reason) const;
  bool cast_decimal(Value& cell, Arena& arena, std::string& reason) const;
  bool cast_text(Value& cell, Arena& arena, std::string& reason) const;
  bool cast_json(Value& cell, Arena& arena, std::string& reason) const;
  bool cast_uuid(Value& cell, Arena& arena, std::string& reason) const;
  bool cast_date(Value& cell, std::string& reason) const;
  bool cast_time(Value& cell, std::string& reason) const;
  bool cast_epoch(Value& cell, std::string_view number, std::string& reason) const;
  bool cast_written_time(Value& cell, std::string& reason) const;
  bool place(Value& cell, std::int64_t us, bool is_instant, std::string& reason) const;
  std::string type_text() const;

  CastRule rule_;
  std::shared_ptr<const Zone> zone_;
};

}  // namespace flow
