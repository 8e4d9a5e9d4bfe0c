#include "connectors/postgres_client.h"

#include <charconv>
#include <chrono>
#include <cstring>
#include <optional>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/classify.h"

namespace flow {
namespace {

using Options = std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)>;

std::string option(const PQconninfoOption* options, std::string_view keyword) {
  for (; options != nullptr && options->keyword != nullptr; ++options) {
    if (keyword == options->keyword) return options->val ? options->val : "";
  }
  return "";
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  std::size_t from = 0;
  for (std::size_t at; (at = list.find(',', from)) != std::string::npos; from = at + 1) {
    parts.push_back(list.substr(from, at - from));
  }
  parts.push_back(list.substr(from));
  return parts;
}

std::uint64_t number(std::string_view digits) {
  std::uint64_t n = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), n);
  return n;
}

std::string field(const PGresult* result, int which) {
  const char* text = PQresultErrorField(result, which);
  return text ? text : "";
}

// Payload out of the message: for a value that does not fit, the server ends with `: "the value"`.
std::string without_value(std::string message, std::string_view code) {
  if (code.starts_with("22")) {
    if (const auto at = message.find(": \""); at != std::string::npos) message.resize(at);
  }
  constexpr std::size_t shown = 300;
  if (message.size() > shown) message.resize(shown);
  return message;
}

// With verbose errors libpq writes `SEVERITY:  SQLSTATE: message`: the only place where a refused
// connection has its code.
std::string code_of_refusal(std::string_view message, std::string_view& rest) {
  constexpr std::size_t code_size = 5;
  for (std::size_t at = 0; (at = message.find(":  ", at)) != std::string_view::npos; ++at) {
    const std::string_view code = message.substr(at + 3, code_size);
    const bool is_code =
        code.size() == code_size &&
        code.find_first_not_of("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == std::string_view::npos &&
        message.substr(at + 3 + code_size).starts_with(": ");
    if (!is_code) continue;
    rest = message.substr(at + 3 + code_size + 2);
    return std::string(code);
  }
  return "";
}

std::string first_line(std::string_view text) {
  return std::string(text.substr(0, text.find('\n')));
}

std::string hint_for(FailureClass cls) {
  switch (cls) {
    case FailureClass::transient:
    case FailureClass::throttled: return "it is tried again; if it lasts, look at the server";
    case FailureClass::invalid:
    case FailureClass::poison: return "correct the record, or the table's rules";
    case FailureClass::unauthorized: return "check user, password and rights in the target's url";
    default: return "correct the database or the pipeline, then start again";
  }
}

// A password with a bare @ or / spills into what libpq takes for host, port or database, and from
// there it would get into messages. (A host may begin with @: an abstract socket.)
bool misread(const std::string& host, const std::string& port, const std::string& database) {
  return host.find('@', 1) != std::string::npos || database.find('@') != std::string::npos ||
         port.find_first_not_of("0123456789,") != std::string::npos;
}

void drop_notice(void*, const PGresult*) {}

}  // namespace

std::string_view PgResult::text(int row, int column) const {
  return {PQgetvalue(result_.get(), row, column),
          static_cast<std::size_t>(PQgetlength(result_.get(), row, column))};
}

std::uint64_t PgResult::affected() const { return number(PQcmdTuples(result_.get())); }

PostgresClient::PostgresClient(std::string url, std::string application_name)
    : url_(std::move(url)), application_name_(std::move(application_name)) {
  char* error = nullptr;  // may quote the URL, so it is shown to nobody
  const Options options(PQconninfoParse(url_.c_str(), &error), &PQconninfoFree);
  PQfreemem(error);
  const bool names_database = url_.find_first_of("=:/ ") == std::string::npos;
  const std::string host = option(options.get(), "host");
  const std::string port = option(options.get(), "port");
  url_valid_ = (options != nullptr || names_database) &&
               !misread(host, port, option(options.get(), "dbname"));
  hosts_ = split(host);
  addresses_ = split(option(options.get(), "hostaddr"));
  ports_ = split(port);
  place_ = "postgres";
}

// ---- connecting --------------------------------------------------------------------------------

Result<void> PostgresClient::connect() {
  if (connection_ != nullptr && PQstatus(connection_) == CONNECTION_OK) return {};
  close();
  if (!url_valid_) {
    return Failure{.cls = FailureClass::setup,
                   .where = place_,
                   .what = "the url is not a connection string that libpq can read",
                   .hint =
                       "write postgres://user:password@host:port/database and percent-encode "
                       "special characters in each part"};
  }
  const std::size_t count = std::max(hosts_.size(), addresses_.size());
  const auto at = [](const std::vector<std::string>& list, std::size_t i) {
    return list.size() == 1 ? list.front() : i < list.size() ? list[i] : std::string();
  };
  Result<void> connected;
  for (std::size_t i = 0; i < count; ++i) {
    connected = connect_to(at(hosts_, i), at(addresses_, i), at(ports_, i));
    if (connected || connected.failure().cls != FailureClass::transient || cancelled_) break;
  }
  return connected;
}

