// Operations over arena ranges: sizes of segments and of their padding.
#include "core/collective/range_operation.h"

#include <cstring>

namespace erar {
namespace {

constexpr std::size_t whole_chunks(std::size_t bytes) {
  return (bytes + ERAR_CHUNK_BYTES - 1) / ERAR_CHUNK_BYTES * ERAR_CHUNK_BYTES;
}

// Payload bytes of the range's last segment.
std::size_t last_bytes(const ArenaRange& range, std::size_t segment_bytes) {
  return whole_chunks(range.bytes - (range.segments - 1) * segment_bytes);
}

}  // namespace

void clear_padding(const Arena& arena, const ArenaRange& range) {
  std::byte* end = arena.segment(range.first_segment) + range.bytes;
  std::memset(end, 0, whole_chunks(range.bytes) - range.bytes);
}

Result<void> start_range(RingDevice& device, std::uint32_t number, const ArenaRange& range,
                         const erar_combine& combine, bool check) {
  erar_start start{};
  start.number = number;
  start.first_segment = range.first_segment;
  start.segments = range.segments;
  start.last_bytes = static_cast<std::uint32_t>(last_bytes(range, device.config().segment_bytes));
  start.combine = combine;
  start.check = check ? 1 : 0;
  return device.start(start);
}

Result<void> start_nothing(RingDevice& device, std::uint32_t number) {
  erar_start nothing{};
  nothing.number = number;
  return device.start(nothing);
}

}  // namespace erar
