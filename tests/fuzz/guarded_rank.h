// GuardedRank: one rank's memory for the step, of which a sanitizer reports every byte that a step
// touches without leave.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/session/native_step.h"

namespace erar::fuzz {

// Each array is an allocation of its own and exactly as long as the step may believe. Segments and
// parking places are poisoned besides, but for those that allow_...() names until the next
// guard().
class GuardedRank {
 public:
  static constexpr std::uint32_t kPlaces = ERAR_SLOTS * ERAR_PARK_PLACES;

  GuardedRank(std::uint32_t segment_bytes, std::uint32_t arena_segments);
  ~GuardedRank();
  GuardedRank(const GuardedRank&) = delete;
  GuardedRank& operator=(const GuardedRank&) = delete;

  // As after loading, for another place in a ring. Segment and arena size are the constructor's.
  void reset(const erar_config& config);
  void guard();
  void allow_segment(std::uint32_t index);
  void allow_place(std::uint32_t place);
  // Their tags only: what the process reads when it opens a slot.
  void allow_tags_of(std::uint32_t slot);

  [[nodiscard]] NativeMemory& memory() { return memory_; }
  [[nodiscard]] const erar_config& config() const { return config_; }
  [[nodiscard]] const erar_operation& operation(std::uint32_t number) const {
    return operations_[number % ERAR_SLOTS];
  }
  [[nodiscard]] std::uint8_t* segment(std::uint32_t index) {
    return arena_.get() + std::size_t{index} * config_.segment_bytes;
  }
  [[nodiscard]] std::uint8_t* parked_payload(std::uint32_t place) {
    return parked_payloads_.get() + std::size_t{place} * config_.segment_bytes;
  }
  [[nodiscard]] const erar_parked& parked(std::uint32_t place) { return parking_[place]; }
  [[nodiscard]] __u64 state(std::uint32_t index) const { return states_[index]; }

  using Counters = std::array<std::uint64_t, ERAR_COUNTERS>;
  [[nodiscard]] Counters counters() const;
  [[nodiscard]] __u64 mark() const { return mark_->operation; }

  // All that a frame may change besides segments and parked payloads.
  struct Snapshot {
    std::array<erar_operation, ERAR_SLOTS> operations;
    std::array<__u64, ERAR_MAX_RANKS> heard;
    std::vector<__u64> states;
    std::uint64_t completions = 0;
  };
  void take(Snapshot& snapshot) const;

 private:
  [[nodiscard]] std::size_t arena_bytes() const {
    return std::size_t{arena_segments_} * config_.segment_bytes;
  }
  [[nodiscard]] std::size_t parked_bytes() const {
    return std::size_t{kPlaces} * config_.segment_bytes;
  }

  erar_config config_{};
  std::uint32_t arena_segments_;
  std::unique_ptr<std::uint8_t[]> arena_;
  std::unique_ptr<__u64[]> states_;
  std::unique_ptr<erar_operation[]> operations_;
  std::unique_ptr<std::uint8_t[]> parked_payloads_;
  std::unique_ptr<erar_parked[]> parking_;
  std::unique_ptr<std::uint64_t[]> counters_;
  std::unique_ptr<std::uint64_t> completions_;
  std::unique_ptr<__u64[]> heard_;
  std::unique_ptr<erar_mark> mark_;
  std::vector<std::uint32_t> segments_allowed_;
  std::vector<std::uint32_t> places_allowed_;
  std::vector<std::uint32_t> slots_allowed_;
  std::vector<std::uint32_t> places_used_;  // since the last reset()
  NativeMemory memory_;
};

}  // namespace erar::fuzz
