#include "connectors/file_catalog.h"

#include <algorithm>
#include <cerrno>
#include <dirent.h>
#include <fnmatch.h>
#include <glob.h>
#include <map>
#include <memory>
#include <set>
#include <sys/stat.h>
#include <unordered_map>
#include <unordered_set>

#include "connectors/file_stream.h"

namespace flow::files {

namespace {

bool has_wildcard(const std::string& pattern) {
  return pattern.find_first_of("*?[") != std::string::npos;
}

std::vector<std::string> matches(const std::string& pattern) {
  struct stat st {};
  if (pattern == "-" || !has_wildcard(pattern) || ::stat(pattern.c_str(), &st) == 0) {
    if (pattern != "-" && ::stat(pattern.c_str(), &st) != 0 && errno == ENOENT) return {};
    return {pattern};
  }
  glob_t found{};
  std::vector<std::string> paths;
  if (::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found) == 0) {
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  }
  ::globfree(&found);
  std::sort(paths.begin(), paths.end());
  return paths;
}

Sighting pipe_sighting(const std::string& path) {
  Sighting s;
  s.path = path;
  s.pipe = true;
  return s;
}

// The first decompressed bytes. A stream that is damaged so early has none; reading it says why.
std::string read_head(InputStream& stream) {
  std::string head(head_bytes, '\0');
  std::size_t have = 0;
  while (have < head.size()) {
    auto got = stream.read(head.data() + have, head.size() - have);
    if (!got || got->bytes == 0) break;
    have += got->bytes;
  }
  head.resize(have);
  return head;
}

// Rotated files that no path matches any more: found by inode where they were.
class Siblings {
 public:
  std::string find(const Known& known) {
    const std::string directory = directory_of(known.path);
    auto [at, fresh] = inodes_.try_emplace(directory);
    if (fresh) scan(directory, at->second);
    const auto name = at->second.find(known.identity.inode);
    return name == at->second.end() ? std::string() : directory + "/" + name->second;
  }

 private:
  static void scan(const std::string& directory, std::map<std::uint64_t, std::string>& inodes) {
    const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(directory.c_str()), &::closedir);
    if (!dir) return;
    while (const dirent* entry = ::readdir(dir.get())) inodes[entry->d_ino] = entry->d_name;
  }
  std::map<std::string, std::map<std::uint64_t, std::string>> inodes_;
};

bool wanted(const std::vector<std::string>& patterns, const std::string& path) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& p) {
    return p == path || ::fnmatch(p.c_str(), path.c_str(), FNM_PATHNAME | FNM_PERIOD) == 0;
  });
}

// The rest of a rotated file comes before the file that has its old name now.
std::vector<Found> in_reading_order(std::vector<Found> files, const std::vector<Known>& known) {
  std::unordered_map<std::string_view, std::size_t> by_old_name;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const Placement& p = files[i].placement;
    if (p.standing != Standing::moved && p.standing != Standing::copied) continue;
    if (known[*p.known].path != files[i].file.path) by_old_name[known[*p.known].path] = i;
  }
  std::vector<char> taken(files.size(), 0);
  std::vector<Found> ordered;
  ordered.reserve(files.size());
  for (std::size_t i = 0; i < files.size(); ++i) {
    std::vector<std::size_t> chain;
    std::size_t at = i;
    for (;;) {
      if (taken[at] != 0) break;
      taken[at] = 1;
      chain.push_back(at);
      const auto older = by_old_name.find(files[at].file.path);
      if (older == by_old_name.end()) break;
      at = older->second;
    }
    for (auto c = chain.rbegin(); c != chain.rend(); ++c) ordered.push_back(std::move(files[*c]));
  }
  return ordered;
}

}  // namespace

std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string name_of_inode(const std::string& directory, std::uint64_t device, std::uint64_t inode) {
  Known known;
  known.path = directory + "/.";
  known.identity.inode = inode;
  const std::string path = Siblings().find(known);
  struct stat st {};
  if (path.empty() || ::stat(path.c_str(), &st) != 0) return {};
  return st.st_dev == device && st.st_ino == inode ? path : std::string();
}

