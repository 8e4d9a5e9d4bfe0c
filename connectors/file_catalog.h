#pragma once
// Which files there are and where reading each of them goes on: the paths of a pipeline, looked at
// and matched with the positions that are known.
#include <string>
#include <vector>

#include "connectors/file_identity.h"
#include "connectors/file_io.h"
#include "core/ports.h"
#include "core/registry.h"

namespace flow::files {

// One path or glob of the pipeline and what it stands for now.
struct Expansion {
  std::vector<std::string> paths;      // pattern by pattern, each in byte order, none twice
  std::vector<std::string> unmatched;  // patterns that match nothing
};
Expansion expand(const std::vector<std::string>& patterns);

// The path as of now. Errors: missing, unreadable, a directory.
Result<Sighting> look(const std::string& path, Compression compression);
// The digest of the up to tail_bytes bytes before `at`.
std::optional<std::uint64_t> tail_digest(int fd, std::int64_t at);

// The pipeline's positions that the state holds. Empty without a state.
Result<std::vector<Known>> load_known(const Context& context);

struct Found {
  Sighting file;
  Placement placement;
};

// Everything that is to be read, in reading order: as the paths say, but the rest of a rotated file
// before the file that took its name. A rotated file that the paths no longer match is found by its
// inode in the same directory.
struct Survey {
  std::vector<Found> files;
  std::vector<Known> gone;             // known, matched by the paths, and nowhere to be found
  std::vector<std::string> unmatched;  // patterns that match nothing
};
// Files whose inode is in `held` (already being read) are left out. Errors: with `strict`, what
// look() says; without, such paths are put into `trouble`.
struct SurveyWish {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> held;  // device, inode
  std::vector<Failure>* trouble = nullptr;
};
Result<Survey> survey(const FileSourceSpec& spec, const std::vector<Known>& known,
                      const SurveyWish& wish = {});

// The name in `directory` of this inode; empty when there is none.
std::string name_of_inode(const std::string& directory, std::uint64_t device, std::uint64_t inode);
std::string directory_of(const std::string& path);

// Why a file cannot be read on, and the ways out.
Failure cut_failure(const std::string& path, std::int64_t position, std::int64_t size);
Failure unmatched_failure(const std::string& pattern);

// Says in the log how each file was taken; files that are new or unchanged are not worth a line.
void report(const Survey& found, const std::vector<Known>& known, Log& log);

}  // namespace flow::files