Result<void> PostgresClient::connect_to(const std::string& host, const std::string& hostaddr,
                                        const std::string& port) {
  // What stands before dbname may be set otherwise by the URL, what stands after it may not.
  const char* names[] = {"keepalives_idle",  "keepalives_interval",
                         "keepalives_count", "fallback_application_name",
                         "dbname",           "host",
                         "hostaddr",         "port",
                         "client_encoding",  nullptr};
  const char* values[] = {"30",
                          "10",
                          "3",
                          application_name_.c_str(),
                          url_.c_str(),
                          host.c_str(),
                          hostaddr.c_str(),
                          port.c_str(),
                          "UTF8",
                          nullptr};
  connection_ = PQconnectStartParams(names, values, 1);
  if (connection_ == nullptr) return connect_failure("out of memory");
  PQsetErrorVerbosity(connection_, PQERRORS_VERBOSE);
  PQsetNoticeReceiver(connection_, drop_notice, nullptr);
  const auto text = [](const char* s) { return std::string(s ? s : ""); };
  place_ = text(PQhost(connection_)) + ":" + text(PQport(connection_)) + "/" +
           text(PQdb(connection_)) + " as " + text(PQuser(connection_));
  return finish_connecting();
}

Result<void> PostgresClient::finish_connecting() {
  const Options options(PQconninfo(connection_), &PQconninfoFree);
  const std::uint64_t given = number(option(options.get(), "connect_timeout"));
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(given == 0 ? 10 : given);
  PostgresPollingStatusType step = PGRES_POLLING_WRITING;
  while (PQstatus(connection_) != CONNECTION_BAD) {
    pollfd wanted{PQsocket(connection_),
                  static_cast<short>(step == PGRES_POLLING_READING ? POLLIN : POLLOUT), 0};
    const int ready = ::poll(&wanted, 1, 100);
    if (cancelled_) return connect_failure("cancelled");
    if (std::chrono::steady_clock::now() >= deadline) {
      return connect_failure("no answer in time (connect_timeout)");
    }
    if (ready <= 0) continue;
    step = PQconnectPoll(connection_);
    if (step == PGRES_POLLING_FAILED) break;
    if (step != PGRES_POLLING_OK) continue;
    PQsetErrorVerbosity(connection_, PQERRORS_DEFAULT);
    const std::scoped_lock lock(mutex_);
    socket_ = ::dup(PQsocket(connection_));
    if (cancelled_ && socket_ >= 0) ::shutdown(socket_, SHUT_RDWR);
    return {};
  }
  return connect_failure("");
}

Failure PostgresClient::connect_failure(std::string_view what) {
  Failure f{.cls = FailureClass::transient, .where = place_, .what = std::string(what)};
  if (what.empty()) {
    const std::string_view message = PQerrorMessage(connection_);
    std::string_view rest = message;
    f.code = code_of_refusal(message, rest);
    f.cls = classify_sqlstate(f.code);
    if (f.code.empty() && PQconnectionNeedsPassword(connection_) != 0) {
      f.cls = FailureClass::unauthorized;
    }
    f.what = first_line(rest);
  }
  f.what = "cannot connect: " + f.what;
  f.hint = f.cls == FailureClass::transient ? "check that the server runs and can be reached"
                                            : hint_for(f.cls);
  close();
  return f;
}

void PostgresClient::close() {
  PQfinish(connection_);
  connection_ = nullptr;
  const std::scoped_lock lock(mutex_);
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

// ---- statements --------------------------------------------------------------------------------

Failure PostgresClient::failure(const PGresult* result) {
  error_ = {};
  std::string message = result ? field(result, PG_DIAG_MESSAGE_PRIMARY) : "";
  if (result != nullptr) {
    error_.code = field(result, PG_DIAG_SQLSTATE);
    error_.table = field(result, PG_DIAG_TABLE_NAME);
    error_.column = field(result, PG_DIAG_COLUMN_NAME);
    error_.constraint = field(result, PG_DIAG_CONSTRAINT_NAME);
    const std::string context = field(result, PG_DIAG_CONTEXT);
    if (const auto at = context.find(", line ");
        context.starts_with("COPY ") && at != context.npos) {
      error_.copy_line = number(std::string_view(context).substr(at + 7));
      if (const auto column = context.find(", column ", at); column != context.npos) {
        const auto from = column + 9;
        error_.column = context.substr(from, context.find_first_of(":\n", from) - from);
      }
    }
  }
  const bool lost = PQstatus(connection_) != CONNECTION_OK;
  Failure f{.cls = classify_sqlstate(error_.code), .code = error_.code, .where = place_};
  if (lost && error_.code.empty()) {
    message = cancelled_ ? "the write was cancelled"
                         : "the connection was lost: " + first_line(PQerrorMessage(connection_));
  } else if (message.empty()) {
    message = first_line(PQerrorMessage(connection_));
  }
  f.what = without_value(std::move(message), error_.code);
  f.hint = hint_for(f.cls);
  if (lost) close();
  return f;
}

Result<PgResult> PostgresClient::checked(PGresult* raw) {
  PgResult result(raw);
  const ExecStatusType status = PQresultStatus(raw);
  if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || status == PGRES_COPY_IN) {
    return result;
  }
  return failure(raw);
}

