// SPDX-License-Identifier: BSD-2-Clause
// MemoryRing: ranks joined by lossless links whose frames are delivered in an order that a seed
// chooses.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "sim/ring/memory_rank.h"

namespace erar::sim {

struct MemoryRingOptions {
  unsigned ranks = 4;
  unsigned mtu = 1500;
  std::uint32_t arena_segments = 64;
  std::uint64_t seed = 1;
  // Links keep their frames in order (a veth queue), or any frame of a link may come next (several
  // queues whose CPUs run at their own pace).
  bool reorder = false;
};

// The constants of a rank of a ring in memory.
erar_config memory_ring_config(unsigned rank, unsigned ranks, unsigned mtu,
                               std::uint32_t arena_segments, std::uint32_t token,
                               unsigned window = 0);

class MemoryRing {
 public:
  explicit MemoryRing(const MemoryRingOptions& options);

  [[nodiscard]] MemoryRank& rank(unsigned index) { return *ranks_[index]; }
  [[nodiscard]] unsigned ranks() const { return static_cast<unsigned>(ranks_.size()); }

  // Starts the operation on one rank; its kick frames run at once, as in the process's system call.
  void start(unsigned rank, const erar_start& start);
  // Delivers one frame of a link that the seed chooses. False when no frame is under way.
  bool deliver_one();
  void deliver_all() {
    while (deliver_one()) {
    }
  }
  // What happens to each frame on its link, just before it is delivered.
  void on_delivery(std::function<void(Frame&)> change) { change_ = std::move(change); }
  [[nodiscard]] std::size_t frames_under_way() const;
  [[nodiscard]] std::size_t most_frames_on_a_link() const { return most_frames_; }

 private:
  void send(unsigned from_rank, Frame frame);

  std::vector<std::unique_ptr<MemoryRank>> ranks_;
  std::vector<std::deque<Frame>> links_;  // links_[r] arrives at rank r
  std::mt19937_64 random_;
  bool reorder_;
  std::function<void(Frame&)> change_;
  std::size_t most_frames_ = 0;
};

}  // namespace erar::sim
