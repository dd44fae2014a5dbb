// What the netns tests share, and their main(): without root they fail at once and say why.
#include "tests/netns/support.h"

#include <dirent.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <random>
#include <thread>

#include "emu/netns/command.h"
#include "emu/netns/layout.h"
#include "emu/netns/namespace.h"

namespace erar::test {

std::string fabric_name(const std::string& label) { return fmt::format("t{}-{}", getpid(), label); }

FabricSpec make_spec(const std::string& label, FabricKind kind, unsigned ranks) {
  FabricSpec spec;
  spec.name = fabric_name(label);
  spec.kind = kind;
  spec.ranks = ranks;
  return spec;
}

Result<std::string> run_inside(const std::string& name, const std::vector<std::string>& argv) {
  std::string output;
  auto result = in_namespace(name, [&]() -> Result<void> {
    auto text = run_program(argv);
    if (!text) return text.error();
    output = *text;
    return {};
  });
  if (!result) return result.error();
  return output;
}

Result<void> ping(const Fabric& fabric, unsigned from, unsigned to) {
  auto output = run_inside(fabric.rank_namespace(from),
                           {"ping", "-q", "-c1", "-W2", ipv4_text(fabric.rank_ipv4(to))});
  if (output) return {};
  return refusal(fmt::format("rank {} to {}: {}", from, to, output.error().message()));
}

Result<void> ping_all_pairs(const Fabric& fabric) {
  for (unsigned from = 0; from < fabric.spec().ranks; ++from) {
    for (unsigned to = 0; to < fabric.spec().ranks; ++to) {
      auto answered = ping(fabric, from, to);
      if (!answered) return answered;
    }
  }
  return {};
}

std::vector<std::string> traces(const std::string& name) {
  std::vector<std::string> found;
  for (const std::string& other : all_namespace_names()) {
    if (other.compare(0, 5 + name.size(), "erar-" + name) == 0) found.push_back(other);
  }
  std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir("/run/erar/fabrics"), closedir);
  while (const dirent* entry = directory ? readdir(directory.get()) : nullptr) {
    std::string file = entry->d_name;
    if (file.compare(0, name.size(), name) == 0) found.push_back(file);
  }
  return found;
}

bool eventually(std::chrono::milliseconds limit, const std::function<bool()>& condition) {
  auto deadline = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

unsigned test_seed() {
  const char* text = std::getenv("ERAR_TEST_SEED");
  unsigned seed = text != nullptr ? static_cast<unsigned>(std::strtoul(text, nullptr, 10))
                                  : std::random_device{}();
  fmt::print("replay with: ERAR_TEST_SEED={} netns_test --gtest_filter={}.{}\n", seed,
             testing::UnitTest::GetInstance()->current_test_info()->test_suite_name(),
             testing::UnitTest::GetInstance()->current_test_info()->name());
  std::fflush(stdout);
  return seed;
}

}  // namespace erar::test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (!GTEST_FLAG_GET(list_tests) && geteuid() != 0) {
    fmt::print(stderr,
               "netns_test: FAILED: needs root (network namespaces, BPF): run it with sudo\n");
    return 1;
  }
  return RUN_ALL_TESTS();
}
