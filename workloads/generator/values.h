// Seeded input values that differ by rank and whose reductions anyone can recompute.
//
// A value is a pure function of (seed, rank, index): there is no generator state, so a checker
// produces every other rank's values on the spot, in any order, without memory or messages.
#pragma once

#include "core/data_type.h"

#include <cstddef>
#include <cstdint>
#include <optional>
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
  // Integers use the full range; less so many bits where sums of up to 2^headroom_bits ranks are to
  // fit into the type, as those of an average must.
  unsigned headroom_bits = 0;
  // What the blocks' float magnitudes are drawn from, where it is not `seed`: with one for all
  // operations of a run the magnitudes stay while the values change, as those of gradients do.
  std::optional<std::uint64_t> scale_seed{};
};

// A seed for each operation of a run, so that a result left over from an earlier operation is
// wrong.
std::uint64_t operation_seed(std::uint64_t run_seed, std::uint64_t operation);

// Float magnitudes are drawn anew for each so many elements.
inline constexpr std::size_t kScaleBlock = 1024;

// Elements first, first + 1, ... of the stream, as many as fit into bytes, which are aligned to 8;
// a rest that is no whole element stays as it is. first is a multiple of 4. Values repeat
// after 16 GiB.
//
// Integers: uniform over the full range, so that sums wrap; less the stream's headroom_bits.
// float32, bfloat16, float64: uniform in [-2^-k, 2^-k], where k is drawn anew for each kScaleBlock
// elements: 0..23 for all ranks together (layers of a network differ that much) and, with
// Magnitudes::kApart, 0..3 more for each rank by itself. All 24, 8 or 53 mantissa bits are used.
// float16: the same with 2^(7-k), k being 0..7 and 0..3, and 11 bits: what is summed over 64 ranks
// stays below 2^13, far from the largest float16.
// Floats are always finite and never denormal.
void fill(const Stream& stream, DataType type, std::size_t first, std::span<std::byte> bytes);

// What no magnitude of any rank exceeds in a block of kScaleBlock float elements.
double magnitude_limit(const Stream& stream, DataType type, std::size_t block);

}  // namespace erar::workloads
