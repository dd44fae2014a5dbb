// Counter-based value generator: a keyed 32-bit hash of the index, eight at a time with AVX2.
#include "workloads/generator/values.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

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

// The loops below, each for any CPU and for those with AVX2.

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

// In the place of 16 uniform bits: 9 of them. The upper half of the float is all there is to it.
struct Bfloat16 {
  [[gnu::always_inline]] static void run(std::uint16_t* values, std::size_t count, float scale) {
    for (std::size_t i = 0; i < count; ++i) {
      const int whole = static_cast<std::int16_t>(values[i]) >> 7;
      const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(whole) * scale);
      values[i] = static_cast<std::uint16_t>(bits >> 16U);
    }
  }
};

// In the place of 16 uniform bits: 12 of them. The float is a normal float16 or zero, so its bits
// have only to be moved and its exponent's bias changed.
struct Float16 {
  [[gnu::always_inline]] static void run(std::uint16_t* values, std::size_t count, float scale) {
    constexpr std::uint32_t kBiases = (127U - 15U) << 10U;
    for (std::size_t i = 0; i < count; ++i) {
      const int whole = static_cast<std::int16_t>(values[i]) >> 4;
      const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(whole) * scale);
      const std::uint32_t magnitude = ((bits & 0x7fffffffU) >> 13U) - kBiases;
      const std::uint32_t not_zero = std::uint32_t{0} - static_cast<std::uint32_t>(whole != 0);
      const std::uint32_t sign = (bits >> 16U) & 0x8000U;
      values[i] = static_cast<std::uint16_t>(sign | (magnitude & not_zero));
    }
  }
};

template <class Loop, class... Arguments>
void for_any(Arguments... arguments) {
  Loop::run(arguments...);
}

template <class Loop, class... Arguments>
[[gnu::target("avx2")]] void for_avx2(Arguments... arguments) {
  Loop::run(arguments...);
}

template <class Loop, class... Arguments>
void run(Arguments... arguments) {
  static const bool kHasAvx2 = __builtin_cpu_supports("avx2") != 0;
  if (kHasAvx2) return for_avx2<Loop, Arguments...>(arguments...);
  for_any<Loop, Arguments...>(arguments...);
}

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
  run<Words, Key, std::uint32_t, std::uint32_t*, std::size_t>(
      key, first, reinterpret_cast<std::uint32_t*>(bytes.data()), count);
  const std::uint32_t last = word_of(key, first + static_cast<std::uint32_t>(count));
  std::memcpy(bytes.data() + count * 4, &last, bytes.size() % 4);
}

template <class T>
void shift(std::span<std::byte> bytes, unsigned bits) {
  if (bits == 0) return;
  run<Shift<T>, T*, std::size_t, unsigned>(reinterpret_cast<T*>(bytes.data()),
                                           bytes.size() / sizeof(T), bits);
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

template <class Loop, class Bits, class Scale>
void shape(std::span<std::byte> bytes, Scale scale) {
  run<Loop, Bits*, std::size_t, Scale>(reinterpret_cast<Bits*>(bytes.data()),
                                       bytes.size() / sizeof(Bits), scale);
}

// Of one block.
void fill_floats(const Stream& stream, DataType type, std::size_t first,
                 std::span<std::byte> bytes) {
  const int exponent = exponent_of(stream, type, first / kScaleBlock);
  if (type == DataType::kFloat32) {
    run<Float32, Key, std::uint32_t, float, float*, std::size_t>(
        key_of(stream), static_cast<std::uint32_t>(first), std::ldexp(1.0F, exponent - 31),
        reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float));
    return;
  }
  fill_words(stream, first * size_of(type), bytes);
  if (type == DataType::kFloat16) {
    shape<Float16, std::uint16_t>(bytes, std::ldexp(1.0F, exponent - 11));
  } else if (type == DataType::kBfloat16) {
    shape<Bfloat16, std::uint16_t>(bytes, std::ldexp(1.0F, exponent - 8));
  } else {
    shape<Float64, std::uint64_t>(bytes, std::ldexp(1.0, exponent - 53));
  }
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