Expansion expand(const std::vector<std::string>& patterns) {
  Expansion out;
  std::unordered_set<std::string> seen;
  for (const std::string& pattern : patterns) {
    const auto paths = matches(pattern);
    if (paths.empty()) out.unmatched.push_back(pattern);
    for (const std::string& path : paths) {
      if (seen.insert(path).second) out.paths.push_back(path);
    }
  }
  return out;
}

std::optional<std::uint64_t> tail_digest(int fd, std::int64_t at) {
  char bytes[tail_bytes];
  const auto size = static_cast<std::size_t>(std::min<std::int64_t>(at, tail_bytes));
  const ssize_t n = read_at(fd, bytes, size, at - static_cast<std::int64_t>(size));
  if (n != static_cast<ssize_t>(size)) return std::nullopt;
  return digest({bytes, size});
}

Result<Sighting> look(const std::string& path, Compression compression) {
  if (path == "-") return pipe_sighting(path);
  struct stat st {};
  if (::stat(path.c_str(), &st) != 0) return io_failure(path, "look at", errno);
  if (S_ISDIR(st.st_mode)) {
    return Failure{.cls = FailureClass::setup,
                   .where = path,
                   .what = "is a directory, not a file",
                   .hint = "name files in it, e.g. " + path + "/*.jsonl"};
  }
  if (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode)) return pipe_sighting(path);
  if (!S_ISREG(st.st_mode)) {
    return Failure{.cls = FailureClass::setup,
                   .where = path,
                   .what = "is neither a file nor a pipe",
                   .hint = "name a file that holds records"};
  }
  auto fd = open_for_reading(path);
  if (!fd) return std::move(fd).failure();
  if (::fstat(fd->get(), &st) != 0) return io_failure(path, "look at", errno);
  Sighting s;
  s.path = path;
  s.device = st.st_dev;
  s.inode = st.st_ino;
  s.size = st.st_size;
  InputStream stream(std::move(*fd), path, Medium::file, compression);
  s.head = read_head(stream);
  s.compression = stream.compression();
  s.tail = [path](std::int64_t at) -> std::optional<std::uint64_t> {
    auto again = open_for_reading(path);
    return again ? tail_digest(again->get(), at) : std::nullopt;
  };
  return s;
}

Result<std::vector<Known>> load_known(const Context& context) {
  std::vector<Known> known;
  if (context.state == nullptr) return known;
  auto spans = context.state->positions(context.pipeline->name);
  if (!spans) return std::move(spans).failure();
  for (const Span& s : *spans) {
    if (!s.identity.starts_with("v")) continue;  // of another source kind
    auto identity = Identity::parse(s.identity);
    if (!identity) {
      return Failure{.cls = FailureClass::setup,
                     .where = context.state->location() + ": position of " + s.partition.topic,
                     .what = "the file identity \"" + s.identity +
                             "\" is not one that this flow "
                             "can read",
                     .hint = "use the flow that wrote it, or a newer one"};
    }
    known.push_back({s.partition.topic, std::move(*identity), s.next.next});
  }
  return known;
}

