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
  // Ends an operation, done or not: no frame of it reads or changes the arena any more. Until then
  // a done operation answers ranks that lost a frame of it, so its memory must stay as it is.
  virtual void close(std::uint32_t operation) = 0;
  [[nodiscard]] virtual bool done(std::uint32_t operation) const = 0;
  // Sleeps until one of the operations, all of them started, is done; has what is lost sent again
  // meanwhile, of every operation under way. Error: none of them made progress for patience_ns;
  // names the rank that is silent, if one is.
  virtual Result<void> wait_any(std::span<const std::uint32_t> operations,
                                std::uint64_t patience_ns) = 0;
  // The patience that users have by default.
  [[nodiscard]] virtual std::uint64_t timeout_ns() const = 0;
  // Whether anything was sent again so far, here.
  [[nodiscard]] virtual bool saw_losses() const = 0;
};

}  // namespace erar
