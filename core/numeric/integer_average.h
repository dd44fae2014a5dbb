// Exact averages of integers, truncated towards zero, by lanes that are summed in 64-bit words.
//
// 8-bit integers travel in 16-bit lanes and 32-bit ones in 64-bit lanes: wide enough for the sum,
// signed ones biased by 128 or 2^31 so that no lane is negative and none carries. 64-bit integers
// travel as two words: with u = x (unsigned) or x + 2^63 (signed), the first is floor(u / ranks),
// the second the remainder. The sum of the first is at most the largest u; that of the second is
// below ranks^2. Nothing is lost, so the average is trunc(sum / ranks) for every input.
#pragma once

#include "core/data_type.h"

#include <cstddef>
#include <cstdint>

namespace erar::numeric {

// Bytes of lanes per element: 2, 8 or 16 for integers of 1, 4 or 8 bytes.
std::size_t average_lane_bytes(DataType type);

// One rank's lanes. type is an integer type, 1 <= ranks <= 64; values and lanes do not overlap.
void to_average_lanes(DataType type, unsigned ranks, const void* values, std::size_t count,
                      void* lanes);

// The averages of `ranks` ranks' summed lanes. lanes and values do not overlap.
void from_average_lanes(DataType type, unsigned ranks, const void* lanes, std::size_t count,
                        void* values);

// out[i] = values[i] * factor modulo 2^width, factor_bits being the factor in two's complement.
// type is an integer type; values and out are the same memory or do not overlap.
void scale_integers(DataType type, const void* values, std::size_t count, std::int64_t factor_bits,
                    void* out);

}  // namespace erar::numeric
