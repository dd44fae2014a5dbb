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
  __u64* heard = nullptr;                   // ERAR_MAX_RANKS signs of life
  erar_mark* mark = nullptr;                // of whoever runs steps through this object
  // Of all the CPUs that may be in a step of this memory (core/session/operation_slot.h).
  const erar_mark* marks = nullptr;
  unsigned mark_count = 0;
};

// A frame in a buffer, 8-byte aligned; the step may make `size` smaller.
struct NativeFrame {
  std::uint8_t* data = nullptr;
  std::size_t size = 0;
};

// Runs the step; on kForward the frame is what leaves. from_process: a kick frame of this rank's
// own.
Verdict native_step(NativeMemory& memory, NativeFrame& frame, bool from_process);

// Makes the frame that brings a segment whose sum is overdue here (erar_resend() in the step), in a
// buffer that holds a whole segment's frame. kDrop: there is nothing to send.
Verdict native_resend(NativeMemory& memory, NativeFrame& frame, std::uint32_t operation,
                      std::uint32_t block, std::uint32_t segment);

// Makes this rank's sign of life in such a buffer.
Verdict native_alive(NativeMemory& memory, NativeFrame& frame);

// Writes a kick frame into a buffer that holds a whole segment's frame and runs the step on it.
Verdict native_kick(NativeMemory& memory, NativeFrame& frame, std::uint32_t operation);

}  // namespace erar
