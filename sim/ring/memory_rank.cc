// SPDX-License-Identifier: GPL-2.0
// MemoryRank: the packet step's hooks over vectors.
#include "sim/ring/memory_rank.h"

namespace erar::sim {

MemoryRank::MemoryRank(const erar_config& config)
    : config_(config),
      arena_words_(std::size_t{config.arena_segments} * config.segment_bytes / 8),
      states_(config.arena_segments),
      parked_words_(std::size_t{ERAR_SLOTS} * ERAR_PARK_PLACES * config.segment_bytes / 8),
      park_tags_(std::size_t{ERAR_SLOTS} * ERAR_PARK_PLACES) {
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
                      park_tags_.data(),
                      counters_.data(),
                      &completions_};
}

std::uint32_t MemoryRank::start(const erar_start& start) {
  const std::uint32_t slot = start.number % ERAR_SLOTS;
  return erar_start_operation(&operations_[slot], &park_tags_[std::size_t{slot} * ERAR_PARK_PLACES],
                              &config_, &start);
}

namespace {

// The buffer is a vector of exactly the frame's size, so that a sanitizer sees a step that reads
// past it; a frame that is recycled into a longer segment gets a longer vector.
bool grow_vector(NativeFrame& frame, std::size_t bytes) {
  auto* vector = static_cast<Frame*>(frame.owner);
  vector->resize(bytes);
  frame.data = vector->data();
  frame.capacity = vector->size();
  return true;
}

NativeFrame view_of(Frame& frame) {
  return NativeFrame{frame.data(), frame.size(), frame.size(), grow_vector, &frame};
}

}  // namespace

Verdict MemoryRank::kick(std::uint32_t number, Frame& frame) {
  frame.resize(std::size_t{ERAR_HEADER_BYTES} + config_.segment_bytes);
  NativeMemory mine = memory();
  NativeFrame native = view_of(frame);
  const Verdict verdict = native_kick(mine, native, number);
  frame.resize(native.size);
  return verdict;
}

Verdict MemoryRank::receive(Frame& frame) {
  NativeMemory mine = memory();
  NativeFrame native = view_of(frame);
  const Verdict verdict = native_step(mine, native, false);
  frame.resize(native.size);
  return verdict;
}

}  // namespace erar::sim
