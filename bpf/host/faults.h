// Faults: what goes wrong on a link, as people ask for it, and as the fault boxes take it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bpf/faults.h"
#include "core/result.h"

namespace erar {

inline constexpr unsigned kMostBurstFrames = 1000;
inline constexpr unsigned kMostHoldFrames = ERAR_MAX_HOLD_FRAMES;
// Beyond the three that TCP waits for before it resends.
inline constexpr unsigned kUsualHoldFrames = 4;

// Shares of the frames of a way, 0 .. 1.
struct Faults {
  double loss = 0;
  unsigned burst_frames = 1;  // lost in a row; the share of lost frames stays `loss`
  double duplicate = 0;
  double reorder = 0;  // held back until 1 to `hold_frames` later frames have passed
  unsigned hold_frames = kUsualHoldFrames;
  double corrupt = 0;  // one bit behind the headers
  double corrupt_header = 0;
  double truncate = 0;
  std::uint64_t seed = 1;

  [[nodiscard]] bool any() const {
    return loss > 0 || duplicate > 0 || reorder > 0 || corrupt > 0 || corrupt_header > 0 ||
           truncate > 0;
  }
};

// "loss 0.01 in bursts of 3, reorder 0.01"; "none".
std::string faults_text(const Faults& faults);

// Both ways subject, no rules. Values outside their range are taken to its nearest end.
erar_fault_settings settings_of(const Faults& faults);

// Counters of a box or of several, by erar_fault_counter.
struct FaultCounts {
  std::uint64_t values[ERAR_FAULT_COUNTERS] = {};

  [[nodiscard]] std::uint64_t operator[](erar_fault_counter which) const { return values[which]; }
  FaultCounts& operator+=(const FaultCounts& other);
  // "frames", "dropped", ... with their values, in the order of the enumeration.
  [[nodiscard]] std::vector<std::pair<std::string, std::uint64_t>> named() const;
};

}  // namespace erar
