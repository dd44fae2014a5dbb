// The sweep: every backend at every size, one after the other on the same fabric.
#pragma once

#include "experiments/bench/fabric_lease.h"
#include "experiments/bench/row.h"

#include <functional>
#include <vector>

namespace erar::bench {

// Called before a measurement starts (done of total) and with each finished row. A false from
// `finished` ends the sweep: nobody reads the table any more.
struct SweepObserver {
  std::function<void(const Row& about_to_run, std::size_t done, std::size_t total)> starting;
  std::function<bool(const Row& row)> finished;
};

// Backends take turns at each size, so that a change of the machine's load meets both. A backend
// that fails gives a failed row and the others go on. Ends early on a signal
// (InterruptGuard::signal()).
std::vector<Row> run_sweep(const Conditions& conditions, FabricLease& lease,
                           const SweepObserver& observer);

}  // namespace erar::bench
