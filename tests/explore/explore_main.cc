// explore: one scenario from the command line, every state of it.
#include <CLI/CLI.hpp>

#include <cstdio>

#include "experiments/cli/argument_error.h"
#include "sim/explore/explorer.h"

int main(int argc, char** argv) {
  erar::sim::Scenario scenario;
  CLI::App app{"Visits every state that a ring in memory can come to and checks each.", "explore"};
  app.add_option("--ranks", scenario.ranks, "2 to 4")->check(CLI::Range(2, 4));
  app.add_option("--segments", scenario.segments, "of each operation, 1 to 12")
      ->check(CLI::Range(1, 12));
  app.add_option("--operations", scenario.operations, "one after the other, 1 to 6")
      ->check(CLI::Range(1, 6));
  app.add_option("--window", scenario.window, "own segments started at once, 1 or 2")
      ->check(CLI::Range(1, 2));
  app.add_option("--losses", scenario.losses, "frames that links may lose");
  app.add_option("--duplicates", scenario.duplicates, "frames that links may deliver twice");
  app.add_option("--early-resends", scenario.early_resends, "resends that were not needed");
  app.add_option("--areas", scenario.areas, "memories that operations use in turns, 1 or 2")
      ->check(CLI::Range(1, 2));
  app.add_option("--max-states", scenario.max_states, "give up beyond")
      ->check(CLI::PositiveNumber);
  app.add_flag("--short-last", scenario.short_last, "the last segment is shorter");
  app.add_flag("--split-kicks", scenario.split_kicks, "frames arrive between kicks, too");
  app.add_flag("--two-cpus", scenario.two_cpus, "something else happens amid a step");
  app.add_flag("--same-slot", scenario.same_slot, "operation k+8 follows k");
  app.add_flag("!--no-rotations", scenario.rotations, "visit what only differs in ranks' names");
  app.add_flag("!--any-frames", scenario.check_frames, "look only at what is stored");
  bool stay_open = false;
  app.add_flag("--stay-open", stay_open, "memory is reused, its slot not closed");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return erar::cli::explain(app, error);
  }
  scenario.close_before_reuse = !stay_open;
  // Ranks that reuse open slots send what nobody may store.
  scenario.check_frames = scenario.check_frames && !stay_open;

  const erar::sim::Exploration found = erar::sim::explore(scenario);
  std::printf(
      "%llu states, %llu actions tried, %llu ends, depth %u, farthest %u, %.1f s\n",
      static_cast<unsigned long long>(found.states), static_cast<unsigned long long>(found.steps),
      static_cast<unsigned long long>(found.ends), found.depth, found.farthest, found.seconds);
  if (!found.violation.empty()) {
    std::printf("VIOLATION: %s\n", found.violation.c_str());
    for (const std::string& line : found.trace) std::printf("  %s\n", line.c_str());
  }
  if (!found.complete && found.violation.empty()) std::printf("not all states were visited\n");
  return found.complete ? 0 : 1;
}
