// Counter-based value generator: a keyed 32-bit hash of the index, eight at a time with AVX2.
#include "workloads/generator/values.h"

#include <algorithm>

namespace erar::workloads {
namespace {

// splitmix64's finaliser: every input bit reaches every output bit.
constexpr std::uint64_t mix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

struct Key {
  std::uint32_t first;
  std::uint32_t second;
};

Key key_of(const Stream& stream) {
  const std::uint64_t key = mix64(mix64(stream.seed) + stream.rank);
  return {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32U)};
}

// 32-bit arithmetic on purpose: 64-bit products have no vector instruction before AVX-512. The
// second key enters between the rounds, or two streams would be the same sequence read at other
// places.
[[gnu::always_inline]] inline std::uint32_t word_of(Key key, std::uint32_t index) {
  std::uint32_t x = index ^ key.first;
  x = (x ^ (x >> 16U)) * 0x7feb352dU;
  x += key.second;
  x = (x ^ (x >> 15U)) * 0x846ca68bU;
  return x ^ (x >> 16U);
}

[[gnu::always_inline]] inline void words_loop(Key key, std::uint32_t first, std::int32_t* out,
                                              std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    out[i] = static_cast<std::int32_t>(word_of(key, first + static_cast<std::uint32_t>(i)));
  }
}

// Scaling by a power of two is exact, so the value does not depend on the instruction set.
[[gnu::always_inline]] inline void floats_loop(Key key, std::uint32_t first, float scale,
                                               float* out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t word = word_of(key, first + static_cast<std::uint32_t>(i));
    out[i] = static_cast<float>(static_cast<std::int32_t>(word)) * scale;
  }
}

void words_any(Key key, std::uint32_t first, std::int32_t* out, std::size_t count) {
  words_loop(key, first, out, count);
}

[[gnu::target("avx2")]] void words_avx2(Key key, std::uint32_t first, std::int32_t* out,
                                        std::size_t count) {
  words_loop(key, first, out, count);
}

void floats_any(Key key, std::uint32_t first, float scale, float* out, std::size_t count) {
  floats_loop(key, first, scale, out, count);
}

[[gnu::target("avx2")]] void floats_avx2(Key key, std::uint32_t first, float scale, float* out,
                                         std::size_t count) {
  floats_loop(key, first, scale, out, count);
}

bool has_avx2() {
  static const bool kHas = __builtin_cpu_supports("avx2") != 0;
  return kHas;
}

// 2^-(31 + k): a 32-bit word times this lies in [-2^-k, 2^-k].
float scale_of(const Stream& stream, std::size_t block) {
  const std::uint64_t of_block = mix64(mix64(stream.seed ^ 0x5ca1ab1eU) + block);
  const std::uint64_t of_rank = mix64(of_block + 1 + stream.rank);
  const unsigned apart = stream.magnitudes == Magnitudes::kApart ? of_rank % 4 : 0;
  const unsigned shift = 31U + static_cast<unsigned>(of_block % 24) + apart;
  return 1.0F / static_cast<float>(std::uint64_t{1} << shift);
}

}  // namespace

std::uint64_t operation_seed(std::uint64_t run_seed, std::uint64_t operation) {
  return mix64(mix64(run_seed) ^ (operation + 1));
}

void fill_int32(const Stream& stream, std::size_t first, std::span<std::int32_t> values) {
  const auto loop = has_avx2() ? words_avx2 : words_any;
  loop(key_of(stream), static_cast<std::uint32_t>(first), values.data(), values.size());
}

void fill_float32(const Stream& stream, std::size_t first, std::span<float> values) {
  const auto loop = has_avx2() ? floats_avx2 : floats_any;
  const Key key = key_of(stream);
  std::size_t done = 0;
  while (done < values.size()) {
    const std::size_t index = first + done;
    const std::size_t left_in_block = kScaleBlock - index % kScaleBlock;
    const std::size_t count = std::min(left_in_block, values.size() - done);
    loop(key, static_cast<std::uint32_t>(index), scale_of(stream, index / kScaleBlock),
         values.data() + done, count);
    done += count;
  }
}

void fill(const Stream& stream, DataType type, std::span<std::byte> bytes) {
  const std::size_t count = bytes.size() / size_of(type);
  switch (type) {
    case DataType::kInt32:
      fill_int32(stream, 0, {reinterpret_cast<std::int32_t*>(bytes.data()), count});
      return;
    case DataType::kFloat32:
      fill_float32(stream, 0, {reinterpret_cast<float*>(bytes.data()), count});
      return;
    default:
      return;
  }
}

}  // namespace erar::workloads
