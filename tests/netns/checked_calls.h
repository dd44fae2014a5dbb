// Allreduce calls of one rank, each looked at; what the tests of faults let ranks do.
#pragma once

#include <cstdint>

#include "emu/netns/fabric.h"
#include "tests/netns/rank_process.h"

namespace erar::test {

inline constexpr unsigned kCheckedRanks = 4;

// Opens a backend, waits for the others, and calls in place until a call fails or `calls` are done.
// 0, unless there is no backend or a result is wrong; the rest is in the rank's report.
int run_checked_rank(const Fabric& fabric, unsigned rank, std::uint32_t token, std::uint64_t calls,
                     std::uint64_t timeout_ns, SharedState& state);

}  // namespace erar::test
