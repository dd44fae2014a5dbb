// Arena: hands out the segments of a device's map memory, for staging and for registered buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/result.h"

namespace erar {

constexpr std::size_t segments_for(std::size_t bytes, std::size_t segment_bytes) {
  return (bytes + segment_bytes - 1) / segment_bytes;
}

// A run of segments; `bytes` is what was asked for, the rest of the last segment is padding.
struct ArenaRange {
  std::uint32_t first_segment = 0;
  std::uint32_t segments = 0;
  std::size_t bytes = 0;
};

class Arena {
 public:
  Arena(std::span<std::byte> memory, std::uint32_t segment_bytes)
      : memory_(memory), segment_bytes_(segment_bytes) {}

  // Error ENOMEM when the arena's free segments do not suffice. Nothing is given back.
  Result<ArenaRange> allocate(std::size_t bytes);

  [[nodiscard]] std::span<std::byte> memory(const ArenaRange& range) const {
    return memory_.subspan(std::size_t{range.first_segment} * segment_bytes_, range.bytes);
  }
  [[nodiscard]] std::byte* segment(std::uint32_t index) const {
    return memory_.data() + std::size_t{index} * segment_bytes_;
  }

  // The range at which an operation on caller's memory can work in place: it must start at a
  // segment of an allocation and end either at a whole chunk or where the allocation ends, because
  // the last chunk is summed whole.
  [[nodiscard]] std::optional<ArenaRange> find(const void* start, std::size_t bytes) const;

 private:
  std::span<std::byte> memory_;
  std::uint32_t segment_bytes_;
  std::uint32_t used_segments_ = 0;
  std::vector<ArenaRange> allocations_;
};

}  // namespace erar
