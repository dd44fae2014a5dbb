// SPDX-License-Identifier: BSD-2-Clause
// SimulatedRing: ranks, lossy links and a clock in one thread; every run of a seed is the same.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "core/session/ring_watch.h"
#include "sim/network/fiber.h"
#include "sim/network/link_faults.h"
#include "sim/ring/memory_rank.h"

namespace erar::sim {

struct SimulatedRingOptions {
  unsigned ranks = 4;
  unsigned mtu = 576;
  std::uint32_t arena_segments = 64;
  std::uint32_t token = 1;
  unsigned window = 0;             // as RingEndpoint's
  std::uint32_t queue_frames = 0;  // a link loses what exceeds so many frames under way; 0: none
  std::uint64_t seed = 1;
  std::uint64_t timeout_ns = 5'000'000'000;
  std::uint64_t wake_ns = 20'000;  // a process whose operation is done runs after up to so long
  LinkFaults faults;
};

// The processes of the ranks are fibers; they meet the ring through SimulatedDevice. Frames are
// delivered, and processes run, in the order of their times.
class SimulatedRing {
 public:
  explicit SimulatedRing(const SimulatedRingOptions& options);

  [[nodiscard]] MemoryRank& rank(unsigned index) { return *ranks_[index]; }
  [[nodiscard]] RingWatch& watch(unsigned index) { return *watches_[index]; }
  [[nodiscard]] unsigned ranks() const { return static_cast<unsigned>(ranks_.size()); }
  [[nodiscard]] std::uint64_t now_ns() const { return now_ns_; }
  [[nodiscard]] const SimulatedRingOptions& options() const { return options_; }
  [[nodiscard]] std::mt19937_64& random() { return random_; }

  // A process of a rank from at_ns on.
  void spawn(unsigned rank, std::uint64_t at_ns, std::function<void()> body);
  // New ranks on the same links, with frames of the old under way; no process, no faults of ranks.
  void renew(std::uint32_t token);
  // Until all processes have ended. Error: some run longer than until_ns; what and where. These are
  // ended then as if they were killed.
  [[nodiscard]] std::optional<std::string> run(std::uint64_t until_ns);

  // Faults of ranks; to be called before run(). A process that is paused does not run from..until;
  // its kernel does. A rank that is killed loses both: its process ends, frames to it are gone.
  void pause(unsigned rank, std::uint64_t from_ns, std::uint64_t until_ns);
  void kill(unsigned rank, std::uint64_t at_ns);
  [[nodiscard]] bool is_killed(unsigned rank) const { return processes_[rank].killed; }

  // Frames are lost only where this says so; it sees every frame before it is sent.
  using Decide = std::function<bool(unsigned to_rank, const Frame& frame)>;
  void lose_if(Decide decide) { lose_if_ = std::move(decide); }
  void duplicate_if(Decide decide) { duplicate_if_ = std::move(decide); }
  // Seen by the receiver, before its step.
  void on_delivery(std::function<void(unsigned rank, const Frame& frame)> look) {
    on_delivery_ = std::move(look);
  }

  // For SimulatedDevice, from within a process.
  void send(unsigned from_rank, Frame frame);
  // Returns when one of the operations is done, or at until_ns. False: the process was killed.
  bool block(unsigned rank, std::span<const std::uint32_t> operations, std::uint64_t until_ns);
  // Lets time pass. False: the process was killed.
  bool sleep(unsigned rank, std::uint64_t ns);

 private:
  struct Process {
    std::unique_ptr<Fiber> fiber;
    std::vector<std::uint32_t> waits_for;
    std::uint64_t wake = 0;  // the number of the wake-up that counts; others are out of date
    std::uint64_t paused_from_ns = UINT64_MAX;
    std::uint64_t paused_until_ns = 0;
    std::uint64_t killed_at_ns = UINT64_MAX;
    bool killed = false;
    bool blocked = false;
  };
  struct Event {
    std::uint64_t at_ns = 0;
    std::uint64_t order = 0;  // events of one time happen in the order in which they were made
    unsigned rank = 0;
    std::uint64_t wake = 0;  // of the rank's process; 0: a frame arrives
    std::shared_ptr<Frame> frame;
  };
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return a.at_ns != b.at_ns ? a.at_ns > b.at_ns : a.order > b.order;
    }
  };
  [[nodiscard]] bool chance(double probability) {
    return probability > 0 && std::uniform_real_distribution<double>(0, 1)(random_) < probability;
  }
  std::uint64_t up_to(std::uint64_t ns) { return ns == 0 ? 0 : random_() % (ns + 1); }
  void put_on_link(unsigned to_rank, Frame frame);
  void wake_at(unsigned rank, std::uint64_t at_ns);
  void deliver(unsigned rank, Frame& frame);
  void run_process(unsigned rank);
  void end_processes();
  [[nodiscard]] bool any_done(unsigned rank) const;
  [[nodiscard]] std::string describe_blocked() const;

  SimulatedRingOptions options_;
  std::vector<std::unique_ptr<MemoryRank>> ranks_;
  std::vector<std::unique_ptr<RingWatch>> watches_;
  std::vector<Process> processes_;
  std::vector<std::uint32_t> queued_;  // frames under way to each rank
  std::priority_queue<Event, std::vector<Event>, Later> events_;
  std::mt19937_64 random_;
  std::uint64_t now_ns_ = 1;
  std::uint64_t made_ = 0;
  std::uint64_t wakes_ = 0;
  Decide lose_if_;
  Decide duplicate_if_;
  std::function<void(unsigned, const Frame&)> on_delivery_;
};

}  // namespace erar::sim
