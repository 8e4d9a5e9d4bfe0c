#pragma once
// Casts: natural values (as a record says them) to a column's type, exactly or not at all. The
// rules are the table "values" of flow-pipeline(5); each row of it has a test. No allocation but
// from the arena.
#include <string>
#include <string_view>

#include "core/batch.h"
#include "core/column.h"
#include "core/pipeline.h"
#include "core/value.h"

namespace flow {

// What one cell must become. zone: for times without zone ("" = such a time is refused).
struct CastRule {
  Column column;
  TimeUnit unit = TimeUnit::none;
  std::string zone;
};

// One column's cast, prepared once. cast() true: `cell` now holds a value of the column's type (or
// null). False: `reason` says why in words with the value's type and a short form of it, e.g. "text
// \"abc\" is not a number" (payload text is cut at 40 characters).
class Caster {
 public:
  explicit Caster(CastRule rule);
  bool cast(Value& cell, Arena& arena, std::string& reason) const;
  const Column& column() const { return rule_.column; }

 private:
  CastRule rule_;
  int zone_minutes_ = 0;      // fixed offset
  const void* tz_ = nullptr;  // IANA zone, owned by a process-wide table
};

}  // namespace flow
