// Replays histories without libFuzzer, under any compiler: the seeds, and the files and folders
// that are named.
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/fuzz/seeds.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace erar::fuzz {
namespace {

void write_seeds(const std::filesystem::path& folder) {
  for (const auto& [name, bytes] : make_seeds())
    std::ofstream(folder / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
}

// The name comes first: a history that is judged wrong ends the program.
void replay(const std::string& name, const Bytes& bytes) {
  std::printf("%s\n", name.c_str());
  std::fflush(stdout);
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

bool replay_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "fuzz_replay: %s: cannot be read\n", path.c_str());
    return false;
  }
  replay(path, Bytes{std::istreambuf_iterator<char>(file), {}});
  return true;
}

int replay_all(char** names, int count) {
  std::size_t replayed = 0;
  for (const auto& [name, bytes] : make_seeds()) {
    replay(name, bytes);
    replayed++;
  }
  for (int i = 0; i < count; i++) {
    const std::filesystem::path path = names[i];
    if (!std::filesystem::is_directory(path)) {
      if (!replay_file(path)) return 1;
      replayed++;
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      if (!replay_file(entry.path())) return 1;
      replayed++;
    }
  }
  std::printf("%zu histories\n", replayed);
  return 0;
}

}  // namespace
}  // namespace erar::fuzz

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--write-seeds") == 0) {
    erar::fuzz::write_seeds(argv[2]);
    return 0;
  }
  if (argc > 1 && argv[1][0] == '-') {
    std::printf(
        "Usage: fuzz_replay [FILE | FOLDER]...\n"
        "       fuzz_replay --write-seeds FOLDER\n"
        "Replays the seeds and the histories in the files; ends at the first that is judged "
        "wrong.\n");
    return std::strcmp(argv[1], "--help") == 0 ? 0 : 2;
  }
  return erar::fuzz::replay_all(argv + 1, argc - 1);
}
