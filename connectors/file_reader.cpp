#include "connectors/file_reader.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "connectors/file_catalog.h"

namespace flow::files {

namespace {

constexpr std::string_view bom = "\xEF\xBB\xBF";
constexpr std::int64_t no_end = std::numeric_limits<std::int64_t>::max();

}  // namespace

FileReader::FileReader(const ReaderSetup& setup, Sighting file, const Placement& placement,
                       const std::optional<Identity>& known)
    : setup_(setup),
      file_(std::move(file)),
      partition_{file_.path, 0},
      framer_(setup.format, setup.delimiter),
      resume_at_(placement.position),
      line_(placement.position == 0 ? 1 : 0),
      want_header_(setup.header) {
  if (!known || placement.position == 0) return;
  settled_ = *known;
  if (known->open_record && *known->open_record < placement.position) {
    open_record_ = known->open_record;
  }
  if (known->ended && known->ended->position == placement.position) ended_ = known->ended;
}

std::int64_t FileReader::raw_taken() const {
  if (ended_before() || (compressed() && passed_end_)) return file_.size;
  if (read_once()) return stream_ ? stream_->raw_taken() : 0;
  return std::max(position_, resume_at_);
}

bool FileReader::ended_before() const { return ended_ && ended_->raw_size == file_.size; }

Result<void> FileReader::open() {
  if (stream_) return {};
  if (path() == "-") {
    stream_ = std::make_unique<InputStream>(Fd(0), path(), Medium::pipe, setup_.compression);
    return {};
  }
  auto fd = open_inode(path());
  if (!fd) return std::move(fd).failure();
  if (!fd->is_open()) {
    const std::string name = name_of_inode(directory_of(path()), file_.device, file_.inode);
    fd = name.empty() ? Result<Fd>(Fd()) : open_inode(name);
    if (!fd) return std::move(fd).failure();
    if (!fd->is_open()) {
      return Failure{.cls = FailureClass::setup,
                     .where = path(),
                     .what = "went away or was replaced while the run was under way",
                     .hint = "run again: the files are looked at anew",
                     .exit = ExitCode::io};
    }
    setup_.log->event(Level::info, "file.rotated", {{"path", name}, {"was", path()}});
    rename(name);
  }
  stream_ = std::make_unique<InputStream>(std::move(*fd), path(),
                                          file_.pipe ? Medium::pipe : Medium::file,
                                          file_.pipe ? setup_.compression : file_.compression);
  return {};
}

// Closed when the name is gone or is another file's.
Result<Fd> FileReader::open_inode(const std::string& name) const {
  auto fd = open_for_reading(name);
  if (!fd && fd.failure().code == "ENOENT") return Fd();
  if (!fd || file_.pipe) return fd;
  struct stat st {};
  if (::fstat(fd->get(), &st) != 0) return io_failure(name, "look at", errno);
  if (st.st_dev != file_.device || st.st_ino != file_.inode) return Fd();
  return fd;
}

Result<struct stat> FileReader::status() {
  if (auto r = open(); !r) return std::move(r).failure();
  struct stat st {};
  if (::fstat(stream_->fd(), &st) != 0) return io_failure(path(), "look at", errno);
  return st;
}

Result<Check> FileReader::check() {
  if (read_once()) return Check::same;
  auto st = status();
  if (!st) return std::move(st).failure();
  std::string now(std::min<std::size_t>(file_.head.size(), static_cast<std::size_t>(st->st_size)),
                  '\0');
  const ssize_t n = read_at(stream_->fd(), now.data(), now.size(), 0);
  if (n < 0) return io_failure(path(), "read", errno);
  now.resize(static_cast<std::size_t>(n));
  if (file_.head.compare(0, now.size(), now) != 0) return Check::rewritten;
  const std::int64_t read = std::max(position_, resume_at_);
  if (st->st_size >= read) return Check::same;
  return st->st_size == 0 ? Check::rewritten : Check::shorter;
}

void FileReader::start_over() {
  position_ = resume_at_ = 0;
  line_ = 1;
  want_header_ = setup_.header;
  header_.clear();
  file_.head.clear();
  settled_ = {};
  open_record_.reset();
  ended_.reset();
}

Result<void> FileReader::begin(Window& window, Tail tail) {
  if (auto r = open(); !r) return r;
  tail_ = tail;
  framer_.reset();
  window.clear();
  stream_end_ = false;
  if (read_once()) {
    stop_at_ = ended_before() ? 0 : no_end;
    return {};
  }
  auto st = status();
  if (!st) return std::move(st).failure();
  stop_at_ = file_.size = st->st_size;
  resume_at_ = std::max(position_, resume_at_);
  if (stop_at_ < resume_at_ && tail == Tail::read) {
    return cut_failure(path(), resume_at_, stop_at_);
  }
  if (want_header_) line_ = 1;
  return seek(window, want_header_ ? 0 : resume_at_);
}

Result<void> FileReader::seek(Window& window, std::int64_t at) {
  window.clear();
  framer_.reset();
  stream_end_ = false;
  position_ = at;
  return stream_->seek(at);
}

Result<Got> FileReader::fill(Window& window) {
  if (window.too_large()) {
    const bool quotes = framer_.in_quotes();
    const auto at = position_ + static_cast<std::int64_t>(quotes ? framer_.quote_at() : 0);
    return data_failure(at,
                        quotes ? "a quoted field that begins here is not closed within 64 MiB"
                               : "a record that begins here does not end within 64 MiB",
                        "mend the file, or set source.format to what it holds");
  }
  auto got = window.fill(*stream_);
  if (got && got->end) stream_end_ = true;
  if (got && file_.pipe) file_.compression = stream_->compression();
  return got;
}

Failure FileReader::data_failure(std::int64_t at, std::string what, std::string hint) const {
  return {.cls = FailureClass::setup,
          .where = path() + " byte " + std::to_string(at),
          .what = std::move(what),
          .hint = std::move(hint),
          .exit = ExitCode::data};
}

// The byte order mark at the head of a file is no part of its first record.
std::optional<FileReader::Step> FileReader::skip_bom(Window& window) {
  if (position_ != 0) return std::nullopt;
  const std::string_view bytes = window.bytes();
  if (bytes.size() < bom.size() && !stream_end_ && bom.starts_with(bytes)) return Step::hungry;
  if (!bytes.starts_with(bom)) return std::nullopt;
  window.consume(bom.size());
  position_ = static_cast<std::int64_t>(bom.size());
  return std::nullopt;
}

// Before the first record: the mark, the header, and the way to where reading goes on. full: it is
// there.
Result<FileReader::Step> FileReader::find_place(Window& window, Batch& batch) {
  if (position_ < resume_at_ || want_header_) {
    if (auto step = skip_bom(window)) return *step;
  }
  Frame frame;
  while (want_header_) {
    const bool last = stream_end_ && tail_ == Tail::read;
    if (!framer_.next(window.bytes(), last, frame)) return stream_end_ ? Step::done : Step::hungry;
    if (!frame.blank) {
      header_ = frame.value;
      want_header_ = false;
    }
    if (line_ != 0) line_ += frame.lines;
    if (resume_at_ <= position_) {
      const std::uint32_t span = span_in(batch);
      position_ += static_cast<std::int64_t>(frame.size);
      batch.spans[span].next = {position_};
    } else {
      position_ += static_cast<std::int64_t>(frame.size);
    }
    window.consume(frame.size);
  }
  if (position_ < resume_at_) line_ = 0;
  if (position_ < resume_at_ && !read_once()) {
    if (auto r = seek(window, resume_at_); !r) return std::move(r).failure();
  }
  if (position_ < resume_at_) {
    const auto skip = std::min<std::int64_t>(resume_at_ - position_,
                                             static_cast<std::int64_t>(window.bytes().size()));
    window.consume(static_cast<std::size_t>(skip));
    position_ += skip;
    if (position_ < resume_at_ && stream_end_) return cut_failure(path(), resume_at_, position_);
    if (position_ < resume_at_) return Step::hungry;
  }
  if (open_record_) return mend_open_record(window, batch);
  return Step::full;
}

// The last record that was read had no line feed. If its line end has come, it is passed over; if
// more text has come, the record was cut, and the whole of it is read again.
Result<FileReader::Step> FileReader::mend_open_record(Window& window, Batch& batch) {
  const std::string_view bytes = window.bytes();
  if ((bytes.empty() || bytes == "\r") && !stream_end_) return Step::hungry;
  if (bytes.empty() || bytes == "\r") return Step::done;
  const std::size_t end = bytes.starts_with('\n') ? 1 : bytes.starts_with("\r\n") ? 2 : 0;
  if (end > 0) {
    const std::uint32_t span = span_in(batch);
    window.consume(end);
    position_ += static_cast<std::int64_t>(end);
    batch.spans[span].next = {position_};
    open_record_.reset();
    return Step::full;
  }
  setup_.log->event(
      Level::warn, "file.record_continued",
      {{"path", path()},
       {"byte", std::to_string(*open_record_)},
       {"means", "it was read without its line end and has grown: read again whole"}});
  resume_at_ = *open_record_;
  open_record_.reset();
  line_ = 0;
  if (!compressed()) {
    if (auto r = seek(window, resume_at_); !r) return std::move(r).failure();
    return Step::hungry;
  }
  close();
  position_ = 0;
  want_header_ = setup_.header;
  if (auto r = begin(window, tail_); !r) return std::move(r).failure();
  return Step::hungry;
}

Result<FileReader::Step> FileReader::frame(Window& window, Batch& batch,
                                           const BatchLimits& limits) {
  if (std::max(position_, resume_at_) >= stop_at_) return Step::done;
  if (!at_its_place() || position_ == 0 || open_record_) {
    if (auto step = skip_bom(window)) return *step;
    auto found = find_place(window, batch);
    if (!found || *found != Step::full) return found;
  }
  const std::string_view bytes = window.bytes();
  const bool last = stream_end_ && tail_ == Tail::read;
  const std::size_t first = batch.records.size();
  const auto room = static_cast<std::size_t>(std::max<std::int64_t>(stop_at_ - position_, 0));
  std::size_t used = 0;
  Frame f;
  bool hungry = false;
  while (batch.records.size() < limits.records && batch.bytes < limits.bytes && used < room) {
    if (!framer_.next(bytes.substr(used), last, f)) {
      hungry = true;
      break;
    }
    if (!f.blank) {
      Record& r = batch.records.emplace_back();
      r.value = f.value;
      r.offset = {position_ + static_cast<std::int64_t>(used)};
      r.line = line_;
      batch.bytes += f.size;
    }
    if (f.open) open_record_ = position_ + static_cast<std::int64_t>(used);
    if (line_ != 0) line_ += f.lines;
    used += f.size;
  }
  if (used > 0) take(window, batch, used, first);
  if (used >= room && !f.open) return Step::done;
  if (!hungry) return f.open ? Step::done : Step::full;
  return stream_end_ ? pass_end(window) : Step::hungry;
}

// Records found in the window become the batch's: one copy for all of them.
void FileReader::take(Window& window, Batch& batch, std::size_t used, std::size_t first) {
  const std::uint32_t span = span_in(batch);
  if (batch.records.size() > first) {
    const char* from = window.bytes().data();
    const char* home = batch.arena.copy(window.bytes().substr(0, used)).data();
    if (setup_.header) attach_header(batch);
    for (std::size_t i = first; i < batch.records.size(); ++i) {
      Record& r = batch.records[i];
      r.value = {home + (r.value.data() - from), r.value.size()};
      r.span = span;
      if (setup_.header) {
        r.header_first = header_at_;
        r.header_count = 1;
      }
    }
  }
  window.consume(used);
  position_ += static_cast<std::int64_t>(used);
  batch.spans[span].next = {position_};
}

// One entry for all records of this file in the batch.
void FileReader::attach_header(Batch& batch) {
  if (header_at_ < batch.headers.size() && batch.headers[header_at_].value == header_) return;
  header_at_ = static_cast<std::uint32_t>(batch.headers.size());
  batch.headers.push_back({"csv.header", batch.arena.copy(header_)});
}

// No more bytes, and what is left is no whole record.
Result<FileReader::Step> FileReader::pass_end(const Window& window) const {
  if (framer_.in_quotes() && tail_ == Tail::read) {
    return data_failure(position_ + static_cast<std::int64_t>(framer_.quote_at()),
                        "a quoted field that begins here is not closed at the end of the file",
                        "mend the file, or wait until it is whole");
  }
  const std::int64_t end = position_ + static_cast<std::int64_t>(window.bytes().size());
  if (!read_once() && tail_ == Tail::read && end < stop_at_) {
    return cut_failure(path(), stop_at_, end);
  }
  return Step::done;
}

std::uint32_t FileReader::span_in(Batch& batch) {
  if (span_ >= batch.spans.size() || batch.spans[span_].partition != partition_) {
    span_ = batch.span_of(partition_, {position_});
  }
  return span_;
}

void FileReader::finish(Batch& batch) {
  if (!compressed() || ended_before()) return;
  ended_ = {position_, stream_->raw_taken()};
  passed_end_ = true;
  span_in(batch);
  settle(batch);
}

void FileReader::settle(Batch& batch) {
  if (span_ < batch.spans.size() && batch.spans[span_].partition == partition_) {
    if (file_.pipe) return;
    settled_ = identity();
    batch.spans[span_].identity = settled_.text();
  }
}

Identity FileReader::identity() {
  Identity id;
  id.device = file_.device;
  id.inode = file_.inode;
  if (!compressed() && stream_) {
    extend_head();
    if (const auto tail = position_ > 0 ? tail_digest(stream_->fd(), position_) : std::nullopt) {
      id.tail_at = position_;
      id.tail_digest = *tail;
    }
  }
  id.set_heads(file_.head);
  id.open_record = open_record_;
  if (compressed()) id.ended = ended_;
  return id;
}

// A file that was short when it was looked at has more of a head now, unless it was written anew
// meanwhile.
void FileReader::extend_head() {
  if (file_.head.size() >= head_bytes) return;
  std::string head(head_bytes, '\0');
  const ssize_t n = read_at(stream_->fd(), head.data(), head.size(), 0);
  head.resize(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  if (head.starts_with(file_.head)) file_.head = std::move(head);
}

}  // namespace flow::files
