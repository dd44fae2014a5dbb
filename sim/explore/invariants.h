// SPDX-License-Identifier: BSD-2-Clause
// Invariants: what must hold in every state of a ring, beyond what RankModel::save() refuses.
#pragma once

#include <string>

#include "sim/explore/ring_state.h"
#include "sim/explore/scenario.h"

namespace erar::sim {

// Empty, or what does not hold.
std::string broken_invariant(const Scenario& scenario, const RingState& state);

// Every rank has all sums of all operations.
bool all_done(const Scenario& scenario, const RingState& state);

}  // namespace erar::sim
