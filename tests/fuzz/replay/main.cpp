// Runs a fuzz target once on every file of the directories given: a crash or a failed check ends
// it.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int argc, char** argv) {
  std::size_t inputs = 0;
  for (int at = 1; at < argc; ++at) {
    if (!std::filesystem::is_directory(argv[at])) {
      std::cerr << "no directory " << argv[at] << ": a fuzz target needs at least one example\n";
      return 1;
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[at])) {
      if (!entry.is_regular_file()) continue;
      std::ifstream file(entry.path(), std::ios::binary);
      const std::string bytes{std::istreambuf_iterator<char>(file),
                              std::istreambuf_iterator<char>()};
      std::cerr << entry.path().string() << '\n';
      LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
      ++inputs;
    }
  }
  std::cout << inputs << " inputs replayed\n";
  return inputs == 0 ? 1 : 0;
}
