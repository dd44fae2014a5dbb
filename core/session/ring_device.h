// RingDevice: one rank's end of the ring, whatever runs the packet step: a kernel, or a process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/protocol/start.h"
#include "core/result.h"

namespace erar {

// Operation numbers start at ERAR_FIRST_OPERATION and every number must be started, an operation
// that is not wanted with no segments. Not thread-safe.
class RingDevice {
 public:
  RingDevice() = default;
  RingDevice(const RingDevice&) = delete;
  RingDevice& operator=(const RingDevice&) = delete;
  virtual ~RingDevice() = default;

  [[nodiscard]] virtual const erar_config& config() const = 0;
  // arena_segments * segment_bytes bytes, segment i at i * segment_bytes.
  [[nodiscard]] virtual std::span<std::byte> arena() const = 0;

  // Opens the operation and sends its first frames; this rank's share lies in the arena.
  virtual Result<void> start(const erar_start& start) = 0;
  // Gives an operation up: no frame of it changes the arena any more (but one that is being stored
  // in this very moment).
  virtual void close(std::uint32_t operation) = 0;
  [[nodiscard]] virtual bool done(std::uint32_t operation) const = 0;
  // Sleeps until one of the operations, all of them started, is done. Error: none made progress for
  // the time-out.
  virtual Result<void> wait_any(std::span<const std::uint32_t> operations) = 0;
};

}  // namespace erar
