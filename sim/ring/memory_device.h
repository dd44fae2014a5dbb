// SPDX-License-Identifier: BSD-2-Clause
// MemoryDevice: one rank's end of a ring in memory, for ranks that run as threads of one process.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "core/session/ring_device.h"
#include "sim/ring/memory_ring.h"

namespace erar::sim {

// The ring and the lock that its devices share. Whoever waits delivers frames.
struct SharedRing {
  explicit SharedRing(const MemoryRingOptions& options) : ring(options) {}

  std::mutex lock;
  MemoryRing ring;
};

class MemoryDevice final : public RingDevice {
 public:
  // shared outlives the device.
  MemoryDevice(SharedRing& shared, unsigned rank, std::uint64_t timeout_ns = 30'000'000'000);

  [[nodiscard]] const erar_config& config() const override { return mine().config(); }
  [[nodiscard]] std::span<std::byte> arena() const override;
  Result<void> start(const erar_start& start) override;
  void close(std::uint32_t operation) override;
  [[nodiscard]] bool done(std::uint32_t operation) const override;
  Result<void> wait_any(std::span<const std::uint32_t> operations,
                        std::uint64_t patience_ns) override;
  [[nodiscard]] std::uint64_t timeout_ns() const override { return timeout_ns_; }
  [[nodiscard]] bool saw_losses() const override { return false; }

 private:
  [[nodiscard]] MemoryRank& mine() const { return shared_.ring.rank(rank_); }

  SharedRing& shared_;
  unsigned rank_;
  std::uint64_t timeout_ns_;
};

}  // namespace erar::sim
