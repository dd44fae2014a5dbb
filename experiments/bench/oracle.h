// Oracle: says how many elements of a result are wrong, from the seed alone.
#pragma once

#include "core/data_type.h"
#include "experiments/bench/float_bound.h"
#include "workloads/generator/values.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace erar::bench {

// The operation whose result is judged: the reduction over all ranks of their streams' values.
struct Operation {
  Reduction reduction;
  unsigned ranks = 1;
  std::uint64_t seed = 0;
  workloads::Magnitudes magnitudes = workloads::Magnitudes::kApart;
  std::optional<std::uint64_t> scale_seed{};  // of all operations on the same buffers
  Summation summation = Summation::kBlocks;   // how floats were added up
};

// What a rank's input is to be filled from. Integers whose average is asked for have as much
// headroom as their sum needs.
workloads::Stream stream_of(const Operation& operation, unsigned rank);

// Elements of the result that are not what the operation's may be.
// Integers: exact; sums modulo the type's width, averages truncated towards zero. min and max:
// exact, -0 and +0 being equal. Sums and averages of floats: within the FloatBound of the way they
// were added up.
// NaN is always wrong.
std::uint64_t count_wrong(const Operation& operation, std::span<const std::byte> result);

// A 64-bit hash of the bytes, equal on two ranks when (but for 1 chance in 2^64) their bits are.
std::uint64_t hash_bytes(std::span<const std::byte> bytes);

}  // namespace erar::bench
