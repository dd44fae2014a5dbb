// What one rank does in a measurement: the same for every backend.
//
// Operations run in chains, back to back, each on its own buffers. A chain of c + 1 operations
// times c: the first is a lead-in that takes up the ranks' different wake-ups after the barrier.
// The time of operation i is the last rank's completion of i minus the last rank's completion of i
// - 1. Where a chain is one operation (large messages), it has no lead-in and its time is the last
// rank's end minus the first rank's start after a barrier. Filling and checking the buffers is not
// timed.
#pragma once

#include "core/backend.h"
#include "experiments/bench/cpu_meter.h"
#include "experiments/bench/float_bound.h"
#include "experiments/bench/shared_region.h"
#include "workloads/generator/values.h"

#include <cstdint>
#include <functional>
#include <memory>

namespace erar::bench {

struct RankPlan {
  std::size_t bytes = 0;  // a multiple of the type's size
  Reduction reduction;
  bool registered = false;  // buffers come from Backend::allocate(), else from ordinary memory
  bool in_place = false;
  std::uint64_t warmup = 0;  // operations that are checked but not timed
  std::uint64_t iters = 1;   // timed operations
  std::uint64_t seed = 1;
  workloads::Magnitudes magnitudes = workloads::Magnitudes::kAlike;
  Summation summation = Summation::kBlocks;  // of floats: what the oracle lets pass
};

// Timed operations in a chain: as many as keep its data about 4 MiB, from 1 to 32, and no more than
// there are to do.
std::uint64_t chain_length(const RankPlan& plan);
// Buffers that a rank allocates, and what allocate() will be asked for in all, with room for
// aligning.
std::size_t buffer_count(const RankPlan& plan);
std::size_t registered_bytes(const RankPlan& plan, unsigned ranks);

using BackendOpener = std::function<Result<std::unique_ptr<Backend>>()>;

// Runs the plan as one rank of region.ranks(); all ranks call it with the same plan, each in its
// own process (tests: thread). Rank 0 stores region.times() and agreements(). The exit status: 0,
// or 1 when this or another rank failed, after telling the region.
int run_rank(SharedRegion& region, const RankPlan& plan, unsigned rank, const SoftirqMeter& softirq,
             const BackendOpener& open);

}  // namespace erar::bench
