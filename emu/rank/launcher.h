// Launcher: one process per rank, each in its namespace, ended together.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "core/result.h"
#include "emu/netns/fabric.h"

namespace erar {

struct LaunchOptions {
  bool pin = true;  // rank r runs on CPU r modulo the number of CPUs this process may use
  // What ranks have to end after SIGTERM or SIGHUP: a program may have a checkpoint to write first.
  std::chrono::milliseconds grace_after_signal{10'000};
};

// What became of the ranks. `status` is 0 when all exited with 0, else the first failing rank's
// exit status (128+N when signal N ended it).
struct LaunchOutcome {
  int status = 0;
  int failed_rank = -1;
  int received_signal = 0;  // the last that the caller was sent meanwhile
};

// Forks one child per rank; the child enters its namespace, is tied to the parent's life
// (PR_SET_PDEATHSIG SIGKILL) and exits with body(rank)'s value without running the parent's
// destructors. When one rank fails the others get SIGTERM, after 2 s SIGKILL. SIGINT, SIGTERM and
// SIGHUP sent to the caller are passed on to all ranks while this runs; ranks that are still there
// `grace_after_signal` after the latter two get SIGKILL. Returns when all have ended.
Result<LaunchOutcome> launch_ranks(const Fabric& fabric, const LaunchOptions& options,
                                   const std::function<int(unsigned rank)>& body);

// As above with a program: argv[0] is looked up in PATH; RANK, WORLD_SIZE, LOCAL_RANK=0,
// MASTER_ADDR (rank 0's address) and MASTER_PORT are added to the environment. Exit status 127 when
// argv[0] cannot be executed.
Result<LaunchOutcome> launch_program(const Fabric& fabric, const LaunchOptions& options,
                                     const std::vector<std::string>& argv,
                                     std::uint16_t master_port);

}  // namespace erar
