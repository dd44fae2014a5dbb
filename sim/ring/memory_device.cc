// SPDX-License-Identifier: BSD-2-Clause
// MemoryDevice: every access to the ring under its lock.
#include "sim/ring/memory_device.h"

#include <cerrno>
#include <string>
#include <thread>

#include "core/clock.h"

namespace erar::sim {

MemoryDevice::MemoryDevice(SharedRing& shared, unsigned rank, std::uint64_t timeout_ns)
    : shared_(shared), rank_(rank), timeout_ns_(timeout_ns) {}

std::span<std::byte> MemoryDevice::arena() const {
  return {reinterpret_cast<std::byte*>(mine().segment(0)),
          std::size_t{config().arena_segments} * config().segment_bytes};
}

Result<void> MemoryDevice::start(const erar_start& start) {
  const std::lock_guard held(shared_.lock);
  shared_.ring.start(rank_, start);
  return {};
}

void MemoryDevice::close(std::uint32_t operation) {
  const std::lock_guard held(shared_.lock);
  mine().close(operation);
}

bool MemoryDevice::done(std::uint32_t operation) const {
  const std::lock_guard held(shared_.lock);
  return mine().done(operation);
}

Result<void> MemoryDevice::wait_any(std::span<const std::uint32_t> operations,
                                    std::uint64_t patience_ns) {
  const std::uint64_t until_ns = monotonic_ns() + patience_ns;
  while (monotonic_ns() < until_ns) {
    {
      const std::lock_guard held(shared_.lock);
      do {
        for (const std::uint32_t operation : operations)
          if (mine().done(operation)) return {};
      } while (shared_.ring.deliver_one());
    }
    std::this_thread::yield();  // the frames to come are other threads' to send
  }
  return Error{ETIMEDOUT, "rank " + std::to_string(rank_) + ": operation",
               std::to_string(operations.front())};
}

}  // namespace erar::sim
