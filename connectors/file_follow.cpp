// Following files: each grows, is rotated, truncated or deleted; new ones come.
#include <algorithm>
#include <map>
#include <set>

#include "connectors/file_agenda.h"

namespace flow::files {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds scan_every{500};
// What a rotated file still gets from a writer that has not yet turned to the new one, and how long
// a copy of a followed file may take before it counts as a file of its own.
constexpr milliseconds grace{2000};

struct Followed {
  explicit Followed(std::unique_ptr<FileReader> r) : reader(std::move(r)) {}

  std::unique_ptr<FileReader> reader;
  bool done = false;                             // read once, to its end
  bool deleted = false;                          // no name leads to it any more
  std::optional<Clock::time_point> flush_at;     // rotated: its unfinished last line is read then
  std::optional<Clock::time_point> short_since;  // shorter than what was read, with the same head
  std::string old_name;                          // the file that took it waits for flush_at
  std::int64_t seen_size = -1;
  std::int64_t seen_changed = -1;  // modification time, ns
};

struct Held {
  Clock::time_point until;
  std::int64_t size = -1;
};

class FollowAgenda final : public Agenda {
 public:
  FollowAgenda(AgendaSetup setup, Survey first) : setup_(std::move(setup)) {
    unmatched_ = std::move(first.unmatched);
    add(std::move(first.files));
    for (Known& k : setup_.known) {
      if (std::any_of(first.gone.begin(), first.gone.end(),
                      [&](const Known& gone) { return gone.path == k.path; })) {
        k.path.clear();  // looked for once; a copy of it may still come
      }
    }
  }

  Result<Turn> next() override;
  void passed(FileReader& reader) override;
  bool finished() const override;
  Spans take_relocated() override { return std::exchange(relocated_, {}); }
  AgendaProgress progress() const override;

 private:
  void add(std::vector<Found> found);
  Result<void> scan(Clock::time_point now);
  static bool has_name(const FileReader& reader);
  void follow_name(Followed& f, Clock::time_point now);
  Result<void> find_new(Clock::time_point now);
  bool hold(const Found& found, Clock::time_point now);
  void complain(const std::vector<Failure>& trouble);
  bool waits_for_older(const Followed& f) const;
  Result<bool> due(Followed& f, Clock::time_point now);
  void rewritten(Followed& f);

