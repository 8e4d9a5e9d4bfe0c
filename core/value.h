#pragma once
// One cell of a row: 16 bytes, borrowing its text from the batch's arena. No allocation per record.
#include <cstdint>
#include <string_view>

namespace flow {

// What the cell holds. missing: the record has no such field; null: it says null.
//   boolean, int64        i
//   float64               d
//   decimal               text: a JSON number token ("1.10"), exact, never through a double
//   text                  UTF-8 without lone surrogates; may hold U+0000
//   json                  text of one JSON value, as it stood in the record
//   bytes                 raw
//   date                  i: days since 1970-01-01
//   timestamp             i: microseconds since 1970-01-01, no zone (a wall clock)
//   timestamptz           i: microseconds since the Unix epoch (an instant)
//   uuid                  text: 36 characters, lower case
enum class Kind : std::uint8_t {
  missing,
  null,
  boolean,
  int64,
  float64,
  decimal,
  text,
  json,
  bytes,
  date,
  timestamp,
  timestamptz,
  uuid,
};
std::string_view name_of(Kind kind);

// Shape: kind + number or borrowed text. Owner: the arena of the batch (or a static) owns the text.
class Value {
 public:
  Value() : size_(0), kind_(Kind::missing) { u_.i = 0; }
  static Value null() { return number(Kind::null, 0); }
  static Value number(Kind kind, std::int64_t i) {
    Value v;
    v.kind_ = kind;
    v.u_.i = i;
    return v;
  }
  static Value boolean(bool b) { return number(Kind::boolean, b ? 1 : 0); }
  static Value int64(std::int64_t i) { return number(Kind::int64, i); }
  static Value float64(double d) {
    Value v;
    v.kind_ = Kind::float64;
    v.u_.d = d;
    return v;
  }
  static Value text(std::string_view s, Kind kind = Kind::text) {
    Value v;
    v.kind_ = kind;
    v.u_.p = s.data();
    v.size_ = static_cast<std::uint32_t>(s.size());
    return v;
  }

  Kind kind() const { return kind_; }
  bool is_null() const { return kind_ == Kind::null || kind_ == Kind::missing; }
  std::int64_t i() const { return u_.i; }
  double d() const { return u_.d; }
  std::string_view text() const { return {u_.p, size_}; }
  bool holds_text() const {
    return kind_ == Kind::decimal || kind_ == Kind::text || kind_ == Kind::json ||
           kind_ == Kind::bytes || kind_ == Kind::uuid;
  }

 private:
  union {
    std::int64_t i;
    double d;
    const char* p;
  } u_;
  std::uint32_t size_;
  Kind kind_;
};
static_assert(sizeof(Value) == 16);

}  // namespace flow
