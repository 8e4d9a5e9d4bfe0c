#include "connectors/file_identity.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <unordered_map>
#include <utility>

namespace flow::files {

namespace {

constexpr std::size_t head_sizes[] = {64, 256, head_bytes};
// A shorter head proves too little to take another inode's position over.
constexpr std::size_t proof_bytes = 64;

// Takes what stands before the next `end` off `text`.
std::string_view take(std::string_view& text, char end) {
  const std::size_t at = text.find(end);
  const std::string_view part = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return part;
}

template <class Number>
bool read_number(std::string_view text, Number& number, int base = 10) {
  const auto end = text.data() + text.size();
  const auto r = std::from_chars(text.data(), end, number, base);
  return r.ec == std::errc() && r.ptr == end;
}

std::string hex(std::uint64_t number) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
  return text;
}

bool read_heads(std::string_view text, std::vector<HeadDigest>& heads) {
  while (!text.empty()) {
    std::string_view pair = take(text, ',');
    HeadDigest h;
    if (!read_number(take(pair, '.'), h.size) || !read_number(pair, h.digest, 16)) return false;
    if (h.size == 0 || h.size > head_bytes) return false;
    if (!heads.empty() && h.size <= heads.back().size) return false;
    heads.push_back(h);
  }
  return heads.size() <= std::size(head_sizes);
}

bool fits(const Known& k, const Sighting& s) {
  return s.compression != Compression::none || s.size >= k.position;
}

bool same_inode(const Known& k, const Sighting& s) {
  return k.identity.device == s.device && k.identity.inode == s.inode;
}

// Takes over another inode's position: only on proof, and never past the end.
bool is_copy(const Known& k, const Sighting& s) {
  return !k.identity.heads.empty() && k.identity.heads.back().size >= proof_bytes &&
         compare(k.identity, s) == Likeness::alike;
}

// The state of one place() call.
struct Placing {
  const std::vector<Known>& known;
  const std::vector<Sighting>& files;
  Placements out;
  std::vector<char> given;
  std::vector<char> settled;
  std::unordered_map<std::string_view, std::size_t> names;

  Placing(const std::vector<Known>& k, const std::vector<Sighting>& f)
      : known(k), files(f), given(k.size(), 0), settled(f.size(), 0) {
    out.files.resize(f.size());
    for (std::size_t i = 0; i < k.size(); ++i) names.emplace(k[i].path, i);
  }

  void give(std::size_t f, std::size_t k, Standing standing) {
    out.files[f] = {standing, known[k].position, k};
    if (!fits(known[k], files[f])) out.files[f] = {Standing::cut, known[k].position, k};
    given[k] = settled[f] = 1;
  }

  void by_inode(std::size_t f);
  void by_name(std::size_t f);
  void by_content(std::size_t f);
};

// The same inode with the same content, its own name first, then the furthest position.
void Placing::by_inode(std::size_t f) {
  std::optional<std::size_t> best;
  for (std::size_t k = 0; k < known.size(); ++k) {
    if (given[k] != 0 || !same_inode(known[k], files[f])) continue;
    const Likeness likeness = compare(known[k].identity, files[f]);
    if (likeness == Likeness::differs) continue;
    const auto rank = [&](std::size_t i) {
      return std::pair(known[i].path == files[f].path, known[i].position);
    };
    if (!best || rank(k) > rank(*best)) best = k;
  }
  if (!best) return;
  for (std::size_t k = 0; k < known.size(); ++k) {  // older names of the same file
    if (same_inode(known[k], files[f]) &&
        compare(known[k].identity, files[f]) != Likeness::differs) {
      given[k] = 1;
    }
  }
  give(f, *best, known[*best].path == files[f].path ? Standing::same : Standing::moved);
}

// A known name with another inode or other content.
void Placing::by_name(std::size_t f) {
  if (settled[f] != 0) return;
  const auto at = names.find(files[f].path);
  if (at == names.end()) return;
  const std::size_t k = at->second;
  const bool same_file = same_inode(known[k], files[f]);
  if (given[k] == 0 && !same_file && is_copy(known[k], files[f])) {
    give(f, k, Standing::copied);
    return;
  }
  const bool in_place = given[k] == 0 && same_file;
  out.files[f] = {in_place ? Standing::truncated : Standing::replaced, 0, k};
  settled[f] = 1;
}

// A new name that holds what a position was stored for, where that file is not found any more.
void Placing::by_content(std::size_t f) {
  if (settled[f] != 0 || files[f].head.size() < proof_bytes) return;
  const std::uint64_t first = digest(std::string_view(files[f].head).substr(0, proof_bytes));
  for (std::size_t k = 0; k < known.size(); ++k) {
    const auto& heads = known[k].identity.heads;
    if (given[k] != 0 || heads.empty() || heads.front().digest != first) continue;
    if (!fits(known[k], files[f]) || !is_copy(known[k], files[f])) continue;
    give(f, k, Standing::copied);
    return;
  }
}

}  // namespace

