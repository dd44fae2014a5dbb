// SPDX-License-Identifier: BSD-2-Clause
// MemoryGroup: the ranks of one ring in memory as threads, each with an allreduce of its own.
#pragma once

#include <exception>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "core/collective/ring_allreduce.h"
#include "sim/ring/memory_device.h"

namespace erar::sim {

struct MemoryGroupOptions {
  unsigned ranks = 4;
  unsigned mtu = 1500;
  std::size_t group_bytes = 4096;
  std::size_t registered_bytes = 1U << 16;
  std::uint64_t seed = 1;
  bool reorder = true;  // as several queues whose CPUs run at their own pace
  bool checksum = true;
  std::uint64_t timeout_ns = 30'000'000'000;
};

class MemoryGroup {
 public:
  explicit MemoryGroup(const MemoryGroupOptions& options)
      : shared_(
            {.ranks = options.ranks,
             .mtu = options.mtu,
             .arena_segments = static_cast<std::uint32_t>(RingAllreduce::arena_segments(
                 options.group_bytes, options.registered_bytes, erar_segment_bytes(options.mtu))),
             .seed = options.seed,
             .reorder = options.reorder}) {
    RingAllreduceOptions ring;
    ring.group_bytes = options.group_bytes;
    ring.checksum = options.checksum;
    ring.goodbye_ns = 0;  // they are destroyed one after the other, and no frame is lost
    for (unsigned rank = 0; rank < options.ranks; rank++) {
      devices_.push_back(std::make_unique<MemoryDevice>(shared_, rank, options.timeout_ns));
      auto made = RingAllreduce::open(*devices_.back(), ring);
      rings_.push_back(std::move(*made));
    }
  }

  [[nodiscard]] unsigned ranks() const { return static_cast<unsigned>(rings_.size()); }
  [[nodiscard]] RingAllreduce& rank(unsigned index) { return *rings_[index]; }
  [[nodiscard]] MemoryRing& ring() { return shared_.ring; }

  // body(rank, its allreduce) on a thread for each rank; returns when all have. Where not all
  // threads can be had, no body runs, and what they threw is thrown when those that ran are gone.
  template <class Body>
  void run(Body body) {
    std::promise<bool> all_started;
    const std::shared_future<bool> start = all_started.get_future().share();
    std::vector<std::thread> threads;
    std::exception_ptr failure;
    try {
      for (unsigned rank = 0; rank < ranks(); rank++)
        threads.emplace_back([&, rank, start] {
          if (start.get()) body(rank, *rings_[rank]);
        });
    } catch (...) {
      failure = std::current_exception();
    }
    all_started.set_value(failure == nullptr);
    for (std::thread& thread : threads) thread.join();
    if (failure != nullptr) std::rethrow_exception(failure);
  }

 private:
  SharedRing shared_;
  std::vector<std::unique_ptr<MemoryDevice>> devices_;
  std::vector<std::unique_ptr<RingAllreduce>> rings_;
};

}  // namespace erar::sim
