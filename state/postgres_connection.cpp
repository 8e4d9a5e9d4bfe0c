#include "state/postgres_connection.h"

#include <array>
#include <cctype>
#include <chrono>
#include <poll.h>
#include <utility>
#include <vector>

#include "core/classify.h"
#include "core/mask.h"

namespace flow {
namespace {

constexpr std::chrono::seconds connect_wait_max{10};

struct Setting {
  const char* name;
  const char* value;
};

// A dead network is noticed within half a minute, on this side and, so that its locks go, on the
// server's.
constexpr std::array connection_defaults{
    Setting{"application_name", "flow"}, Setting{"connect_timeout", "10"},
    Setting{"keepalives_idle", "10"},    Setting{"keepalives_interval", "5"},
    Setting{"keepalives_count", "3"},    Setting{"tcp_user_timeout", "30000"},
};
constexpr const char* session_settings =
    "SET client_min_messages = warning; SET lock_timeout = '10s';"
    " SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3";

std::string first_line(std::string words) {
  const auto end = words.find('\n');
  if (end != std::string::npos) words.resize(end);
  return words;
}

// In "FATAL:  28P01: password ...", as libpq writes it when told to be verbose. `words` loses the
// code.
std::string take_sqlstate(std::string& words) {
  constexpr std::size_t length = 5;
  for (std::size_t at = words.find(":  "); at != std::string::npos;
       at = words.find(":  ", at + 1)) {
    const std::string code = words.substr(at + 3, length);
    bool fits = code.size() == length && words.compare(at + 3 + length, 2, ": ") == 0;
    for (const char c : code) fits = fits && (std::isupper(c) != 0 || std::isdigit(c) != 0);
    if (!fits) continue;
    words.erase(at + 3, length + 2);
    return code;
  }
  return {};
}

struct FreeOptions {
  void operator()(PQconninfoOption* options) const { PQconninfoFree(options); }
};
using Options = std::unique_ptr<PQconninfoOption, FreeOptions>;

Failure bad_url(const std::string& url, const std::string& words) {
  Failure failure = postgres_state_failure("", words, url);
  failure.cls = FailureClass::setup;
  failure.hint = "write state: postgres://USER@HOST:PORT/DATABASE, special characters as %XX";
  return failure;
}

struct ClearResult {
  void operator()(PGresult* result) const { PQclear(result); }
};
using PgResultHandle = std::unique_ptr<PGresult, ClearResult>;

enum class Progress { ready, failed, late };

Progress finish_connecting(PGconn* connection) {
  const auto end = std::chrono::steady_clock::now() + connect_wait_max;
  PostgresPollingStatusType wants = PGRES_POLLING_WRITING;
  while (wants != PGRES_POLLING_OK && wants != PGRES_POLLING_FAILED) {
    pollfd socket{PQsocket(connection),
                  static_cast<short>(wants == PGRES_POLLING_READING ? POLLIN : POLLOUT), 0};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return Progress::late;
    if (::poll(&socket, 1, static_cast<int>(left.count())) > 0) wants = PQconnectPoll(connection);
  }
  return wants == PGRES_POLLING_OK ? Progress::ready : Progress::failed;
}

}  // namespace

Failure postgres_state_failure(const std::string& sqlstate, const std::string& words,
                               const std::string& url) {
  Masker masker;
  masker.add_url(url);
  Failure failure{.cls = classify_sqlstate(sqlstate),
                  .code = sqlstate,
                  .where = "state " + mask_url(url),
                  .what = masker.text(first_line(words))};
  switch (failure.cls) {
    case FailureClass::unauthorized:
      failure.hint = sqlstate == "42501"
                         ? "grant this role CREATE on the database, or all rights on schema flow"
                         : "check user and password of the state's URL";
      break;
    case FailureClass::throttled:
      failure.hint = "free some connections, or raise max_connections";
      break;
    case FailureClass::transient:
      failure.hint = "check that the server of the state is up and can be reached";
      break;
    case FailureClass::setup: failure.hint = "check the state's URL and its schema flow"; break;
    default: break;
  }
  return failure;
}

Result<PostgresConnection::Handle> PostgresConnection::start(const std::string& url) {
  char* error = nullptr;
  const Options options(PQconninfoParse(url.c_str(), &error));
  if (!options) {
    const std::string words = error != nullptr ? error : "out of memory";
    PQfreemem(error);
    return bad_url(url, words);
  }
  std::vector<const char*> names, values;
  for (const PQconninfoOption* o = options.get(); o->keyword != nullptr; ++o) {
    const char* value = o->val;
    for (const Setting& setting : connection_defaults) {
      if (value == nullptr && std::string_view(setting.name) == o->keyword) value = setting.value;
    }
    if (value == nullptr) continue;
    names.push_back(o->keyword);
    values.push_back(value);
  }
  names.push_back(nullptr);
  values.push_back(nullptr);
  Handle connection(PQconnectStartParams(names.data(), values.data(), 0));
  if (!connection) return postgres_state_failure("53200", "out of memory", url);
  PQsetErrorVerbosity(connection.get(), PQERRORS_VERBOSE);
  PQsetNoticeProcessor(
      connection.get(), [](void*, const char*) {}, nullptr);
  if (PQstatus(connection.get()) == CONNECTION_BAD) {
    return bad_url(url, PQerrorMessage(connection.get()));
  }
  return connection;
}

Result<std::unique_ptr<PostgresConnection>> PostgresConnection::connect(const std::string& url) {
  auto connection = start(url);
  if (!connection) return connection.failure();
  switch (finish_connecting(connection->get())) {
    case Progress::late:
      return postgres_state_failure("", "the server did not answer within 10 s", url);
    case Progress::failed: {
      std::string words = PQerrorMessage(connection->get());
      const std::string sqlstate = take_sqlstate(words);
      return postgres_state_failure(sqlstate, words, url);
    }
    case Progress::ready: break;
  }
  PQsetErrorVerbosity(connection->get(), PQERRORS_DEFAULT);
  std::unique_ptr<PostgresConnection> opened(
      new PostgresConnection(std::move(connection).value(), url));
  PQclear(PQexec(opened->connection_.get(), session_settings));
  return opened;
}

std::optional<Failure> PostgresConnection::failure_in(const PGresult* result) const {
  const ExecStatusType status = PQresultStatus(result);
  if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) return std::nullopt;
  const char* sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const char* words = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  return postgres_state_failure(sqlstate != nullptr ? sqlstate : "",
                                words != nullptr ? words : PQerrorMessage(connection_.get()), url_);
}

