#include "core/suggest.h"

#include <algorithm>
#include <cctype>
#include <compare>
#include <cstddef>

namespace flow {
namespace {

constexpr std::size_t longest_compared = 64;

std::string folded(std::string_view name) {
  std::string out(name);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) {
    return c == '-' ? '_' : static_cast<char>(std::tolower(c));
  });
  return out;
}

// Edits between two short names: insert, delete, change, swap of neighbours. Of equally many, those
// with a swap are nearer: it keeps every letter.
struct Edits {
  std::size_t count = 0;
  std::size_t without_swap = 0;

  Edits operator+(Edits more) const {
    return {count + more.count, without_swap + more.without_swap};
  }
  auto operator<=>(const Edits&) const = default;
};
constexpr Edits one{1, 1};
constexpr Edits swap{1, 0};

Edits distance(const std::string& a, const std::string& b) {
  std::vector<Edits> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = {j, j};
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = {i, i};
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const Edits change = last[j - 1] + (a[i - 1] == b[j - 1] ? Edits{} : one);
      row[j] = std::min({last[j] + one, row[j - 1] + one, change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + swap);
      }
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

}  // namespace

std::string nearest_name(std::string_view wrong, const std::vector<std::string_view>& names) {
  if (wrong.empty() || wrong.size() > longest_compared) return "";
  const std::string from = folded(wrong);
  std::string_view best;
  Edits best_edits;
  for (const std::string_view name : names) {
    const std::string to = folded(name);
    const std::size_t allowed =
        std::max<std::size_t>(1, (std::max(from.size(), to.size()) + 1) / 3);
    const Edits edits = distance(from, to);
    if (edits.count > allowed || edits.count >= from.size() || edits.count >= to.size()) continue;
    if (best.empty() || edits < best_edits) {
      best = name;
      best_edits = edits;
    }
  }
  return std::string(best);
}

std::string did_you_mean(std::string_view wrong, const std::vector<std::string_view>& names) {
  const std::string near = nearest_name(wrong, names);
  return near.empty() ? "" : "; did you mean \"" + near + "\"?";
}

}  // namespace flow
