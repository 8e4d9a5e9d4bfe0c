#pragma once
// Which file a stored position belongs to. A name is not enough: files are rotated, truncated,
// replaced and copied.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/pipeline.h"

namespace flow::files {

constexpr std::size_t head_bytes = 1024;
constexpr std::size_t tail_bytes = 64;

// 64-bit FNV-1a: tells files apart, guards against nobody.
std::uint64_t digest(std::string_view bytes);

struct HeadDigest {
  std::uint32_t size = 0;
  std::uint64_t digest = 0;
};

// What is kept beside a position. Shape: device and inode; digests of the first 64, 256 and 1024
// bytes (fewer when the file was shorter), so that a shorter file can be compared too; the digest
// of the 64 bytes before a place that was read; where the last record began if it had no line feed;
// for compressed files the position and the file's size at its end. Digests are of the decompressed
// bytes. Text: v1:dev:ino:heads:tail:open:ended, "-" where absent.
struct Identity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::vector<HeadDigest> heads;  // growing sizes
  std::int64_t tail_at = 0;       // 0: no tail digest
  std::uint64_t tail_digest = 0;
  std::optional<std::int64_t> open_record;
  struct Ended {
    std::int64_t position = 0;
    std::int64_t raw_size = 0;
  };
  std::optional<Ended> ended;

  void set_heads(std::string_view head);
  std::string text() const;
  // nullopt: not a text of ours, or of a newer version.
  static std::optional<Identity> parse(std::string_view text);
};

// A file as it is now. head: its first decompressed bytes, up to head_bytes. tail(at): the digest
// of the up to 64 bytes before `at`; nullopt where it cannot be had (compressed).
struct Sighting {
  std::string path;
  bool pipe = false;  // stdin, FIFO, device: read from where it stands, no position
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t size = 0;
  Compression compression = Compression::none;
  std::string head;
  std::function<std::optional<std::uint64_t>(std::int64_t at)> tail;
};

// alike: all that is known matches. shorter: the file ends before the known head does, and matches
// as far as it goes.
enum class Likeness : std::uint8_t { alike, shorter, differs };
Likeness compare(const Identity& identity, const Sighting& file);

// A stored position.
struct Known {
  std::string path;
  Identity identity;
  std::int64_t position = 0;
};

// What a file turned out to be, beside what is known.
//   fresh      never seen                          read from 0
//   same       the file the position was stored for resume
//   moved      the same file under a new name      resume
//   copied     the same bytes in another inode     resume
//   truncated  the same inode with other content   read from 0
//   replaced   another file under a known name     read from 0
//   cut        the known content, but shorter than the position: refused
enum class Standing : std::uint8_t { fresh, same, moved, copied, truncated, replaced, cut };
std::string_view name_of(Standing standing);

struct Placement {
  Standing standing = Standing::fresh;
  std::int64_t position = 0;
  std::optional<std::size_t>
      known;  // index of the stored position it goes by (or, truncated and replaced, went by)
};

struct Placements {
  std::vector<Placement> files;      // one per sighting
  std::vector<std::size_t> missing;  // known positions that no file carries on
};

// Gives each file the stored position that belongs to it. Every stored position is given once at
// most.
Placements place(const std::vector<Known>& known, const std::vector<Sighting>& files);

}  // namespace flow::files