Result<Table> PostgresConnection::run(const std::string& sql, const Cells& parameters) {
  std::vector<const char*> values;
  for (const Cell& cell : parameters) values.push_back(cell ? cell->c_str() : nullptr);
  const PgResultHandle result(PQexecParams(connection_.get(), sql.c_str(),
                                           static_cast<int>(values.size()), nullptr, values.data(),
                                           nullptr, nullptr, 0));
  if (auto failed = failure_in(result.get())) return *failed;
  Table table(static_cast<std::size_t>(PQntuples(result.get())));
  for (int r = 0; r < PQntuples(result.get()); ++r) {
    for (int c = 0; c < PQnfields(result.get()); ++c) {
      const bool null = PQgetisnull(result.get(), r, c) != 0;
      table[static_cast<std::size_t>(r)].push_back(
          null ? Cell()
               : Cell(std::string(PQgetvalue(result.get(), r, c),
                                  static_cast<std::size_t>(PQgetlength(result.get(), r, c)))));
    }
  }
  return table;
}

Result<void> PostgresConnection::store_letters(std::span<const DeadLetter* const> letters) {
  while (!letters.empty()) {
    const auto some = next_letters(letters);
    letters = letters.subspan(some.size());
    const PostgresLetterArrays arrays = postgres_letter_arrays(some);
    std::vector<const char*> values;
    std::vector<int> lengths;
    for (const std::string& value : arrays.values) {
      values.push_back(value.data());
      lengths.push_back(static_cast<int>(value.size()));
    }
    const std::vector<int> binary(values.size(), 1);
    const std::vector<Oid> types(arrays.types.begin(), arrays.types.end());
    const PgResultHandle result(PQexecParams(connection_.get(), postgres_letter_statement().c_str(),
                                             static_cast<int>(values.size()), types.data(),
                                             values.data(), lengths.data(), binary.data(), 0));
    if (auto failed = failure_in(result.get())) return *failed;
  }
  return {};
}

}  // namespace flow