std::uint64_t digest(std::string_view bytes) {
  std::uint64_t h = 14695981039346656037ULL;
  for (const char c : bytes) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return h;
}

void Identity::set_heads(std::string_view head) {
  heads.clear();
  for (const std::size_t size : head_sizes) {
    const std::size_t n = std::min(size, head.size());
    if (n == 0 || (!heads.empty() && heads.back().size == n)) break;
    heads.push_back({static_cast<std::uint32_t>(n), digest(head.substr(0, n))});
  }
}

std::string Identity::text() const {
  std::string out = "v1:" + std::to_string(device) + ":" + std::to_string(inode) + ":";
  if (heads.empty()) out += "-";
  for (const HeadDigest& h : heads) {
    if (&h != heads.data()) out += ",";
    out += std::to_string(h.size) + "." + hex(h.digest);
  }
  out += tail_at > 0 ? ":" + std::to_string(tail_at) + "." + hex(tail_digest) : ":-";
  out += open_record ? ":" + std::to_string(*open_record) : ":-";
  out +=
      ended ? ":" + std::to_string(ended->position) + "." + std::to_string(ended->raw_size) : ":-";
  return out;
}

std::optional<Identity> Identity::parse(std::string_view text) {
  if (std::count(text.begin(), text.end(), ':') != 6 || take(text, ':') != "v1") {
    return std::nullopt;
  }
  Identity id;
  if (!read_number(take(text, ':'), id.device) || !read_number(take(text, ':'), id.inode)) {
    return std::nullopt;
  }
  const std::string_view heads = take(text, ':');
  if (heads != "-" && (heads.empty() || !read_heads(heads, id.heads))) return std::nullopt;
  std::string_view tail = take(text, ':');
  if (tail != "-") {
    if (!read_number(take(tail, '.'), id.tail_at) || !read_number(tail, id.tail_digest, 16) ||
        id.tail_at <= 0) {
      return std::nullopt;
    }
  }
  const std::string_view open = take(text, ':');
  if (open != "-" && (!read_number(open, id.open_record.emplace()) || *id.open_record < 0)) {
    return std::nullopt;
  }
  if (text != "-") {
    Ended& e = id.ended.emplace(Ended{});
    if (!read_number(take(text, '.'), e.position) || !read_number(text, e.raw_size) ||
        e.position < 0 || e.raw_size < 0) {
      return std::nullopt;
    }
  }
  return id;
}

Likeness compare(const Identity& identity, const Sighting& file) {
  if (identity.heads.empty()) return Likeness::alike;
  const HeadDigest* longest = nullptr;
  for (const HeadDigest& h : identity.heads) {
    if (h.size <= file.head.size()) longest = &h;
  }
  if (longest == nullptr) return Likeness::differs;
  if (digest(std::string_view(file.head).substr(0, longest->size)) != longest->digest) {
    return Likeness::differs;
  }
  if (longest != &identity.heads.back()) return Likeness::shorter;
  if (identity.tail_at > 0 && file.compression == Compression::none &&
      file.size >= identity.tail_at && file.tail) {
    const auto tail = file.tail(identity.tail_at);
    if (tail && *tail != identity.tail_digest) return Likeness::differs;
  }
  return Likeness::alike;
}

std::string_view name_of(Standing standing) {
  switch (standing) {
    case Standing::fresh: return "new";
    case Standing::same: return "same";
    case Standing::moved: return "rotated";
    case Standing::copied: return "copied";
    case Standing::truncated: return "truncated";
    case Standing::replaced: return "replaced";
    case Standing::cut: return "cut";
  }
  return "new";
}

Placements place(const std::vector<Known>& known, const std::vector<Sighting>& files) {
  Placing placing(known, files);
  for (std::size_t f = 0; f < files.size(); ++f) placing.by_inode(f);
  for (std::size_t f = 0; f < files.size(); ++f) placing.by_name(f);
  for (std::size_t f = 0; f < files.size(); ++f) placing.by_content(f);
  for (std::size_t k = 0; k < known.size(); ++k) {
    if (placing.given[k] == 0) placing.out.missing.push_back(k);
  }
  return std::move(placing.out);
}

}  // namespace flow::files
