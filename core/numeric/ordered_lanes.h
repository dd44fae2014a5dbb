// Ordered lanes: floats as unsigned lanes of their own width, of which the kernel takes the
// maximum.
//
// For the maximum of the floats, a lane is the map of the IEEE bits that keeps their order: a
// negative number's bits are all flipped, a positive one's sign bit is. -0 is below +0. For the
// minimum it is the complement of that, so that the least float has the largest lane.
//
// The lane of all ones says "not a number" and so wins every maximum. No number has it: for the
// maximum it would be the map of the positive pattern of all ones below the sign, for the minimum
// of the pattern of all ones, and both of these are NaNs.
#pragma once

#include "core/data_type.h"

#include <cstddef>

namespace erar::numeric {

enum class Extreme : std::uint8_t { kMin, kMax };

// lanes[i] = lane of values[i]; of a NaN and, unless infinities are values, of an infinity it is
// the marker. True when any marker was written. type is a float type; values and lanes are the same
// memory or do not overlap.
bool to_ordered(DataType type, Extreme extreme, bool infinities_are_values, const void* values,
                std::size_t count, void* lanes);

// The floats of such lanes, bit for bit; the marker becomes the canonical quiet NaN. True when any
// marker was met. lanes and values are the same memory or do not overlap.
bool from_ordered(DataType type, Extreme extreme, const void* lanes, std::size_t count,
                  void* values);

}  // namespace erar::numeric
