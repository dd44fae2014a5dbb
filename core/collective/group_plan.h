// Group plan: how a buffer is cut into groups that go through the ring one after the other.
#pragma once

#include <cstddef>
#include <numeric>

#include "core/numeric/block_float.h"

namespace erar {

// A function of sizes alone, so that all ranks cut alike. Groups start at whole segments (so that a
// registered buffer needs no copy) and at whole granules: exponent blocks where there are any, so
// that results do not depend on the cut.
struct GroupPlan {
  std::size_t group_elements = 0;  // of every group but the last
  std::size_t groups = 0;          // 0 for no elements

  static constexpr std::size_t unit_bytes(std::size_t granule_bytes, std::size_t segment_bytes) {
    return std::lcm(segment_bytes, granule_bytes);
  }
  // No group of any plan whose granule is a whole exponent block or less has more bytes of lanes.
  static constexpr std::size_t max_group_bytes(std::size_t target_bytes,
                                               std::size_t segment_bytes) {
    return 2 * target_bytes +
           unit_bytes(numeric::kExponentBlock * sizeof(std::uint64_t), segment_bytes);
  }
  // Groups of about target_bytes of lanes; a buffer of less than twice that is one group: what a
  // second group costs (two system calls and a wake-up) is not worth an overlap of halves.
  // count * lane_bytes does not overflow.
  static constexpr GroupPlan of(std::size_t count, std::size_t lane_bytes,
                                std::size_t granule_elements, std::size_t target_bytes,
                                std::size_t segment_bytes) {
    if (count == 0) return {};
    const std::size_t unit = unit_bytes(granule_elements * lane_bytes, segment_bytes) / lane_bytes;
    const std::size_t bytes = count * lane_bytes;
    const std::size_t wanted = bytes / target_bytes > 1 ? bytes / target_bytes : 1;
    const std::size_t each = count / wanted + (count % wanted != 0 ? 1 : 0);
    GroupPlan plan;
    plan.group_elements = (each + unit - 1) / unit * unit;
    plan.groups = count / plan.group_elements + (count % plan.group_elements != 0 ? 1 : 0);
    return plan;
  }
};

}  // namespace erar
