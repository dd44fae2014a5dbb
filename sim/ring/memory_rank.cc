// SPDX-License-Identifier: BSD-2-Clause
// MemoryRank: the packet step's hooks over vectors.
#include "sim/ring/memory_rank.h"

namespace erar::sim {

MemoryRank::MemoryRank(const erar_config& config)
    : config_(config),
      arena_words_(std::size_t{config.arena_segments} * config.segment_bytes / 8),
      states_(config.arena_segments),
      parked_words_(std::size_t{ERAR_SLOTS} * ERAR_PARK_PLACES * config.segment_bytes / 8),
      parking_(std::size_t{ERAR_SLOTS} * ERAR_PARK_PLACES) {
  for (std::uint32_t i = 0; i < ERAR_SLOTS; i++) operations_[i].number = i;
}

std::uint8_t* MemoryRank::segment(std::uint32_t index) {
  return memory().arena + std::size_t{index} * config_.segment_bytes;
}

NativeMemory MemoryRank::memory() {
  return NativeMemory{&config_,
                      reinterpret_cast<std::uint8_t*>(arena_words_.data()),
                      states_.data(),
                      operations_.data(),
                      reinterpret_cast<std::uint8_t*>(parked_words_.data()),
                      parking_.data(),
                      counters_.data(),
                      &completions_};
}

void MemoryRank::close(std::uint32_t number) {
  erar_operation& slot = operations_[number % ERAR_SLOTS];
  if (slot.number == number) slot.open = 0;
}

std::uint32_t MemoryRank::start(const erar_start& start) {
  const std::uint32_t slot = start.number % ERAR_SLOTS;
  return erar_start_operation(&operations_[slot], &parking_[std::size_t{slot} * ERAR_PARK_PLACES],
                              &config_, &start);
}

Verdict MemoryRank::kick(std::uint32_t number, Frame& frame) {
  frame.resize(std::size_t{ERAR_HEADER_BYTES} + config_.segment_bytes);
  NativeMemory mine = memory();
  NativeFrame native{frame.data(), frame.size()};
  const Verdict verdict = native_kick(mine, native, number);
  frame.resize(native.size);
  return verdict;
}

Verdict MemoryRank::receive(Frame& frame) {
  NativeMemory mine = memory();
  NativeFrame native{frame.data(), frame.size()};
  const Verdict verdict = native_step(mine, native, false);
  frame.resize(native.size);
  return verdict;
}

}  // namespace erar::sim
