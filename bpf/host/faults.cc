// Faults: from shares to the boxes' fixed-point chances; texts and names.
#include "bpf/host/faults.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace erar {
namespace {

constexpr const char* kCounterNames[ERAR_FAULT_COUNTERS] = {
    "frames",   "untouched", "dropped",          "duplicated", "reordered",
    "released", "corrupted", "header_corrupted", "truncated",  "rule_hits"};

std::uint64_t chance_of(double share) {
  return static_cast<std::uint64_t>(
      std::llround(std::clamp(share, 0.0, 1.0) * static_cast<double>(ERAR_CERTAIN)));
}

// A burst begins at a frame that is in none. Of b frames that a burst takes and the (1 - p) / p
// that pass on average before the next, `loss` is the share of the b.
double burst_begins(double loss, unsigned burst_frames) {
  if (loss <= 0) return 0;
  return loss / (burst_frames * (1 - loss) + loss);
}

void add(std::string& text, const char* name, double share) {
  if (share <= 0) return;
  char part[64];
  std::snprintf(part, sizeof(part), "%s%s %g", text.empty() ? "" : ", ", name, share);
  text += part;
}

}  // namespace

std::string faults_text(const Faults& faults) {
  std::string text;
  add(text, "loss", faults.loss);
  if (faults.loss > 0 && faults.burst_frames > 1) {
    text += " in bursts of " + std::to_string(faults.burst_frames);
  }
  add(text, "dup", faults.duplicate);
  add(text, "reorder", faults.reorder);
  if (faults.reorder > 0 && faults.hold_frames != kUsualHoldFrames) {
    text += " behind up to " + std::to_string(faults.hold_frames);
  }
  add(text, "corrupt", faults.corrupt);
  add(text, "corrupt-header", faults.corrupt_header);
  add(text, "truncate", faults.truncate);
  return text.empty() ? "none" : text;
}

erar_fault_settings settings_of(const Faults& faults) {
  erar_fault_settings settings{};
  settings.seed = faults.seed;
  settings.burst_frames = std::clamp(faults.burst_frames, 1U, kMostBurstFrames);
  settings.drop = chance_of(burst_begins(std::min(faults.loss, 1.0), settings.burst_frames));
  settings.duplicate = chance_of(faults.duplicate);
  settings.hold = chance_of(faults.reorder);
  settings.corrupt_payload = chance_of(faults.corrupt);
  settings.corrupt_header = chance_of(faults.corrupt_header);
  settings.truncate = chance_of(faults.truncate);
  settings.hold_frames = std::clamp(faults.hold_frames, 1U, kMostHoldFrames);
  settings.subject[ERAR_FROM_A] = settings.subject[ERAR_FROM_B] = 1;
  return settings;
}

FaultCounts& FaultCounts::operator+=(const FaultCounts& other) {
  for (unsigned i = 0; i < ERAR_FAULT_COUNTERS; i++) values[i] += other.values[i];
  return *this;
}

std::vector<std::pair<std::string, std::uint64_t>> FaultCounts::named() const {
  std::vector<std::pair<std::string, std::uint64_t>> pairs;
  for (unsigned i = 0; i < ERAR_FAULT_COUNTERS; i++) {
    pairs.emplace_back(kCounterNames[i], values[i]);
  }
  return pairs;
}

}  // namespace erar