Result<Survey> survey(const FileSourceSpec& spec, const std::vector<Known>& known,
                      const SurveyWish& wish) {
  Survey out;
  std::set<std::pair<std::uint64_t, std::uint64_t>> inodes(wish.held.begin(), wish.held.end());
  std::vector<Sighting> seen;
  const auto add = [&](const std::string& path) -> Result<void> {
    struct stat st {};
    if (!inodes.empty() && ::stat(path.c_str(), &st) == 0 &&
        inodes.contains({st.st_dev, st.st_ino})) {
      return {};
    }
    auto sighting = look(path, spec.compression);
    if (!sighting && wish.trouble == nullptr) return std::move(sighting).failure();
    if (!sighting) {
      wish.trouble->push_back(std::move(sighting).failure());
    } else if (sighting->pipe || inodes.emplace(sighting->device, sighting->inode).second) {
      seen.push_back(std::move(*sighting));
    }
    return {};
  };
  Expansion paths = expand(spec.paths);
  out.unmatched = std::move(paths.unmatched);
  for (const std::string& path : paths.paths) {
    if (auto r = add(path); !r) return std::move(r).failure();
  }
  Placements placed = place(known, seen);
  Siblings siblings;
  const std::size_t by_path = seen.size();
  const std::set<std::string> names(paths.paths.begin(), paths.paths.end());
  for (const std::size_t k : placed.missing) {
    if (!wanted(spec.paths, known[k].path)) continue;
    const std::string path = siblings.find(known[k]);
    auto sibling = path.empty() ? Result<Sighting>(Sighting{}) : look(path, spec.compression);
    if (!sibling || compare(known[k].identity, *sibling) != Likeness::alike ||
        known[k].identity.device != sibling->device || known[k].identity.heads.empty()) {
      if (!names.contains(known[k].path)) out.gone.push_back(known[k]);
    } else if (sibling->size > known[k].position &&
               inodes.emplace(sibling->device, sibling->inode).second) {
      seen.push_back(std::move(*sibling));
    }
  }
  if (seen.size() > by_path) placed = place(known, seen);
  for (std::size_t i = 0; i < seen.size(); ++i) {
    out.files.push_back({std::move(seen[i]), placed.files[i]});
  }
  out.files = in_reading_order(std::move(out.files), known);
  return out;
}

Failure cut_failure(const std::string& path, std::int64_t position, std::int64_t size) {
  return {.cls = FailureClass::setup,
          .where = path,
          .what = "has " + std::to_string(size) + " bytes, but was read up to byte " +
                  std::to_string(position) + ": it was cut",
          .hint =
              "put the whole file back; or, to read what is there now from its start, copy it "
              "to a new name that `path` matches and remove this one"};
}

Failure unmatched_failure(const std::string& pattern) {
  return {.cls = FailureClass::setup,
          .where = "source.path " + pattern,
          .what = has_wildcard(pattern) ? "matches no file" : "there is no such file",
          .hint =
              "check the path and the rights on its directory; `flow run --follow` waits for "
              "files to appear"};
}

void report(const Survey& found, const std::vector<Known>& known, Log& log) {
  std::set<std::size_t> carried_on;
  for (const Found& f : found.files) {
    const Standing s = f.placement.standing;
    if (s == Standing::moved || s == Standing::copied) carried_on.insert(*f.placement.known);
  }
  for (const Found& f : found.files) {
    const Placement& p = f.placement;
    Fields fields{{"path", f.file.path}};
    if (p.known) fields.emplace_back("was", known[*p.known].path);
    fields.emplace_back("position", std::to_string(p.position));
    switch (p.standing) {
      case Standing::moved: log.event(Level::info, "file.rotated", fields); break;
      case Standing::copied: log.event(Level::info, "file.copied", fields); break;
      case Standing::truncated:
        fields.emplace_back("read_before", std::to_string(known[*p.known].position));
        fields.emplace_back("means", "same inode, other content: read from its start");
        log.event(Level::warn, "file.truncated", fields);
        break;
      case Standing::replaced:
        if (carried_on.contains(*p.known)) break;  // rotated: said there
        fields.emplace_back("read_before", std::to_string(known[*p.known].position));
        fields.emplace_back("means", "another file under this name: read from its start");
        log.event(Level::warn, "file.replaced", fields);
        break;
      case Standing::fresh:
      case Standing::same:
      case Standing::cut: break;
    }
  }
  if (found.gone.empty()) return;
  log.event(Level::info, "file.gone",
            {{"files", std::to_string(found.gone.size())},
             {"first", found.gone.front().path},
             {"position", std::to_string(found.gone.front().position)},
             {"means", "what they held past the position, if anything, was not read"}});
}

}  // namespace flow::files
