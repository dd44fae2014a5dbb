// Operations over arena ranges: what a pipeline starts.
#pragma once

#include <cstdint>

#include "core/collective/arena.h"
#include "core/session/ring_device.h"

namespace erar {

// A range is combined in whole chunks: zeroes what pads its bytes to one.
void clear_padding(const Arena& arena, const ArenaRange& range);

// Starts an operation over the range, in which this rank's share lies.
Result<void> start_range(RingDevice& device, std::uint32_t number, const ArenaRange& range,
                         const erar_combine& combine, bool check);

// An operation that is not wanted still takes its number.
Result<void> start_nothing(RingDevice& device, std::uint32_t number);

}  // namespace erar
