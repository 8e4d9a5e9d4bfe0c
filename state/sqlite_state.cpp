// Opens a state in a SQLite file: makes it whole or not at all, refuses what is damaged, foreign or
// newer.
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <random>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "core/sqlite_path.h"
#include "state/file_lock.h"
#include "state/schema.h"
#include "state/session.h"
#include "state/sqlite_session.h"

namespace flow {
namespace {

constexpr std::int64_t full_check_bytes_max = std::int64_t{16} << 20;

std::string where(const std::string& path) { return "state " + path; }

Failure cannot_create(const std::string& path, int error) {
  return {.cls = FailureClass::setup,
          .where = where(path),
          .what = std::string("the state cannot be created: ") + std::strerror(error),
          .hint = "name a file in a directory that this user can write, in state: or by --state",
          .exit = ExitCode::cannot_create};
}

bool is_absent(const std::string& path) {
  return ::access(path.c_str(), F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

void sync_directory_of(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  const int fd = ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  ::fsync(fd);
  ::close(fd);
}

// All tables in one closed file, in WAL mode.
Result<void> write_new_file(const std::string& path) {
  auto session = SqliteSession::open(path);
  if (!session) return session.failure();
  for (const std::string& pragma :
       {"PRAGMA application_id = " + std::to_string(state_application_id),
        std::string("PRAGMA synchronous = FULL")}) {
    if (auto done = (*session)->run(pragma); !done) return done.failure();
  }
  auto made = (*session)->write([](Statements& s) { return migrate(s, 0); });
  if (!made) return made;
  if (auto done = (*session)->run("PRAGMA journal_mode = WAL"); !done) return done.failure();
  return {};
}

// The file appears under its name when it is complete, so a process that dies while creating it
// leaves no half of a state, and two that create it at once agree on one.
Result<void> create(const std::string& path) {
  if (const int error = create_private_directories(path); error != 0) {
    return cannot_create(path, error);
  }
  const std::string draft =
      path + ".new-" + std::to_string(::getpid()) + "-" + std::to_string(std::random_device{}());
  if (const int error = create_private_file(draft); error != 0) return cannot_create(path, error);
  auto made = write_new_file(draft);
  const bool linked = made && ::link(draft.c_str(), path.c_str()) == 0;
  const int error = errno;
  ::unlink(draft.c_str());
  if (!made) {
    Failure failure = made.failure();
    failure.exit = ExitCode::cannot_create;
    return failure;
  }
  if (!linked && error != EEXIST) return cannot_create(path, error);
  sync_directory_of(path);
  return {};
}

// What can be told without opening the file. Opening it here would free the locks that SQLite holds
// on it.
Result<void> check_file(const std::string& path) {
  struct stat s {};
  if (::stat(path.c_str(), &s) != 0) {
    return sqlite_state_failure(14 /* cannot open */, std::strerror(errno), path);
  }
  Failure failure{.cls = FailureClass::setup, .where = where(path)};
  if (!S_ISREG(s.st_mode)) {
    failure.what = "the state must be a file, and this is none";
    failure.hint = "name a file in state: or by --state";
    return failure;
  }
  if (s.st_size == 0) {
    failure.what = "the state is damaged: the file is empty";
    failure.hint =
        "restore it from a copy; or, if reading everything again is right, remove the file "
        "yourself";
    failure.exit = ExitCode::io;
    return failure;
  }
  return {};
}

void report_permissions(const std::string& path, Log& log) {
  const auto report = [&](const std::string& name, unsigned loose, std::string_view hint) {
    struct stat s {};
    if (::stat(name.c_str(), &s) != 0 || (s.st_mode & loose) == 0) return;
    if ((s.st_mode & S_ISVTX) != 0 && S_ISDIR(s.st_mode)) return;
    char mode[8];
    std::snprintf(mode, sizeof mode, "%04o", static_cast<unsigned>(s.st_mode) & 07777U);
    log.event(Level::warn, "state.permissions",
              {{"path", name}, {"mode", mode}, {"hint", std::string(hint) + " " + name}});
  };
  report(path, 077, "others can get at the state: chmod 600");
  const std::string parent = std::filesystem::path(path).parent_path().string();
  report(parent.empty() ? "." : parent, 022, "others can replace the state: chmod go-w");
}

Failure foreign(const std::string& path) {
  return {.cls = FailureClass::setup,
          .where = where(path),
          .what = "the file is a SQLite database, but not a state of flow",
          .hint = "name another file in state: or by --state"};
}

Result<void> check_application(Statements& s, const std::string& path) {
  auto id = s.run("PRAGMA application_id");
  if (!id) return id.failure();
  if (id->empty() || (*id)[0][0] != std::to_string(state_application_id)) return foreign(path);
  return {};
}

// Small states are checked whole; in large ones the tables that decide what is read again.
Result<void> check_pages(Statements& s, const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  const bool small = !error && size <= static_cast<std::uint64_t>(full_check_bytes_max);
  const std::vector<std::string> checks =
      small ? std::vector<std::string>{"PRAGMA quick_check(1)"}
            : std::vector<std::string>{"PRAGMA quick_check('meta')",
                                       "PRAGMA quick_check('positions')",
                                       "PRAGMA quick_check('marks')"};
  for (const std::string& check : checks) {
    auto found = s.run(check);
    if (!found) return found.failure();
    const std::string verdict = found->empty() ? "no answer" : (*found)[0][0].value_or("");
    if (verdict != "ok")
      return sqlite_state_failure(11 /* corrupt */, "the state is damaged: " + verdict, path);
  }
  return {};
}

Result<Meta> check_content(Statements& s, const std::string& path) {
  if (auto ours = check_application(s, path); !ours) return ours.failure();
  if (auto sound = check_pages(s, path); !sound) return sound.failure();
  return read_meta(s, where(path));
}

Result<StateParts> open_to_read(const std::string& path) {
  StateParts parts{.id = {},
                   .location = "sqlite:" + path,
                   .access = StateAccess::read_only,
                   .session = std::make_unique<SqliteViewSession>(path),
                   .locks = std::make_unique<FileLocks>(path + ".locks")};
  if (is_absent(path)) return parts;
  if (auto sound = check_file(path); !sound) return sound.failure();
  auto read = parts.session->read([&](Statements& s) -> Result<void> {
    auto meta = check_content(s, path);
    if (!meta) return meta.failure();
    parts.id = meta->id;
    return {};
  });
  if (!read) return read.failure();
  return parts;
}

Result<StateParts> open_to_write(const std::string& path, Log& log) {
  if (is_absent(path)) {
    if (auto made = create(path); !made) return made.failure();
  }
  if (auto sound = check_file(path); !sound) return sound.failure();
  report_permissions(path, log);
  auto session = SqliteSession::open(path);
  if (!session) return session.failure();
  std::string id;
  int version = 0;
  auto read = (*session)->read([&](Statements& s) -> Result<void> {
    auto meta = check_content(s, path);
    if (!meta) return meta.failure();
    id = meta->id;
    version = meta->version;
    return {};
  });
  if (!read) return read.failure();
  for (const char* pragma : {"PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL"}) {
    if (auto done = (*session)->run(pragma); !done) return done.failure();
  }
  if (version < schema_version()) {
    auto migrated = (*session)->write([&](Statements& s) -> Result<void> {
      auto meta = read_meta(s, where(path));  // another process may have been first
      if (!meta) return meta.failure();
      return migrate(s, meta->version);
    });
    if (!migrated) return migrated.failure();
  }
  return StateParts{.id = id,
                    .location = "sqlite:" + path,
                    .access = StateAccess::read_write,
                    .session = std::move(session).value(),
                    .locks = std::make_unique<FileLocks>(path + ".locks")};
}

}  // namespace

Result<StateParts> open_sqlite_state(const std::string& url, StateAccess access, Log& log) {
  const std::string path = canonical_path(sqlite_path(url));
  if (access == StateAccess::read_only) return open_to_read(path);
  return open_to_write(path, log);
}

}  // namespace flow
