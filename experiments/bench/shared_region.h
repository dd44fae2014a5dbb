// Memory that the ranks of one measurement and their parent share: barrier, time stamps, verdicts.
#pragma once

#include "core/result.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace erar::bench {

inline constexpr std::size_t kMostChained = 33;  // operations in a chain, the lead-in included
inline constexpr std::size_t kMostCounters = 48;

// What one rank writes and others read. Ranks write only their own. Written before a barrier, read
// after it; the barrier orders the two. Two cache lines apart, as the CPU prefetches them in pairs.
struct alignas(128) RankSlot {
  std::uint64_t start_ns = 0;                              // before the chain's first operation
  std::array<std::uint64_t, kMostChained> end_ns{};        // after each operation
  std::array<std::uint64_t, kMostChained> hash{};          // of each operation's result
  std::array<std::uint64_t, kMostChained> agreement_ns{};  // of each operation
  std::uint64_t cpu_ns = 0;                                // spent in timed chains so far
  std::uint64_t softirq_ns = 0;                            // of the whole host; rank 0 writes it
  std::uint64_t wrong = 0;                                 // elements, over all operations so far
  std::atomic<std::uint32_t> barriers{0};                  // that the rank has come to
  std::atomic<std::int32_t> pid{0};                        // of the rank, once it has entered
  struct Counter {
    std::array<char, 48> name{};
    std::uint64_t value = 0;
  };
  std::array<Counter, kMostCounters> counters{};
};

// Made by the parent before it forks. The memory goes when the last process that maps it is gone.
class SharedRegion {
 public:
  // times: of how many operations rank 0 will store the time; idle_limit_ns: see barrier(). Errors:
  // ENOMEM.
  static Result<SharedRegion> create(unsigned ranks, std::size_t times,
                                     std::uint64_t idle_limit_ns);
  SharedRegion(SharedRegion&& other) noexcept;
  SharedRegion& operator=(SharedRegion&&) = delete;
  SharedRegion(const SharedRegion&) = delete;
  SharedRegion& operator=(const SharedRegion&) = delete;
  ~SharedRegion();

  // Returns when all ranks have called it. Waiters sleep. Fails when a rank has called fail(); with
  // ETIMEDOUT, naming it, when one that all wait for has used no CPU time for the idle limit, since
  // it is stopped or hangs and cannot say so itself. One that computes may take as long as it
  // needs.
  Result<void> barrier(unsigned rank) { return meet(rank, idle_limit_ns_); }
  // The barrier before the first operation, until which a rank may wait for the kernel to attach
  // programs: the limit is 30 s at least.
  Result<void> opening_barrier(unsigned rank);
  // To be called by the rank's process before anything else, so that others see it idle.
  void enter(unsigned rank);
  // Ends the measurement for all ranks. The first error to come is kept: later ones are mostly the
  // other ranks noticing.
  void fail(unsigned rank, const Error& error);
  // What fail() was told, with the rank; empty when it never was.
  [[nodiscard]] std::string failure() const;

  [[nodiscard]] unsigned ranks() const { return ranks_; }
  [[nodiscard]] RankSlot& slot(unsigned rank) const { return slots_[rank]; }
  // Times of the timed operations in ns, written by rank 0 only.
  [[nodiscard]] std::span<std::uint64_t> times() const { return {times_, times_count_}; }
  // What the ranks needed to agree in each of these operations, the slowest rank's; likewise.
  [[nodiscard]] std::span<std::uint64_t> agreements() const {
    return {times_ + times_count_, times_count_};
  }

 private:
  struct Control;
  struct Watched;
  Result<void> meet(unsigned rank, std::uint64_t idle_limit_ns);
  // The first rank that is not at the barrier and has been idle; none while all move on.
  [[nodiscard]] std::optional<unsigned> idle_rank(std::vector<Watched>& watched,
                                                  std::uint32_t barrier,
                                                  std::uint64_t limit_ns) const;
  SharedRegion() = default;

  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
  Control* control_ = nullptr;
  RankSlot* slots_ = nullptr;
  std::uint64_t* times_ = nullptr;
  std::size_t times_count_ = 0;
  unsigned ranks_ = 0;
  std::uint64_t idle_limit_ns_ = 0;
};

}  // namespace erar::bench
