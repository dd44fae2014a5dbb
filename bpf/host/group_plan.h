// Group plan: how a buffer is cut into groups that go through the ring one after the other.
#pragma once

#include <cstddef>
#include <numeric>

#include "core/numeric/block_float.h"

namespace erar {

// A function of sizes alone, so that all ranks cut alike. Groups start at whole segments (so that a
// registered buffer needs no copy) and at whole exponent blocks (so that results do not depend on
// it).
struct GroupPlan {
  std::size_t group_bytes = 0;  // of every group but the last
  std::size_t groups = 0;

  static constexpr std::size_t unit_bytes(std::size_t segment_bytes) {
    return std::lcm(segment_bytes, numeric::kExponentBlock * sizeof(float));
  }
  // No group of any plan is larger than this.
  static constexpr std::size_t max_group_bytes(std::size_t target_bytes,
                                               std::size_t segment_bytes) {
    return 2 * target_bytes + unit_bytes(segment_bytes);
  }
  // Groups of about target_bytes; a buffer of less than twice that is one group: what a second
  // group costs (two system calls and a wake-up) is not worth an overlap of halves.
  static constexpr GroupPlan of(std::size_t bytes, std::size_t target_bytes,
                                std::size_t segment_bytes) {
    const std::size_t unit = unit_bytes(segment_bytes);
    const std::size_t wanted = bytes / target_bytes > 1 ? bytes / target_bytes : 1;
    const std::size_t each = (bytes + wanted - 1) / wanted;
    GroupPlan plan;
    plan.group_bytes = (each + unit - 1) / unit * unit;
    plan.groups = (bytes + plan.group_bytes - 1) / plan.group_bytes;
    return plan;
  }
};

}  // namespace erar
