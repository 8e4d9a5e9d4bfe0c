#pragma once
// Result<T>: a value or a Failure. Vendor exceptions are turned into Failures in the file that
// calls the vendor; none crosses a folder.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace flow {

// Why something failed, and so what happens next (the table is in flow-errors(7)).
enum class FailureClass : std::uint8_t {
  transient,     // retry with backoff; never the record's fault
  throttled,     // as transient, and the other side said to slow down
  invalid,       // this one record cannot be decoded, cast or stored
  poison,        // perhaps the record's fault: tried again, set aside when each attempt fails
  unauthorized,  // stop, exit 77
  setup,         // stop, exit 78: table, constraint, topic, setting
  fenced,        // a newer owner took over: stop, exit 75
  defect,        // a broken invariant of ours: stop, exit 70
};
std::string_view name_of(FailureClass c);

// Whether the failed step may have taken effect all the same (a connection lost during COMMIT).
enum class Effect : std::uint8_t { none, unknown };

// Exit codes of every command (DESIGN section 8).
enum class ExitCode : int {
  done = 0,
  bad = 1,
  unsure = 2,
  usage = 64,
  data = 65,
  unavailable = 69,
  defect = 70,
  cannot_create = 73,
  io = 74,
  temporary = 75,
  unauthorized = 77,
  configuration = 78,
};

// One failure. `where`: target, table, topic/partition@offset, column, file:line:col.
// `what`: the fact; `hint`: the next thing to do; `code`: the vendor's own code ("23505",
// "_TRANSPORT"). `exit` overrides the exit code that the class implies (I/O on state or files, lock
// held). Never holds a secret or a payload beyond a short masked token.
struct Failure {
  FailureClass cls = FailureClass::defect;
  Effect effect = Effect::none;
  std::string code{};
  std::string where{};
  std::string what{};
  std::string hint{};
  std::optional<ExitCode> exit{};
  // a record's fault, from Target::write(): index into Batch::records of the one at fault, when it
  // is known
  std::optional<std::uint32_t> record{};
  // throttled: how long the other side asked to wait, when it said so
  std::optional<std::int64_t> wait_ms{};

  std::string text() const;  // "where: what (code); hint"
  ExitCode exit_code() const;
  bool retryable() const {
    return cls == FailureClass::transient || cls == FailureClass::throttled;
  }
  // The record's fault, for certain (invalid) or perhaps (poison): it is isolated from its batch.
  bool of_record() const { return cls == FailureClass::invalid || cls == FailureClass::poison; }
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : v_(std::move(value)) {}            // NOLINT(google-explicit-constructor)
  Result(Failure failure) : v_(std::move(failure)) {}  // NOLINT(google-explicit-constructor)
  bool ok() const { return v_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() & { return std::get<0>(v_); }
  const T& value() const& { return std::get<0>(v_); }
  T&& value() && { return std::get<0>(std::move(v_)); }
  T* operator->() { return &std::get<0>(v_); }
  T& operator*() & { return std::get<0>(v_); }
  const T& operator*() const& { return std::get<0>(v_); }
  Failure& failure() & { return std::get<1>(v_); }
  const Failure& failure() const& { return std::get<1>(v_); }
  Failure&& failure() && { return std::get<1>(std::move(v_)); }

 private:
  std::variant<T, Failure> v_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Failure failure) : f_(std::move(failure)) {}  // NOLINT(google-explicit-constructor)
  bool ok() const { return !f_; }
  explicit operator bool() const { return ok(); }
  Failure& failure() & { return *f_; }
  const Failure& failure() const& { return *f_; }
  Failure&& failure() && { return *std::move(f_); }

 private:
  std::optional<Failure> f_;
};

// A broken invariant of ours: says so on stderr and aborts, in release too.
[[noreturn]] void defect(std::string_view what, const char* file, int line);
#define FLOW_CHECK(condition, what)                             \
  do {                                                          \
    if (!(condition)) ::flow::defect(what, __FILE__, __LINE__); \
  } while (false)

}  // namespace flow
