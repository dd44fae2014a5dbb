// NativeStep: the packet step of core/protocol run by a process over ordinary or mapped memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/protocol/operation.h"

namespace erar {

// What became of a frame: the values of enum erar_verdict (core/protocol/step.h).
enum class Verdict { kPass = 0, kDrop = 1, kForward = 2 };

// One rank's state, owned by others: vectors of a simulation, or the XDP program's maps.
struct NativeMemory {
  const erar_config* config = nullptr;
  std::uint8_t* arena = nullptr;            // arena_segments * segment_bytes, 8-byte aligned
  __u64* states = nullptr;                  // arena_segments
  erar_operation* operations = nullptr;     // ERAR_SLOTS
  std::uint8_t* parked_payloads = nullptr;  // ERAR_SLOTS * ERAR_PARK_PLACES * segment_bytes
  erar_parked* parking = nullptr;           // ERAR_SLOTS * ERAR_PARK_PLACES
  std::uint64_t* counters = nullptr;        // ERAR_COUNTERS
  std::uint64_t* completions = nullptr;     // operations that became done in this step
};

// A frame in a buffer, 8-byte aligned; the step may make `size` smaller.
struct NativeFrame {
  std::uint8_t* data = nullptr;
  std::size_t size = 0;
};

// Runs the step; on kForward the frame is what leaves. from_process: a kick frame of this rank's
// own.
Verdict native_step(NativeMemory& memory, NativeFrame& frame, bool from_process);

// Writes a kick frame into a buffer that holds a whole segment's frame and runs the step on it.
Verdict native_kick(NativeMemory& memory, NativeFrame& frame, std::uint32_t operation);

}  // namespace erar