  AgendaSetup setup_;
  std::vector<Followed> files_;
  std::vector<std::string> unmatched_;
  std::map<std::string, Held> held_;             // copies in the making
  std::map<std::string, std::string> troubled_;  // said once
  Spans relocated_;
  std::size_t cursor_ = 0;
  Clock::time_point next_scan_ = Clock::now() + scan_every;
};

void FollowAgenda::add(std::vector<Found> found) {
  std::set<std::size_t> carried_on;
  for (Found& f : found) {
    const Placement& p = f.placement;
    const bool carries = p.standing != Standing::truncated && p.standing != Standing::replaced;
    if (p.known && carries) carried_on.insert(*p.known);
    if (p.known && !carries) setup_.known[*p.known].path.clear();
    if (auto span = relocated(f, setup_.known)) relocated_.push_back(std::move(*span));
    files_.emplace_back(make_reader(setup_.reader, std::move(f), setup_.known));
  }
  for (auto k = carried_on.rbegin(); k != carried_on.rend(); ++k) {
    setup_.known.erase(setup_.known.begin() + static_cast<std::ptrdiff_t>(*k));
  }
}

Result<Turn> FollowAgenda::next() {
  const auto now = Clock::now();
  if (now >= next_scan_) {
    next_scan_ = now + scan_every;
    if (auto r = scan(now); !r) return std::move(r).failure();
  }
  for (std::size_t i = 0; i < files_.size(); ++i) {
    const std::size_t at = (cursor_ + i) % files_.size();
    Followed& f = files_[at];
    if (f.done || waits_for_older(f)) continue;
    const bool flush = f.flush_at && now >= *f.flush_at;
    auto ready = due(f, now);
    if (!ready) return std::move(ready).failure();
    if (!*ready && !flush) continue;
    cursor_ = at + 1;
    const bool to_the_end = f.reader->read_once() || (flush && !*ready);
    return Turn{f.reader.get(), to_the_end ? Tail::read : Tail::hold};
  }
  return Turn{};
}

// Has the file changed since its last pass? A file that grows after it was rotated is not finished
// yet.
Result<bool> FollowAgenda::due(Followed& f, Clock::time_point now) {
  if (auto opened = f.reader->open(); !opened) {
    if (has_name(*f.reader)) return std::move(opened).failure();
    return false;  // it went away again before it was read: the next scan says so
  }
  if (f.reader->read_once()) return true;
  auto st = f.reader->status();
  if (!st) return std::move(st).failure();
  const std::int64_t changed = st->st_mtim.tv_sec * 1'000'000'000LL + st->st_mtim.tv_nsec;
  if (st->st_size == f.seen_size && changed == f.seen_changed) return false;
  auto check = f.reader->check();
  if (!check) return std::move(check).failure();
  if (*check == Check::shorter) {
    if (!f.short_since) f.short_since = now;
    if (now - *f.short_since < grace) return false;
    return cut_failure(f.reader->path(), f.reader->position(), st->st_size);
  }
  f.short_since.reset();
  if (*check == Check::rewritten) rewritten(f);
  if (f.flush_at && f.seen_size >= 0) f.flush_at = now + grace;
  f.seen_size = st->st_size;
  f.seen_changed = changed;
  return true;
}

// The content is new: what was read before may go on in a copy.
void FollowAgenda::rewritten(Followed& f) {
  Known before = f.reader->known();
  before.path.clear();
  setup_.reader.log->event(Level::warn, "file.truncated",
                           {{"path", f.reader->path()},
                            {"read_before", std::to_string(before.position)},
                            {"means", "same inode, other content: read from its start"}});
  setup_.known.push_back(std::move(before));
  f.reader->start_over();
}

void FollowAgenda::passed(FileReader& reader) {
  const auto at = std::find_if(files_.begin(), files_.end(),
                               [&](const Followed& f) { return f.reader.get() == &reader; });
  if (reader.read_once()) {
    at->done = true;
    reader.close();
    return;
  }
  if (!at->flush_at || Clock::now() < *at->flush_at || reader.position() < at->seen_size) return;
  at->flush_at.reset();
  at->old_name.clear();
  if (!at->deleted) return;
  files_.erase(at);
  cursor_ = 0;
}

// The file that took a rotated file's name waits until that one is finished. Under the same name it
// must.
bool FollowAgenda::waits_for_older(const Followed& f) const {
  return std::any_of(files_.begin(), files_.end(), [&](const Followed& older) {
    return &older != &f && older.flush_at && older.old_name == f.reader->path();
  });
}

Result<void> FollowAgenda::scan(Clock::time_point now) {
  for (Followed& f : files_) {
    if (!f.done && !f.deleted && !f.reader->read_once()) follow_name(f, now);
  }
  // What is not open does not hold its inode: another file may have it by now.
  std::erase_if(files_, [&](Followed& f) {
    if (f.reader->is_open() || f.reader->pipe() || has_name(*f.reader)) return false;
    setup_.known.push_back(f.reader->known());
    return true;
  });
  return find_new(now);
}

bool FollowAgenda::has_name(const FileReader& reader) {
  struct stat st {};
  return ::stat(reader.path().c_str(), &st) == 0 && st.st_dev == reader.device() &&
         st.st_ino == reader.inode();
}

// A name that leads to another inode, or nowhere: the file was rotated or deleted.
void FollowAgenda::follow_name(Followed& f, Clock::time_point now) {
  if (has_name(*f.reader)) return;
  const std::string was = f.reader->path();
  const std::string name = name_of_inode(directory_of(was), f.reader->device(), f.reader->inode());
  Log& log = *setup_.reader.log;
  if (name.empty()) {
    f.deleted = true;
    log.event(Level::info, "file.deleted",
              {{"path", was},
               {"position", std::to_string(f.reader->position())},
               {"means", "read to its end through the open descriptor"}});
  } else {
    f.reader->rename(name);
    const Position at{f.reader->position()};
    if (at.next > 0) {
      relocated_.push_back({f.reader->partition(), at, at, f.reader->known().identity.text()});
    }
    log.event(Level::info, "file.rotated",
              {{"path", name}, {"was", was}, {"position", std::to_string(at.next)}});
  }
  f.old_name = was;
  f.flush_at = now + grace;
  cursor_ = 0;
}

Result<void> FollowAgenda::find_new(Clock::time_point now) {
  SurveyWish wish;
  for (const Followed& f : files_) {
    if (f.reader->pipe()) continue;
    wish.held.emplace_back(f.reader->device(), f.reader->inode());
  }
  std::vector<Failure> trouble;
  wish.trouble = &trouble;
  auto found = survey(*setup_.spec, setup_.known, wish);
  if (!found) return std::move(found).failure();
  complain(trouble);
  unmatched_ = std::move(found->unmatched);
  found->gone.clear();
  std::erase_if(found->files, [&](const Found& f) {
    const bool known_pipe =
        f.file.pipe && std::any_of(files_.begin(), files_.end(), [&](const Followed& have) {
          return have.reader->path() == f.file.path;
        });
    return known_pipe || hold(f, now);
  });
  if (auto r = refuse_cut(*found); !r) return r;
  report(*found, setup_.known, *setup_.reader.log);
  add(std::move(found->files));
  return {};
}

// A new file that begins as a followed one does may be a copy in the making (copytruncate): what it
// is shows when the other is truncated. Until then, or until it has not grown for a while, it
// waits.
bool FollowAgenda::hold(const Found& found, Clock::time_point now) {
  constexpr std::size_t proof = 64;
  const std::string& head = found.file.head;
  const bool alike = found.placement.standing == Standing::fresh && !found.file.pipe &&
                     std::any_of(files_.begin(), files_.end(), [&](const Followed& f) {
                       const std::size_t n = std::min(head.size(), f.reader->head().size());
                       return (n >= proof || found.file.size == 0) &&
                              head.compare(0, n, f.reader->head(), 0, n) == 0;
                     });
  if (!alike) {
    held_.erase(found.file.path);
    return false;
  }
  auto [at, fresh] = held_.try_emplace(found.file.path, Held{now + grace});
  if (at->second.size != found.file.size) at->second = {now + grace, found.file.size};
  if (now < at->second.until) return true;
  held_.erase(at);
  return false;
}

void FollowAgenda::complain(const std::vector<Failure>& trouble) {
  for (const Failure& f : trouble) {
    std::string& said = troubled_[f.where];
    if (said == f.what) continue;
    said = f.what;
    setup_.reader.log->event(Level::warn, "file.skipped", {{"error", f.text()}});
  }
}

bool FollowAgenda::finished() const {
  const auto& paths = setup_.spec->paths;
  return std::all_of(paths.begin(), paths.end(), [](const std::string& p) { return p == "-"; }) &&
         std::all_of(files_.begin(), files_.end(), [](const Followed& f) { return f.done; });
}

AgendaProgress FollowAgenda::progress() const {
  AgendaProgress p;
  std::uint64_t total = 0;
  std::uint64_t done = 0;
  bool pipes = false;
  for (const Followed& f : files_) {
    pipes = pipes || f.reader->pipe();
    total += static_cast<std::uint64_t>(std::max(f.reader->size(), f.reader->raw_taken()));
    done += static_cast<std::uint64_t>(f.reader->raw_taken());
  }
  if (!pipes) p.total = total;
  p.done = done;
  if (files_.empty() && !unmatched_.empty()) p.waiting_for = "a file at " + unmatched_.front();
  return p;
}

}  // namespace

Result<std::unique_ptr<Agenda>> make_follow_agenda(AgendaSetup setup) {
  auto found = survey(*setup.spec, setup.known);
  if (!found) return std::move(found).failure();
  if (auto r = refuse_cut(*found); !r) return std::move(r).failure();
  report(*found, setup.known, *setup.reader.log);
  return std::unique_ptr<Agenda>(
      std::make_unique<FollowAgenda>(std::move(setup), std::move(*found)));
}

}  // namespace flow::files
