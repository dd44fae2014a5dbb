// Staging: the parts of a device's arena through which buffers pass that do not lie in it.
#pragma once

#include <array>
#include <cstddef>

#include "core/collective/arena.h"
#include "core/collective/group_plan.h"
#include "core/collective/retention.h"
#include "core/numeric/block_float.h"
#include "core/protocol/ring.h"

namespace erar {

// How many groups may be between their first and last stage, each with a staging area of its own.
inline constexpr unsigned kPipelineDepth = 3;
static_assert(kPipelineDepth < Retention::kAreas);

// The first operation of every call is one segment of this size whatever the call is, or of a whole
// segment where that is less: 64 bytes of signature and room for what a small call needs besides.
inline constexpr std::size_t kOpeningBytes = 64 + 1024;

struct Staging {
  struct Area {
    ArenaRange data;
    ArenaRange records;
  };
  std::array<Area, Retention::kAreas> areas;
  // Of one call and the next: while a call's is under way, all ranks are done with the one before.
  std::array<ArenaRange, 2> openings;
  // Call records of all ranks, and other small things after the data; in turns as well.
  std::array<ArenaRange, 2> exchanges;

  // Records of a group: those of float32 are the largest (64 bytes for 4 KiB of lanes).
  static constexpr std::size_t record_bytes(std::size_t group_bytes) {
    return (numeric::exponent_count(group_bytes / sizeof(float)) + 1) *
           sizeof(numeric::MagnitudeSum);
  }
  static constexpr std::size_t exchange_bytes() { return std::size_t{64} * ERAR_MAX_RANKS; }

  // Segments that reserve() takes.
  static std::size_t segments(std::size_t group_bytes, std::size_t segment_bytes);
  static Result<Staging> reserve(Arena& arena, std::size_t group_bytes, std::size_t segment_bytes);
};

}  // namespace erar
