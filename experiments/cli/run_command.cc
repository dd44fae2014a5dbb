// `erar run`: takes or makes a fabric, starts a program once per rank in it, passes its status on.
#include "experiments/cli/run_command.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "emu/netns/fabric.h"
#include "emu/rank/launcher.h"
#include "experiments/cli/privilege.h"
#include "experiments/cli/reporting.h"

namespace erar::cli {
namespace {

constexpr std::uint16_t kMasterPort = 29500;  // torchrun's; the namespaces are ours, so it is free

struct RunOptions {
  std::string fabric;
  std::optional<unsigned> ranks;
  bool no_pin = false;
  std::string program;
};

// Signals wait while the fabric is made and removed; the launcher takes them while ranks run. So
// there is no moment at which Ctrl-C leaves namespaces behind.
void block_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
}

// The signal that came while the fabric was made, 0 if none did.
int pending_signal() {
  sigset_t pending;
  sigemptyset(&pending);
  sigpending(&pending);
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    sigaction(signal, nullptr, &action);
    if (sigismember(&pending, signal) == 1 && action.sa_handler != SIG_IGN) return signal;
  }
  return 0;
}

int launch(const Fabric& fabric, const RunOptions& options, const std::vector<std::string>& argv) {
  LaunchOptions launch_options;
  launch_options.pin = !options.no_pin;
  auto outcome = launch_program(fabric, launch_options, argv, kMasterPort);
  if (!outcome) return complain(outcome.error(), 1);
  if (outcome->failed_rank >= 0) {
    fmt::print(stderr, "erar: rank {} ended with status {}\n", outcome->failed_rank,
               outcome->status);
  }
  return outcome->status;
}

int run_in_ephemeral(FabricKind kind, const RunOptions& options,
                     const std::vector<std::string>& argv) {
  FabricSpec spec;
  spec.name = fmt::format("run-{}", getpid());
  spec.kind = kind;
  spec.ranks = options.ranks.value_or(spec.ranks);
  spec.ephemeral = true;
  block_signals();
  auto fabric = Fabric::up(spec);
  if (!fabric) return complain(fabric.error(), 1);
  int signal = pending_signal();
  int status = signal != 0 ? 128 + signal : launch(*fabric, options, argv);
  auto removed = Fabric::down(spec.name);
  if (!removed) return complain(removed.error(), status != 0 ? status : 1);
  return status;
}

int run(const RunOptions& options, const std::vector<std::string>& arguments) {
  if (options.program.empty()) {
    bool mistyped = !arguments.empty() && arguments[0] != "--";
    return complain(mistyped ? refusal("run: unknown option " + arguments[0])
                             : refusal("run: no program given: erar run --fabric F -- PROGRAM ..."),
                    2);
  }
  // An unknown option of ours, before the "--" that ends them. A program's own "--" without ours
  // before it reads the same; the usage says to write ours.
  if (!arguments.empty() && arguments[0] != "--" && arguments[0].starts_with('-') &&
      std::find(arguments.begin(), arguments.end(), "--") != arguments.end()) {
    return complain(refusal("run: unknown option " + arguments[0] +
                            " (what belongs to the program goes behind -- PROGRAM)"),
                    2);
  }
  if (!have_root()) return 1;
  std::vector<std::string> argv = {options.program};
  // The first "--" is ours, any other is the program's.
  bool marked = !arguments.empty() && arguments[0] == "--";
  argv.insert(argv.end(), arguments.begin() + (marked ? 1 : 0), arguments.end());

  auto fabric = Fabric::open(options.fabric);
  if (fabric) {
    unsigned ranks = fabric->spec().ranks;
    if (options.ranks.value_or(ranks) != ranks) {
      return complain(
          refusal(fmt::format("run: fabric {} has {} ranks, --ranks {} cannot be run on it",
                              options.fabric, ranks, *options.ranks)),
          2);
    }
    if (auto restored = fabric->restore(); !restored) return complain(restored.error(), 1);
    return launch(*fabric, options, argv);
  }
  if (fabric.error().code != ENOENT) return complain(fabric.error(), 1);
  auto kind = parse_fabric_kind(options.fabric);
  if (!kind) {
    return complain(refusal(fmt::format(
                        "run: \"{}\" is neither a fabric (see erar fabric list) nor a kind of one "
                        "(ring, bridge, switch)",
                        options.fabric)),
                    2);
  }
  return run_in_ephemeral(*kind, options, argv);
}

}  // namespace

void add_run_command(CLI::App& app, int& exit_status) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", "Run a program once per rank, inside a fabric");
  command
      ->add_option("--fabric", options->fabric,
                   "Name of a fabric, or a kind (ring, bridge, switch): makes one for this run")
      ->required();
  command->add_option("--ranks", options->ranks, "Number of ranks of a fabric made for this run")
      ->check(CLI::Range(2, 64))
      ->default_str("4");
  command->add_flag("--no-pin", options->no_pin, "Do not pin rank r to CPU r modulo their number");
  command->add_option("program", options->program, "Program, looked up in PATH");
  // Everything behind the program is its own, as it stands: a vector option would take "[1,2]"
  // apart.
  command->prefix_command();
  // With more than one subcommand allowed CLI11 would take a program's argument "bench" for ours.
  command->preparse_callback([&app](std::size_t) {
    app.require_subcommand(static_cast<int>(app.get_require_subcommand_min()), 1);
  });
  command->footer(
      "erar run --fabric F [--ranks N] [--no-pin] -- PROGRAM [ARGUMENT...]\n\n"
      "Every rank finds RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT in its\n"
      "environment. When one rank fails the others are ended; the exit status is that of the "
      "first\n"
      "to fail (128+N: ended by signal N; 127: no such program). SIGINT, SIGTERM and SIGHUP are\n"
      "passed on; 10 s after the latter two, what is left is killed.");
  command->callback(
      [options, command, &exit_status] { exit_status = run(*options, command->remaining()); });
}

}  // namespace erar::cli
