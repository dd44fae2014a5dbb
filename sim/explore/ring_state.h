// SPDX-License-Identifier: BSD-2-Clause
// RingState: all that steps can see of a ring - each rank's memory and the frames on its links - as
// few bytes.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/explore/scenario.h"

namespace erar::sim {

// A frame on the link that block and hop tell. Its payload is left out: it is what type and hop
// say, or else `word`. That of a request means nothing.
struct RingFrame {
  std::uint8_t type = 0;
  std::uint8_t hop = 0;
  std::uint8_t operation = 0;  // of the scenario, from 0
  std::uint8_t segment = 0;
  bool wrong = false;
  std::uint64_t word = 0;

  auto operator<=>(const RingFrame&) const = default;
};

// A slot of a rank. The kicks that are due are those of the process that has just opened it.
struct SlotState {
  std::uint8_t operation = 0;  // 0: none yet; else of the scenario, from 1
  std::uint8_t open = 0;
  std::uint8_t own_next = 0;
  std::uint8_t finals = 0;
  std::uint8_t done = 0;
  std::uint8_t kicks = 0;
  std::uint8_t kicks_due = 0;
  std::uint8_t unparks = 0;

  auto operator<=>(const SlotState&) const = default;
};

// One rank. What an arena segment holds follows from `filled` and its state, what a parking place
// holds from its number; RankModel refuses anything else.
struct RankState {
  static constexpr unsigned kMaxAreaSegments = 24;
  static constexpr unsigned kMaxPlaces = 48;
  static constexpr std::uint8_t kClaimed = 0x80;  // by the process, for a kick that is due

  std::uint8_t filled = 0;  // operations whose share the process has laid down
  std::uint8_t opened = 0;  // and those that it has opened
  std::array<SlotState, Scenario::kMaxOperations> slots;
  std::array<std::uint8_t, kMaxAreaSegments> segments{};  // 0: none; (operation + 1) << 2 | state
  std::array<std::uint8_t, kMaxPlaces> parked{};          // by slot; 0: free; operation + 1
};

struct RingState {
  std::array<RankState, Scenario::kMaxRanks> ranks;
  std::vector<RingFrame> frames;  // sorted
  std::uint8_t losses = 0;        // that are left
  std::uint8_t duplicates = 0;
  std::uint8_t early_resends = 0;

  void add(const RingFrame& frame);
  void remove(const RingFrame& frame);
  // Whether a frame about the segment is under way anywhere.
  [[nodiscard]] bool is_under_way(unsigned operation, unsigned segment) const;
};

// Which operation's share or sums lie in an area: the last that was laid down there. -1: none.
int area_owner(const Scenario& scenario, const RankState& rank, unsigned area);
// Whether the rank has had all sums of the operation.
bool is_complete(const Scenario& scenario, const RankState& rank, unsigned operation);
// Whether it has that segment's sum, or has had all.
bool has_sum(const Scenario& scenario, const RankState& rank, unsigned operation, unsigned segment);
inline unsigned slot_of(const Scenario& scenario, unsigned operation) {
  return scenario.same_slot ? operation % 2 : operation;
}
inline unsigned area_of(const Scenario& scenario, unsigned operation) {
  return operation % scenario.areas;
}

// The state with rank r in the place of rank r + by, for scenarios that can rotate.
RingState rotated(const Scenario& scenario, const RingState& state, unsigned by);
// Equal states have equal bytes, and only they; with rotations, states that can be turned into each
// other have, too.
std::string encode(const Scenario& scenario, const RingState& state);
RingState decode(const Scenario& scenario, std::string_view bytes);

}  // namespace erar::sim
