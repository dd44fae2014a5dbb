// Scenarios: what happens in one simulated run, all of it drawn from a seed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/data_type.h"
#include "sim/network/link_faults.h"
#include "tests/collective/reduction_oracle.h"

namespace erar::tests {

// How a rank holds its buffer.
enum class Memory { kApart, kInPlace, kRegistered };

struct SimulatedCall {
  Reduction reduction;
  std::size_t count = 0;
  Memory memory = Memory::kApart;
  Inputs inputs = Inputs::kGradients;
};

// What happens to one rank's process or to the rank as a whole.
enum class RankFault { kNone, kPause, kStop, kKill };

struct Scenario {
  std::uint64_t seed = 0;
  unsigned ranks = 4;
  unsigned mtu = 576;
  std::size_t group_bytes = 4096;
  bool checksum = true;
  unsigned window = 0;             // 0: the usual
  std::uint32_t queue_frames = 0;  // of each link; 0: no limit
  sim::LinkFaults faults;
  std::uint64_t late_ns = 0;  // a rank comes up to so much later to a call
  RankFault rank_fault = RankFault::kNone;
  unsigned fault_rank = 0;
  std::uint64_t fault_at_ns = 0;
  std::uint64_t pause_ns = 0;
  std::vector<SimulatedCall> calls;

  static Scenario of(std::uint64_t seed);
  // One line.
  [[nodiscard]] std::string describe() const;
};

struct ScenarioResult {
  std::optional<std::string> wrong;  // what broke a rule
  std::uint64_t calls = 0;           // allreduce calls that every rank returned from
  std::uint64_t errors = 0;      // ends of a call on one rank with the error that it should have
  std::uint64_t operations = 0;  // on the ring
  std::uint64_t frames = 0;      // received
  std::uint64_t lost = 0;        // segments that were overdue
  std::uint64_t resent = 0;
  std::uint64_t requested = 0;
  std::uint64_t answered = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t damaged = 0;
  ScenarioResult& operator+=(const ScenarioResult& other);
};

// Rules: every result is right and the same bits on all ranks; nothing runs for ever; no rank gives
// memory away that another may still ask for; when a rank has died, the others end within the
// time-out, name it and leave callers' buffers as they were; a new group then works at once.
ScenarioResult run_scenario(const Scenario& scenario);

}  // namespace erar::tests
