// Staging: sizes and reservation.
#include "core/collective/staging.h"

#include <algorithm>

namespace erar {

std::size_t Staging::segments(std::size_t group_bytes, std::size_t segment_bytes) {
  const std::size_t data_bytes = GroupPlan::max_group_bytes(group_bytes, segment_bytes);
  return Retention::kAreas * (segments_for(data_bytes, segment_bytes) +
                              segments_for(record_bytes(data_bytes), segment_bytes)) +
         2 * (1 + segments_for(exchange_bytes(), segment_bytes));
}

Result<Staging> Staging::reserve(Arena& arena, std::size_t group_bytes, std::size_t segment_bytes) {
  const std::size_t data_bytes = GroupPlan::max_group_bytes(group_bytes, segment_bytes);
  Staging staging;
  const auto take = [&arena](std::size_t bytes, ArenaRange& range) -> Result<void> {
    auto taken = arena.allocate(bytes);
    if (!taken) return taken.error();
    range = *taken;
    return {};
  };
  for (Area& area : staging.areas) {
    if (auto taken = take(data_bytes, area.data); !taken) return taken.error();
    if (auto taken = take(record_bytes(data_bytes), area.records); !taken) return taken.error();
  }
  for (ArenaRange& opening : staging.openings)
    if (auto taken = take(std::min(kOpeningBytes, segment_bytes), opening); !taken)
      return taken.error();
  for (ArenaRange& exchange : staging.exchanges)
    if (auto taken = take(exchange_bytes(), exchange); !taken) return taken.error();
  return staging;
}

}  // namespace erar
