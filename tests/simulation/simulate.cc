// simulate: runs scenarios of any range of seeds; prints the seed of one that breaks a rule.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>

#include "core/clock.h"
#include "tests/simulation/scenario.h"

namespace {

struct Seeds {
  std::uint64_t first = 0;
  std::uint64_t end = 0;
};

std::string parse_seeds(const std::string& text, Seeds& seeds) {
  const auto colon = text.find(':');
  try {
    std::size_t used = 0;
    seeds.first = std::stoull(text, &used);
    if (colon == std::string::npos && used == text.size()) {
      seeds.end = seeds.first + 1;
      return {};
    }
    if (used == colon) {
      seeds.end = std::stoull(text.substr(colon + 1), &used);
      if (used == text.size() - colon - 1 && seeds.first < seeds.end) return {};
    }
  } catch (const std::exception&) {
  }
  return "must be A:B with A < B (seeds A to B-1), or one seed";
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Allreduce calls over simulated rings with faults that a seed draws; every run of a "
      "seed is the same."};
  std::string text = "0:1000";
  bool verbose = false;
  bool keep_going = false;
  app.add_option("--seeds", text, "A:B runs seeds A to B-1; one number runs that seed")
      ->capture_default_str();
  app.add_flag("--verbose", verbose, "print each scenario before it runs");
  app.add_flag("--keep-going", keep_going, "do not stop at the first that breaks a rule");
  CLI11_PARSE(app, argc, argv);
  Seeds seeds;
  if (const std::string why = parse_seeds(text, seeds); !why.empty()) {
    fmt::print(stderr, "simulate: --seeds {}: {}\n", text, why);
    return 2;
  }
  erar::tests::ScenarioResult total;
  std::uint64_t failed = 0;
  const std::uint64_t start_ns = erar::monotonic_ns();
  for (std::uint64_t seed = seeds.first; seed < seeds.end; seed++) {
    const auto scenario = erar::tests::Scenario::of(seed);
    if (verbose) fmt::print("{}\n", scenario.describe());
    auto result = erar::tests::run_scenario(scenario);
    if (result.wrong) {
      fmt::print("WRONG {}\n  replay: tests/simulate --seeds {}\n", *result.wrong, seed);
      failed++;
      if (!keep_going) return 1;
    }
    total += result;
  }
  fmt::print(
      "seeds {}:{}: {} calls ({} times a rank returned the error it should), {} ring operations, {} frames, "
      "{} segments overdue, {} resent, {} requested, {} answered, {} duplicates, {} damaged frames "
      "dropped, {} failed, {:.1f} s\n",
      seeds.first, seeds.end, total.calls, total.errors, total.operations, total.frames, total.lost,
      total.resent, total.requested, total.answered, total.duplicates, total.damaged, failed,
      static_cast<double>(erar::monotonic_ns() - start_ns) / 1e9);
  return failed == 0 ? 0 : 1;
}