Result<PgResult> PostgresClient::query(const std::string& sql,
                                       const std::vector<std::string>& parameters) {
  std::vector<const char*> values;
  for (const std::string& p : parameters) values.push_back(p.c_str());
  return checked(PQexecParams(connection_, sql.c_str(), static_cast<int>(values.size()), nullptr,
                              values.data(), nullptr, nullptr, 0));
}

Result<PgResult> PostgresClient::query(const std::string& sql, const PgParameters& parameters) {
  std::vector<const char*> values;
  std::vector<int> lengths;
  for (const std::string_view p : parameters.values) {
    values.push_back(p.data());
    lengths.push_back(static_cast<int>(p.size()));
  }
  const std::vector<int> binary(values.size(), 1);
  return checked(PQexecParams(connection_, sql.c_str(), static_cast<int>(values.size()),
                              parameters.types.data(), values.data(), lengths.data(), binary.data(),
                              0));
}

Result<void> PostgresClient::run(const std::string& sql) {
  auto result = checked(PQexec(connection_, sql.c_str()));
  if (!result) return result.failure();
  return {};
}

Result<void> PostgresClient::begin_copy(const std::string& sql) {
  auto result = checked(PQexec(connection_, sql.c_str()));
  if (!result) return result.failure();
  FLOW_CHECK(PQresultStatus(result->get()) == PGRES_COPY_IN, "the statement begins no COPY");
  return {};
}

Result<void> PostgresClient::send(std::string_view bytes) {
  if (PQputCopyData(connection_, bytes.data(), static_cast<int>(bytes.size())) == 1) return {};
  auto ended = end_copy();
  return ended ? failure(nullptr) : ended.failure();
}

Result<std::uint64_t> PostgresClient::end_copy() {
  std::uint64_t rows = 0;
  std::optional<Failure> failed;
  const bool ended = PQputCopyEnd(connection_, nullptr) == 1;
  while (connection_ != nullptr) {
    const PgResult result(PQgetResult(connection_));
    if (result.get() == nullptr || PQresultStatus(result.get()) == PGRES_COPY_IN) break;
    if (PQresultStatus(result.get()) == PGRES_COMMAND_OK) {
      rows = result.affected();
    } else if (!failed) {
      failed = failure(result.get());
    }
  }
  if (!ended && !failed) failed = failure(nullptr);
  if (failed) return *failed;
  return rows;
}

Result<void> PostgresClient::commit() {
  auto result = checked(PQexec(connection_, "COMMIT"));
  if (!result) {
    Failure f = result.failure();
    if (connection_ == nullptr || f.code == "40003") {
      f.cls = FailureClass::transient;
      f.effect = Effect::unknown;
      f.what = "whether the batch was committed is unknown: " + f.what;
    }
    return f;
  }
  if (std::string_view(PQcmdStatus(result->get())) == "COMMIT") return {};
  return Failure{.cls = FailureClass::transient,
                 .where = place_,
                 .what = "the server rolled the transaction back instead of committing it"};
}

Failure PostgresClient::refused(const std::string& sqlstate, const std::string& message) const {
  const FailureClass cls = classify_sqlstate(sqlstate);
  return {.cls = cls,
          .code = sqlstate,
          .where = place_,
          .what = without_value(message, sqlstate),
          .hint = hint_for(cls)};
}

void PostgresClient::end_active() {
  if (PQtransactionStatus(connection_) != PQTRANS_ACTIVE) return;
  PQputCopyEnd(connection_, "given up");
  while (PGresult* result = PQgetResult(connection_)) {
    const bool copying = PQresultStatus(result) == PGRES_COPY_IN;
    PQclear(result);
    if (copying) break;
  }
}

Result<void> PostgresClient::roll_back_to(const std::string& savepoint) {
  if (connection_ == nullptr) return failure(nullptr);
  end_active();
  return run("ROLLBACK TO SAVEPOINT " + savepoint + "; RELEASE SAVEPOINT " + savepoint);
}

void PostgresClient::rollback() {
  if (connection_ == nullptr) return;
  end_active();
  if (PQtransactionStatus(connection_) != PQTRANS_IDLE) PQclear(PQexec(connection_, "ROLLBACK"));
  if (PQtransactionStatus(connection_) != PQTRANS_IDLE) close();
}

// ---- cancelling --------------------------------------------------------------------------------

void PostgresClient::begin_work() {
  const std::scoped_lock lock(mutex_);
  working_ = true;
  cancelled_ = false;
}

void PostgresClient::end_work() {
  const std::scoped_lock lock(mutex_);
  working_ = false;
}

void PostgresClient::cancel() noexcept {
  const std::scoped_lock lock(mutex_);
  if (!working_) return;
  cancelled_ = true;
  if (socket_ >= 0) ::shutdown(socket_, SHUT_RDWR);
}

}  // namespace flow
