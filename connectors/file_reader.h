#pragma once
// One file (or pipe) and its records: opens it where its position says, takes records out of it
// pass by pass, and knows what to store as its position.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <sys/stat.h>

#include "connectors/file_framing.h"
#include "connectors/file_identity.h"
#include "connectors/file_stream.h"
#include "connectors/file_window.h"
#include "core/ports.h"

namespace flow::files {

struct ReaderSetup {
  FormatKind format = FormatKind::json;
  char delimiter = ',';
  bool header = false;  // CSV: the first record names the columns
  Compression compression = Compression::automatic;
  Log* log = nullptr;
};

// What is done with a last line that has no line feed: read it (a bounded run, a file that is
// replaced) or hold it until it is completed.
enum class Tail : std::uint8_t { read, hold };

// How a file that is open stands against what was read of it.
enum class Check : std::uint8_t { same, rewritten, shorter };

// Shape: begin() starts a pass, which ends at the end of the file as it was then; frame() and
// fill() alternate until frame() says done. Units: bytes of the decompressed stream. Errors: exit
// 65 for damaged input, 74 for I/O, 78 for a file that was cut. Threads: one.
class FileReader {
 public:
  FileReader(const ReaderSetup& setup, Sighting file, const Placement& placement,
             const std::optional<Identity>& known);

  const std::string& path() const { return partition_.topic; }
  const PartitionId& partition() const { return partition_; }
  std::int64_t position() const { return std::max(position_, resume_at_); }
  bool pipe() const { return file_.pipe; }
  // Files whose end is final: pipes and compressed files.
  bool read_once() const { return file_.pipe || compressed(); }
  std::uint64_t device() const { return file_.device; }
  std::uint64_t inode() const { return file_.inode; }
  const std::string& head() const { return file_.head; }
  std::int64_t size() const { return file_.size; }  // of the file, as last seen
  std::int64_t raw_taken() const;                   // of the file, for progress
  bool ended_before() const;  // compressed: its end was reached in an earlier run

  // Opens the file if that was not done. Rotated since it was looked at: found by its inode, under
  // its new name.
  Result<void> open();
  Result<struct stat> status();
  Result<Check> check();
  Result<void> begin(Window& window, Tail tail);
  enum class Step : std::uint8_t { full, hungry, done };
  Result<Step> frame(Window& window, Batch& batch, const BatchLimits& limits);
  Result<Got> fill(Window& window);
  // After the last pass of a compressed file: its end is part of the identity, so that no run
  // unpacks it again.
  void finish(Batch& batch);
  // Writes position and identity into the batch's span, if it has one of this file.
  void settle(Batch& batch);
  // What is to be remembered of it, as of the last settle().
  Known known() const { return {path(), settled_, position()}; }

  void rename(std::string path) { partition_.topic = std::move(path); }
  void start_over();  // rewritten: from byte 0, as a new file
  void close() { stream_.reset(); }
  bool is_open() const { return stream_ != nullptr; }

 private:
  bool compressed() const {
    return file_.compression == Compression::gzip || file_.compression == Compression::zstd;
  }
  bool at_its_place() const { return position_ >= resume_at_ && !want_header_; }
  Identity identity();
  void extend_head();
  Result<Fd> open_inode(const std::string& name) const;
  Result<void> seek(Window& window, std::int64_t at);
  Result<Step> find_place(Window& window, Batch& batch);
  Result<Step> mend_open_record(Window& window, Batch& batch);
  std::optional<Step> skip_bom(Window& window);
  Result<Step> pass_end(const Window& window) const;
  Failure data_failure(std::int64_t at, std::string what, std::string hint) const;
  void attach_header(Batch& batch);
  void take(Window& window, Batch& batch, std::size_t used, std::size_t first);
  std::uint32_t span_in(Batch& batch);

  ReaderSetup setup_;
  Sighting file_;
  PartitionId partition_;
  Framer framer_;
  std::unique_ptr<InputStream> stream_;
  std::string header_;
  std::int64_t position_ = 0;   // where the window begins
  std::int64_t resume_at_ = 0;  // position_ is moved on to here before records are taken
  std::int64_t stop_at_ = 0;    // records that begin here or later are left for another pass
  std::uint32_t line_ = 0;      // 0: unknown
  std::uint32_t span_ = 0;
  std::uint32_t header_at_ = 0;
  bool want_header_ = false;
  bool stream_end_ = false;
  bool passed_end_ = false;  // compressed: everything was read
  Tail tail_ = Tail::read;
  std::optional<std::int64_t> open_record_;  // begins here, ends at position_ without line feed
  std::optional<Identity::Ended> ended_;
  Identity settled_;
};

}  // namespace flow::files
