// ResendTimer: how long a segment may stay away before it counts as lost.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace erar {

// As long as a few turns of the window take. A turn is measured as an operation's time over the
// number of windows in it, and the shortest of the last operations counts: others were waiting for
// a rank. Too short a time costs frames that turn out to be duplicates, too long a one
// costs that time for each loss. It doubles with each try of a segment, as RFC 6298 5.5 has it.
class ResendTimer {
 public:
  static constexpr std::uint64_t kFirst_ns = 4'000'000;  // before anything was measured
  // Limits of the time before a first resend. Where every operation waits for somebody, or for lost
  // frames, turns only seem to take long.
  static constexpr std::uint64_t kLeast_ns = 2'000'000;
  static constexpr std::uint64_t kMost_ns = 20'000'000;
  static constexpr std::uint64_t kTurns = 4;
  static constexpr unsigned kMostDoublings = 3;

  explicit ResendTimer(std::uint64_t most_ns) : most_ns_(most_ns) {}

  void observe(std::uint64_t operation_ns, std::uint64_t windows) {
    turns_ns_[observed_++ % turns_ns_.size()] = operation_ns / std::max<std::uint64_t>(windows, 1);
  }
  // After `tries` resends of the segment.
  [[nodiscard]] std::uint64_t overdue_ns(unsigned tries) const {
    return std::min(base_ns() << std::min(tries, kMostDoublings), most_ns_);
  }

 private:
  [[nodiscard]] std::uint64_t base_ns() const {
    if (observed_ == 0) return std::min(kFirst_ns, most_ns_);
    const auto end = turns_ns_.begin() + static_cast<std::ptrdiff_t>(
                                             std::min<std::size_t>(observed_, turns_ns_.size()));
    const std::uint64_t wanted = kTurns * *std::min_element(turns_ns_.begin(), end);
    return std::min(std::clamp(wanted, kLeast_ns, kMost_ns), most_ns_);
  }

  std::uint64_t most_ns_;
  std::array<std::uint64_t, 16> turns_ns_{};
  std::size_t observed_ = 0;
};

}  // namespace erar
