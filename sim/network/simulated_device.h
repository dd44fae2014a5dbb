// SPDX-License-Identifier: BSD-2-Clause
// SimulatedDevice: one rank's end of a simulated ring.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/session/ring_device.h"
#include "sim/network/simulated_ring.h"

namespace erar::sim {

class SimulatedDevice final : public RingDevice {
 public:
  // The ring outlives the device.
  SimulatedDevice(SimulatedRing& ring, unsigned rank) : ring_(ring), rank_(rank) {}

  [[nodiscard]] const erar_config& config() const override { return ring_.rank(rank_).config(); }
  [[nodiscard]] std::span<std::byte> arena() const override;
  // Error ECANCELED: the rank was killed.
  Result<void> start(const erar_start& start) override;
  void close(std::uint32_t operation) override;
  [[nodiscard]] bool done(std::uint32_t operation) const override {
    return ring_.rank(rank_).done(operation);
  }
  // Error ECANCELED: the rank was killed.
  Result<void> wait_any(std::span<const std::uint32_t> operations,
                        std::uint64_t patience_ns) override;
  [[nodiscard]] std::uint64_t timeout_ns() const override { return ring_.options().timeout_ns; }
  [[nodiscard]] bool saw_losses() const override {
    return ring_.rank(rank_).counter(ERAR_COUNT_LOST) != 0;
  }

  // Called before memory of an operation may be used for another: from start() for what the slot
  // held, and from close().
  void on_close(std::function<void(unsigned rank, std::uint32_t operation)> look) {
    on_close_ = std::move(look);
  }

 private:
  [[nodiscard]] Error killed() const;

  SimulatedRing& ring_;
  unsigned rank_;
  std::function<void(unsigned, std::uint32_t)> on_close_;
};

}  // namespace erar::sim
