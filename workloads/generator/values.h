// Seeded input values that differ by rank and whose sums anyone can recompute.
//
// A value is a pure function of (seed, rank, index): there is no generator state, so a checker
// produces every other rank's values on the spot, in any order, without memory or messages.
#pragma once

#include "core/backend.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace erar::workloads {

// How the ranks' float magnitudes in one block of elements compare. Alike: as gradients of one
// layer from batches of one data set. Apart: each rank's scale differs by a factor of 1, 2, 4 or 8,
// drawn anew for each block; the harder case for everything that shares an exponent.
enum class Magnitudes { kAlike, kApart };

// The values of one rank in one operation.
struct Stream {
  std::uint64_t seed = 0;
  unsigned rank = 0;
  Magnitudes magnitudes = Magnitudes::kApart;
};

// A seed for each operation of a run, so that a result left over from an earlier operation is
// wrong.
std::uint64_t operation_seed(std::uint64_t run_seed, std::uint64_t operation);

// Values first, first + 1, ... of the stream. Indices are taken modulo 2^32 (16 GiB of elements).
// int32: uniform over the full range, so that sums wrap modulo 2^32.
void fill_int32(const Stream& stream, std::size_t first, std::span<std::int32_t> values);

// float32: uniform in [-2^-k, 2^-k], where k is drawn anew for each kScaleBlock elements: 0..23 for
// all ranks together (layers of a network differ that much) and, with Magnitudes::kApart, 0..3 more
// for each rank by itself.
// Always finite and never denormal; all 24 mantissa bits are used.
inline constexpr std::size_t kScaleBlock = 1024;
void fill_float32(const Stream& stream, std::size_t first, std::span<float> values);

// The first bytes.size() / size_of(type) values of the stream; bytes is aligned for the type.
void fill(const Stream& stream, DataType type, std::span<std::byte> bytes);

}  // namespace erar::workloads
