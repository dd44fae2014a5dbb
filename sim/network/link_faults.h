// SPDX-License-Identifier: BSD-2-Clause
// LinkFaults: what the links of a simulated network do to frames.
#pragma once

#include <cstdint>

namespace erar::sim {

// Probabilities are of each frame on each link. Times are of the simulation's clock.
struct LinkFaults {
  double loss = 0;
  double duplicate = 0;
  double reorder = 0;          // held back by up to hold_ns
  double corrupt_payload = 0;  // one bit is changed
  double corrupt_header = 0;   // one byte of the headers is changed
  double truncate = 0;
  std::uint64_t latency_ns = 10'000;
  std::uint64_t jitter_ns = 2'000;  // frames of one link may pass each other by so much
  std::uint64_t hold_ns = 500'000;
};

}  // namespace erar::sim
