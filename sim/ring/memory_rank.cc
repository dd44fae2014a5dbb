// SPDX-License-Identifier: BSD-2-Clause
// MemoryRank: the packet step's hooks over vectors.
#include "sim/ring/memory_rank.h"

#include "core/session/operation_slot.h"

namespace erar::sim {

MemoryRank::MemoryRank(const erar_config& config)
    : config_(config),
      arena_words_(std::size_t{config.arena_segments} * config.segment_bytes / 8),
      states_(config.arena_segments),
      parked_words_(std::size_t{ERAR_SLOTS} * ERAR_PARK_PLACES * config.segment_bytes / 8),
      parking_(std::size_t{ERAR_SLOTS} * ERAR_PARK_PLACES) {
  for (std::uint32_t i = 0; i < ERAR_SLOTS; i++) operations_[i].number = i;
  memory_.config = &config_;
  memory_.arena = reinterpret_cast<std::uint8_t*>(arena_words_.data());
  memory_.states = states_.data();
  memory_.operations = operations_.data();
  memory_.parked_payloads = reinterpret_cast<std::uint8_t*>(parked_words_.data());
  memory_.parking = parking_.data();
  memory_.counters = counters_.data();
  memory_.completions = &completions_;
  memory_.heard = heard_.data();
  memory_.mark = &mark_;
}

std::uint8_t* MemoryRank::segment(std::uint32_t index) {
  return memory_.arena + std::size_t{index} * config_.segment_bytes;
}

void MemoryRank::close(std::uint32_t number) { close_operation(memory_, number); }

std::uint32_t MemoryRank::start(const erar_start& start) { return open_operation(memory_, start); }

Verdict MemoryRank::kick(std::uint32_t number, Frame& frame) {
  frame.resize(std::size_t{ERAR_HEADER_BYTES} + config_.segment_bytes);
  NativeFrame native{frame.data(), frame.size()};
  const Verdict verdict = native_kick(memory_, native, number);
  frame.resize(native.size);
  return verdict;
}

Verdict MemoryRank::receive(Frame& frame) {
  NativeFrame native{frame.data(), frame.size()};
  const Verdict verdict = native_step(memory_, native, false);
  frame.resize(native.size);
  return verdict;
}

}  // namespace erar::sim
