// Counter-based value generator: a keyed 32-bit hash of the index, in vectors.
#include "workloads/generator/values.h"

#include "core/mix64.h"
#include "core/numeric/half.h"
#include "core/numeric/per_instruction_set.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

namespace erar::workloads {
namespace {

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

// All types are cut from the same words: a word holds four elements of one byte, or half a one of
// eight.
struct Words {
  [[gnu::always_inline]] static void run(Key key, std::uint32_t first, std::uint32_t* out,
                                         std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      out[i] = word_of(key, first + static_cast<std::uint32_t>(i));
    }
  }
};

template <class T>
struct Shift {
  [[gnu::always_inline]] static void run(T* values, std::size_t count, unsigned bits) {
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<T>(values[i] >> bits);
  }
};

// Scaling by a power of two is exact, so the values do not depend on the instruction set.
struct Float32 {
  [[gnu::always_inline]] static void run(Key key, std::uint32_t first, float scale, float* out,
                                         std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t word = word_of(key, first + static_cast<std::uint32_t>(i));
      out[i] = static_cast<float>(static_cast<std::int32_t>(word)) * scale;
    }
  }
};

// In the place of 64 uniform bits: 54 of them, the sign included.
struct Float64 {
  [[gnu::always_inline]] static void run(std::uint64_t* values, std::size_t count, double scale) {
    for (std::size_t i = 0; i < count; ++i) {
      const auto whole = static_cast<std::int64_t>(values[i]) >> 10;
      values[i] = std::bit_cast<std::uint64_t>(static_cast<double>(whole) * scale);
    }
  }
};

// From 16 uniform bits: the upper ones of them.
struct Halves {
  [[gnu::always_inline]] static void run(const std::uint16_t* words, std::size_t count, int dropped,
                                         float scale, float* values) {
    for (std::size_t i = 0; i < count; ++i) {
      const int whole = static_cast<std::int16_t>(words[i]) >> dropped;
      values[i] = static_cast<float>(whole) * scale;
    }
  }
};

// Magnitudes of a block are at most 2^exponent.
int largest_exponent(DataType type, std::uint64_t of_block) {
  if (type == DataType::kFloat16) return 7 - static_cast<int>(of_block % 8);
  return -static_cast<int>(of_block % 24);
}

std::uint64_t draw_of_block(const Stream& stream, std::size_t block) {
  return mix64(mix64(stream.scale_seed.value_or(stream.seed) ^ 0x5ca1ab1eU) + block);
}

int exponent_of(const Stream& stream, DataType type, std::size_t block) {
  const std::uint64_t of_block = draw_of_block(stream, block);
  const std::uint64_t of_rank = mix64(of_block + 1 + stream.rank);
  const int apart = stream.magnitudes == Magnitudes::kApart ? static_cast<int>(of_rank % 4) : 0;
  return largest_exponent(type, of_block) - apart;
}

void fill_words(const Stream& stream, std::size_t first_byte, std::span<std::byte> bytes) {
  const Key key = key_of(stream);
  const auto first = static_cast<std::uint32_t>(first_byte / 4);
  const std::size_t count = bytes.size() / 4;
  numeric::run_widest<Words>(key, first, reinterpret_cast<std::uint32_t*>(bytes.data()), count);
  const std::uint32_t last = word_of(key, first + static_cast<std::uint32_t>(count));
  std::memcpy(bytes.data() + count * 4, &last, bytes.size() % 4);
}

template <class T>
void shift(std::span<std::byte> bytes, unsigned bits) {
  if (bits == 0) return;
  numeric::run_widest<Shift<T>>(reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T), bits);
}

void fill_integers(const Stream& stream, DataType type, std::size_t first_byte,
                   std::span<std::byte> bytes) {
  fill_words(stream, first_byte, bytes);
  const unsigned bits = stream.headroom_bits;
  switch (type) {
    case DataType::kInt8:
      return shift<std::int8_t>(bytes, bits);
    case DataType::kUint8:
      return shift<std::uint8_t>(bytes, bits);
    case DataType::kInt32:
      return shift<std::int32_t>(bytes, bits);
    case DataType::kUint32:
      return shift<std::uint32_t>(bytes, bits);
    case DataType::kInt64:
      return shift<std::int64_t>(bytes, bits);
    default:
      return shift<std::uint64_t>(bytes, bits);
  }
}

// In the place of 16 uniform bits: as many of them as the type holds, so nothing is rounded.
void shape_halves(DataType type, std::span<std::byte> bytes, int exponent) {
  const int digits = type == DataType::kFloat16 ? 11 : 8;
  auto* words = reinterpret_cast<std::uint16_t*>(bytes.data());
  const std::size_t count = bytes.size() / sizeof(std::uint16_t);
  std::array<float, kScaleBlock> values;
  numeric::run_widest<Halves>(static_cast<const std::uint16_t*>(words), count, 15 - digits,
                              std::ldexp(1.0F, exponent - digits), values.data());
  numeric::float_to_half(numeric::half_kind_of(type), values.data(), count, words);
}

// Of one block.
void fill_floats(const Stream& stream, DataType type, std::size_t first,
                 std::span<std::byte> bytes) {
  const int exponent = exponent_of(stream, type, first / kScaleBlock);
  if (type == DataType::kFloat32) {
    numeric::run_widest<Float32>(
        key_of(stream), static_cast<std::uint32_t>(first), std::ldexp(1.0F, exponent - 31),
        reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float));
    return;
  }
  fill_words(stream, first * size_of(type), bytes);
  if (numeric::is_half(type)) return shape_halves(type, bytes, exponent);
  numeric::run_widest<Float64>(reinterpret_cast<std::uint64_t*>(bytes.data()),
                               bytes.size() / sizeof(double), std::ldexp(1.0, exponent - 53));
}

}  // namespace

std::uint64_t operation_seed(std::uint64_t run_seed, std::uint64_t operation) {
  return mix64(mix64(run_seed) ^ (operation + 1));
}

void fill(const Stream& stream, DataType type, std::size_t first, std::span<std::byte> bytes) {
  const std::size_t size = size_of(type);
  const std::size_t whole = bytes.size() / size;
  // By blocks also of integers, so that what is shaped in a second pass is in the cache.
  for (std::size_t done = 0; done < whole;) {
    const std::size_t index = first + done;
    const std::size_t count = std::min(kScaleBlock - index % kScaleBlock, whole - done);
    const std::span<std::byte> block = bytes.subspan(done * size, count * size);
    if (is_float(type)) {
      fill_floats(stream, type, index, block);
    } else {
      fill_integers(stream, type, index * size, block);
    }
    done += count;
  }
}

double magnitude_limit(const Stream& stream, DataType type, std::size_t block) {
  return std::ldexp(1.0, largest_exponent(type, draw_of_block(stream, block)));
}

}  // namespace erar::workloads
