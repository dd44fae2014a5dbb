// SPDX-License-Identifier: BSD-2-Clause
// Explorer: every state that a scenario can come to, checked, and whether each leads to an end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/explore/scenario.h"

namespace erar::sim {

struct Exploration {
  std::uint64_t states = 0;
  std::uint64_t steps = 0;  // actions tried
  std::uint64_t ends = 0;   // states in which all ranks have all sums
  unsigned depth = 0;       // actions on the longest of the shortest ways to a state
  unsigned farthest = 0;    // actions without faults from any state to an end, at most
  double seconds = 0;
  bool complete = false;           // false: more than max_states, or a violation
  std::string violation;           // empty, or what does not hold
  std::vector<std::string> trace;  // a shortest way there
};

// Breadth first. Termination: from each state an end can be reached by deliveries, processes and
// resends alone. Since states are finite in number, each set of states that cannot be left without
// a fault then has an end in it: a ring that does everything again and again that it can comes to
// one.
Exploration explore(const Scenario& scenario);

}  // namespace erar::sim
