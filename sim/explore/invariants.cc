// SPDX-License-Identifier: BSD-2-Clause
// Invariants: counts, credits, payloads under way, and the order in which sums appear.
#include "sim/explore/invariants.h"

#include <algorithm>

namespace erar::sim {
namespace {

std::string named(const char* what, unsigned rank, unsigned operation) {
  return std::string(what) + " (rank " + std::to_string(rank) + ", operation " +
         std::to_string(operation) + ")";
}

unsigned sums_of(const Scenario& scenario, const RankState& rank, unsigned operation,
                 unsigned begin, unsigned end) {
  unsigned sums = 0;
  for (unsigned segment = begin; segment < end; segment++)
    sums += has_sum(scenario, rank, operation, segment) ? 1 : 0;
  return sums;
}

// What an open slot counts is what its memory shows.
std::string wrong_count(const Scenario& scenario, const RankState& state, unsigned rank) {
  for (unsigned i = 0; i < scenario.slots(); i++) {
    const SlotState& slot = state.slots[i];
    if (slot.operation == 0 || slot.open != ERAR_SLOT_OPEN) continue;
    const unsigned operation = slot.operation - 1U;
    if ((slot.done != 0) != (slot.finals == scenario.segments))
      return named("done is not finals == segments", rank, operation);
    if (slot.done == 0 && slot.finals != sums_of(scenario, state, operation, 0, scenario.segments))
      return named("finals is not the number of final segments", rank, operation);
    const int owner = area_owner(scenario, state, area_of(scenario, operation));
    for (unsigned segment = 0;
         slot.done != 0 && owner == static_cast<int>(operation) && segment < scenario.segments;
         segment++)
      if (state.segments[area_of(scenario, operation) * scenario.segments + segment] !=
          (slot.operation << 2 | ERAR_FINAL))
        return named("done, but a segment is not final", rank, operation);
    // A kick is credit for one own segment, and so is each frame that ends here: of block rank+2.
    const unsigned ending = (rank + 2) % scenario.ranks;
    const unsigned credit =
        scenario.window + sums_of(scenario, state, operation, scenario.block_begin(ending),
                                  scenario.block_begin(ending + 1));
    const unsigned own = scenario.block_begin(rank + 1) - scenario.block_begin(rank);
    if (slot.own_next > std::min(own, credit))
      return named("more own segments started than there was credit for", rank, operation);
  }
  return {};
}

// Sums appear at the turn rank b-1 first, then at b, b+1, ... b-2.
std::string wrong_order(const Scenario& scenario, const RingState& state) {
  for (unsigned operation = 0; operation < scenario.operations; operation++)
    for (unsigned segment = 0; segment < scenario.segments; segment++) {
      const unsigned turn = scenario.block_of(segment) + scenario.ranks - 1;
      for (unsigned i = 1; i < scenario.ranks; i++) {
        const unsigned before = (turn + i - 1) % scenario.ranks;
        const unsigned rank = (turn + i) % scenario.ranks;
        if (has_sum(scenario, state.ranks[rank], operation, segment) &&
            !has_sum(scenario, state.ranks[before], operation, segment))
          return named("a sum is here, but not at the rank before", rank, operation);
      }
    }
  return {};
}

}  // namespace

std::string broken_invariant(const Scenario& scenario, const RingState& state) {
  for (unsigned rank = 0; rank < scenario.ranks; rank++)
    if (std::string error = wrong_count(scenario, state.ranks[rank], rank); !error.empty())
      return error;
  if (scenario.check_frames)
    for (const RingFrame& frame : state.frames)
      if (frame.wrong) return "a frame's payload is not what its type and hop say";
  return wrong_order(scenario, state);
}

bool all_done(const Scenario& scenario, const RingState& state) {
  for (unsigned rank = 0; rank < scenario.ranks; rank++) {
    const RankState& at = state.ranks[rank];
    if (at.opened != scenario.operations || !is_complete(scenario, at, scenario.operations - 1))
      return false;
  }
  return true;
}

}  // namespace erar::sim
