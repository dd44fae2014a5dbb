// SPDX-License-Identifier: BSD-2-Clause
// SimulatedDevice: what bpf/host/Device does, in simulated time.
#include "sim/network/simulated_device.h"

#include <algorithm>
#include <cerrno>

namespace erar::sim {

std::span<std::byte> SimulatedDevice::arena() const {
  return {reinterpret_cast<std::byte*>(ring_.rank(rank_).segment(0)),
          std::size_t{config().arena_segments} * config().segment_bytes};
}

Error SimulatedDevice::killed() const {
  return {ECANCELED, "rank " + std::to_string(rank_), "was killed"};
}

// A rank that is killed has no destructors that say good-bye.
Result<void> SimulatedDevice::start(const erar_start& start) {
  if (ring_.is_killed(rank_)) return killed();
  MemoryRank& rank = ring_.rank(rank_);
  const std::uint32_t before = rank.operation(start.number).number;
  if (on_close_) on_close_(rank_, before);
  const std::uint32_t frames = rank.start(start);
  ring_.watch(rank_).opened(start.number, ring_.now_ns());
  for (std::uint32_t i = 0; i < frames; i++) {
    Frame frame;
    if (rank.kick(start.number, frame) == Verdict::kForward) ring_.send(rank_, std::move(frame));
  }
  return {};
}

void SimulatedDevice::close(std::uint32_t operation) {
  if (on_close_) on_close_(rank_, operation);
  ring_.rank(rank_).close(operation);
}

Result<void> SimulatedDevice::wait_any(std::span<const std::uint32_t> operations,
                                       std::uint64_t patience_ns) {
  const auto any_done = [&] {
    return std::any_of(operations.begin(), operations.end(),
                       [this](std::uint32_t operation) { return done(operation); });
  };
  RingWatch& watch = ring_.watch(rank_);
  const auto send = [this](std::span<const std::uint8_t> frame) {
    ring_.send(rank_, Frame(frame.begin(), frame.end()));
  };
  watch.begin(ring_.now_ns());
  while (!any_done()) {
    if (!ring_.block(rank_, operations, ring_.now_ns() + watch.interval_ns())) return killed();
    if (any_done()) break;
    auto looked = watch.look(operations, ring_.now_ns(), patience_ns, send);
    if (!looked) return looked;
  }
  watch.end(ring_.now_ns());
  return {};
}

}  // namespace erar::sim
