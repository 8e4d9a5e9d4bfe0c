#pragma once
#include <filesystem>
#include <string>
#include <string_view>

namespace flow::test {

// A new directory (0700) under TMPDIR, removed with all it holds when this goes out of scope.
// Errors: throws std::runtime_error.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

  // Replaces the file `name` by these bytes; makes missing directories; returns its path.
  std::filesystem::path write(std::string_view name, std::string_view bytes) const;
  std::filesystem::path append(std::string_view name, std::string_view bytes) const;

 private:
  std::filesystem::path path_;
};

// All bytes of a file; throws when it cannot be read.
std::string read_file(const std::filesystem::path& path);

}  // namespace flow::test
