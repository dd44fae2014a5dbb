// SPDX-License-Identifier: BSD-2-Clause
// RingState: to bytes and back.
#include "sim/explore/ring_state.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace erar::sim {
namespace {

constexpr std::uint8_t kWrong = 0x80;

template <class Rank, class Visit>
void for_each_part(const Scenario& scenario, Rank& rank, Visit&& visit) {
  visit(&rank.filled, 1);
  visit(&rank.opened, 1);
  visit(rank.slots.data(), scenario.slots() * sizeof(SlotState));
  visit(rank.segments.data(),
        std::min(scenario.areas, scenario.operations) * std::size_t{scenario.segments});
  visit(rank.parked.data(), scenario.slots() * std::size_t{scenario.ranks} * scenario.window);
}

std::string encode_as_is(const Scenario& scenario, const RingState& state) {
  std::string bytes;
  bytes.reserve(256);
  bytes.push_back(static_cast<char>(state.losses));
  bytes.push_back(static_cast<char>(state.duplicates));
  bytes.push_back(static_cast<char>(state.early_resends));
  for (unsigned rank = 0; rank < scenario.ranks; rank++)
    for_each_part(scenario, state.ranks[rank], [&](const void* part, std::size_t size) {
      bytes.append(static_cast<const char*>(part), size);
    });
  for (const RingFrame& frame : state.frames) {
    bytes.push_back(static_cast<char>((frame.wrong ? kWrong : 0) | frame.type << 4 | frame.hop));
    bytes.push_back(static_cast<char>(frame.operation << 4 | frame.segment));
    if (frame.wrong) bytes.append(reinterpret_cast<const char*>(&frame.word), sizeof(frame.word));
  }
  return bytes;
}

}  // namespace

void RingState::add(const RingFrame& frame) {
  frames.insert(std::upper_bound(frames.begin(), frames.end(), frame), frame);
}

void RingState::remove(const RingFrame& frame) {
  const auto found = std::lower_bound(frames.begin(), frames.end(), frame);
  assert(found != frames.end() && *found == frame);
  frames.erase(found);
}

bool RingState::is_under_way(unsigned operation, unsigned segment) const {
  return std::any_of(frames.begin(), frames.end(), [&](const RingFrame& frame) {
    return frame.operation == operation && frame.segment == segment;
  });
}

int area_owner(const Scenario& scenario, const RankState& rank, unsigned area) {
  int operation = int{rank.filled} - 1;
  while (operation >= 0 && area_of(scenario, static_cast<unsigned>(operation)) != area) operation--;
  return operation;
}

bool is_complete(const Scenario& scenario, const RankState& rank, unsigned operation) {
  // The process began the next one only when it was.
  if (rank.filled > operation + 1) return true;
  const SlotState& slot = rank.slots[slot_of(scenario, operation)];
  return slot.operation == operation + 1 && slot.done != 0;
}

bool has_sum(const Scenario& scenario, const RankState& rank, unsigned operation,
             unsigned segment) {
  if (is_complete(scenario, rank, operation)) return true;
  const std::size_t index = std::size_t{area_of(scenario, operation)} * scenario.segments + segment;
  return rank.segments[index] == ((operation + 1) << 2 | ERAR_FINAL);
}

RingState rotated(const Scenario& scenario, const RingState& state, unsigned by) {
  const unsigned segments = scenario.segments;
  const unsigned window = scenario.window;
  const unsigned places = scenario.ranks * window;
  const auto turned = [&](unsigned segment) {
    return (segment + by * (segments / scenario.ranks)) % segments;
  };
  RingState to = state;
  for (unsigned rank = 0; rank < scenario.ranks; rank++) {
    const RankState& old = state.ranks[rank];
    RankState& now = to.ranks[(rank + by) % scenario.ranks];
    now = old;
    for (unsigned i = 0; i < std::min(scenario.areas, scenario.operations) * segments; i++)
      now.segments[i / segments * segments + turned(i % segments)] = old.segments[i];
    now.parked.fill(0);
    for (unsigned i = 0; i < scenario.slots() * places; i++) {
      if (old.parked[i] == 0) continue;
      const unsigned block = i % places / window;
      const unsigned begin = scenario.block_begin(block);
      const unsigned segment = begin + (i % window + window - begin % window) % window;
      now.parked[i / places * places + (block + by) % scenario.ranks * window +
                 turned(segment) % window] = old.parked[i];
    }
  }
  for (RingFrame& frame : to.frames)
    frame.segment = static_cast<std::uint8_t>(turned(frame.segment));
  std::sort(to.frames.begin(), to.frames.end());
  return to;
}

std::string encode(const Scenario& scenario, const RingState& state) {
  std::string least = encode_as_is(scenario, state);
  for (unsigned by = 1; scenario.can_rotate() && by < scenario.ranks; by++)
    least = std::min(least, encode_as_is(scenario, rotated(scenario, state, by)));
  return least;
}

RingState decode(const Scenario& scenario, std::string_view bytes) {
  RingState state;
  const auto* at = reinterpret_cast<const std::uint8_t*>(bytes.data());
  const auto* end = at + bytes.size();
  state.losses = *at++;
  state.duplicates = *at++;
  state.early_resends = *at++;
  for (unsigned rank = 0; rank < scenario.ranks; rank++)
    for_each_part(scenario, state.ranks[rank], [&](void* part, std::size_t size) {
      std::memcpy(part, at, size);
      at += size;
    });
  while (at < end) {
    RingFrame frame;
    frame.wrong = (*at & kWrong) != 0;
    frame.type = *at >> 4 & 7;
    frame.hop = *at++ & 15;
    frame.operation = *at >> 4;
    frame.segment = *at++ & 15;
    if (frame.wrong) {
      std::memcpy(&frame.word, at, sizeof(frame.word));
      at += sizeof(frame.word);
    }
    state.frames.push_back(frame);
  }
  return state;
}

}  // namespace erar::sim
