#pragma once
// The nearest right name for a wrong one. Shape: pure functions.
#include <string>
#include <string_view>
#include <vector>

namespace flow {

// The name that a typing error would turn into `wrong`: swapped, missing, extra or changed letters,
// at most about one in three; case and "-" for "_" do not count. Empty: none is near.
std::string nearest_name(std::string_view wrong, const std::vector<std::string_view>& names);

// `; did you mean "x"?`, or empty.
std::string did_you_mean(std::string_view wrong, const std::vector<std::string_view>& names);

}  // namespace flow
