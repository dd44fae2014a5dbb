// simulate: runs scenarios of any range of seeds; prints the seed of one that breaks a rule.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <string>
#include <string_view>

#include "core/clock.h"
#include "experiments/cli/argument_error.h"
#include "tests/simulation/scenario.h"

namespace {

struct Seeds {
  std::uint64_t first = 0;
  std::uint64_t end = 0;
};

std::string parse_seeds(const std::string& text, Seeds& seeds) {
  const auto is_number = [](std::string_view digits, std::uint64_t& value) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error == std::errc{} && end == digits.data() + digits.size();
  };
  const std::string_view view = text;
  const auto colon = view.find(':');
  if (is_number(view.substr(0, colon), seeds.first)) {
    // The largest number is no seed: there is none to end before.
    seeds.end = seeds.first + 1;
    const bool ends =
        colon == std::string_view::npos || is_number(view.substr(colon + 1), seeds.end);
    if (ends && seeds.first < seeds.end) return {};
  }
  return "must be A:B with A < B (seeds A to B-1), or one seed, of 0 to 2^64-2";
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Allreduce calls over simulated rings with faults that a seed draws; every run of a "
      "seed is the same.",
      "simulate"};
  std::string text = "0:1000";
  bool verbose = false;
  bool keep_going = false;
  app.add_option("--seeds", text, "A:B runs seeds A to B-1; one number runs that seed")
      ->capture_default_str();
  app.add_flag("--verbose", verbose, "print each scenario before it runs");
  app.add_flag("--keep-going", keep_going, "do not stop at the first that breaks a rule");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return erar::cli::explain(app, error);
  }
  Seeds seeds;
  if (const std::string why = parse_seeds(text, seeds); !why.empty()) {
    fmt::print(stderr, "simulate: --seeds {}: {}\n", erar::cli::one_line(text), why);
    return erar::cli::kBadArguments;
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
      "seeds {}:{}: {} calls ({} times a rank returned the error it should), {} ring operations, "
      "{} frames, {} segments overdue, {} resent, {} requested, {} answered, {} duplicates, {} "
      "damaged frames "
      "dropped, {} failed, {:.1f} s\n",
      seeds.first, seeds.end, total.calls, total.errors, total.operations, total.frames, total.lost,
      total.resent, total.requested, total.answered, total.duplicates, total.damaged, failed,
      static_cast<double>(erar::monotonic_ns() - start_ns) / 1e9);
  return failed == 0 ? 0 : 1;
}
