// SPDX-License-Identifier: BSD-2-Clause
// MemoryRank: one rank of the protocol core in ordinary memory: no kernel, no sockets.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/protocol/operation.h"
#include "core/protocol/start.h"
#include "core/session/native_step.h"

namespace erar::sim {

using Frame = std::vector<std::uint8_t>;

// Holds what the XDP program holds in maps and runs the same packet step over it. Not thread-safe.
class MemoryRank {
 public:
  explicit MemoryRank(const erar_config& config);
  MemoryRank(const MemoryRank&) = delete;
  MemoryRank& operator=(const MemoryRank&) = delete;

  [[nodiscard]] const erar_config& config() const { return config_; }
  // segment_bytes bytes of the arena; index < arena_segments.
  [[nodiscard]] std::uint8_t* segment(std::uint32_t index);
  [[nodiscard]] const erar_operation& operation(std::uint32_t number) const {
    return operations_[number % ERAR_SLOTS];
  }
  [[nodiscard]] bool done(std::uint32_t number) const {
    return operation(number).number == number && operation(number).done != 0;
  }

  // Frames of the operation are refused from now on.
  void close(std::uint32_t number);
  // Opens an operation; returns how many kick frames are to be given to kick().
  std::uint32_t start(const erar_start& start);
  // A kick frame as this rank's process would inject it; on kForward `frame` is what leaves.
  Verdict kick(std::uint32_t number, Frame& frame);
  // A frame from the wire, changed in place; on kForward it is what leaves.
  Verdict receive(Frame& frame);

  // What the rank's process sees of all this, for as long as the rank lives.
  [[nodiscard]] NativeMemory& memory() { return memory_; }

  [[nodiscard]] std::uint64_t counter(erar_counter counter) const { return counters_[counter]; }
  [[nodiscard]] std::uint64_t completions() const { return completions_; }

 private:
  erar_config config_;
  std::vector<std::uint64_t> arena_words_;
  std::vector<__u64> states_;
  std::array<erar_operation, ERAR_SLOTS> operations_{};
  std::vector<std::uint64_t> parked_words_;
  std::vector<erar_parked> parking_;
  std::array<std::uint64_t, ERAR_COUNTERS> counters_{};
  std::uint64_t completions_ = 0;
  std::array<__u64, ERAR_MAX_RANKS> heard_{};
  erar_mark mark_{};
  NativeMemory memory_;
};

}  // namespace erar::sim
