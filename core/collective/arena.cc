// Arena: a bump allocator over segments, and the look-up of what it handed out.
#include "core/collective/arena.h"

#include <string>

#include "core/protocol/wire.h"

namespace erar {

Result<ArenaRange> Arena::allocate(std::size_t bytes) {
  const std::size_t segments = segments_for(bytes, segment_bytes_);
  const std::size_t total = memory_.size() / segment_bytes_;
  if (segments > total - used_segments_)
    return Error{ENOMEM, "allocate",
                 std::to_string(bytes) + " bytes of registered memory, " +
                     std::to_string((total - used_segments_) * segment_bytes_) + " left"};
  ArenaRange range{used_segments_, static_cast<std::uint32_t>(segments), bytes};
  used_segments_ += range.segments;
  allocations_.push_back(range);
  return range;
}

std::optional<ArenaRange> Arena::find(const void* start, std::size_t bytes) const {
  const auto* at = static_cast<const std::byte*>(start);
  if (at < memory_.data() || at >= memory_.data() + memory_.size()) return std::nullopt;
  const auto offset = static_cast<std::size_t>(at - memory_.data());
  if (offset % segment_bytes_ != 0) return std::nullopt;
  const auto first = static_cast<std::uint32_t>(offset / segment_bytes_);
  for (const ArenaRange& allocation : allocations_) {
    if (first < allocation.first_segment || first >= allocation.first_segment + allocation.segments)
      continue;
    const std::size_t end = std::size_t{first - allocation.first_segment} * segment_bytes_ + bytes;
    const bool ends_whole = end % ERAR_CHUNK_BYTES == 0 || end == allocation.bytes;
    if (end > allocation.bytes || !ends_whole) return std::nullopt;
    const std::size_t segments = segments_for(bytes, segment_bytes_);
    return ArenaRange{first, static_cast<std::uint32_t>(segments), bytes};
  }
  return std::nullopt;
}

}  // namespace erar
