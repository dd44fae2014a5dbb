// Averages of integers: loops per width, in which float divisions stand in for integer ones.
//
// CPUs divide no integers in vectors. A sum n of 8-bit integers is below 2^15, of 32-bit ones below
// 2^38: exact in a float or a double. The quotient by d <= 64 is exact when it is an integer;
// otherwise it is at least 1/64 from the next one, which no rounding bridges (2^-16 and 2^-21 at
// most). So truncating the rounded quotient truncates the exact one.
#include "core/numeric/integer_average.h"

#include "core/numeric/float_mode.h"
#include "core/numeric/per_instruction_set.h"

#include <bit>

namespace erar::numeric {
namespace {

bool is_signed(DataType type) {
  return type == DataType::kInt8 || type == DataType::kInt32 || type == DataType::kInt64;
}

// lanes[i] = values[i] + bias, modulo 2^width of the value.
template <class Value, class Lane>
struct ToLanes {
  [[gnu::always_inline]] static void run(const void* values, std::size_t count, Value bias,
                                         void* lanes) {
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i) {
      const auto biased = static_cast<Value>(load_at<Value>(values, i) + bias);
      store_at(lanes, i, Lane{biased});
    }
  }
};

struct Average8 {
  [[gnu::always_inline]] static void run(const void* lanes, std::size_t count,
                                         std::int32_t total_bias, float ranks, void* values) {
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i) {
      const std::int32_t sum = load_at<std::uint16_t>(lanes, i) - total_bias;
      const auto average = static_cast<std::int32_t>(static_cast<float>(sum) / ranks);
      store_at(values, i, static_cast<std::uint8_t>(average));
    }
  }
};

// A magnitude below 2^52 put into this double's last bits gives, less the double, the magnitude: a
// conversion of 64-bit integers, which only AVX-512 has in vectors.
constexpr double kPin = 0x1p52;
// What is added to this one is rounded to an integer, in its last bits; also if it is below 0.
constexpr double kRoundingPin = 0x1.8p52;

struct Average32 {
  [[gnu::always_inline]] static void run(const void* lanes, std::size_t count,
                                         std::uint64_t total_bias, double ranks, void* values) {
    constexpr auto kPinBits = std::bit_cast<std::uint64_t>(kPin);
    // Takes quotients, which are multiples of 1/ranks, from [k, k + 1) to within 1/2 of k.
    constexpr double kDown = 0.5 - 1.0 / 256;
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t sum = load_at<std::uint64_t>(lanes, i) - total_bias;
      const std::uint64_t negative = 0 - (sum >> 63);
      const std::uint64_t magnitude = (sum ^ negative) - negative;
      const double exact = std::bit_cast<double>(magnitude | kPinBits) - kPin;
      const double pinned = (exact / ranks - kDown) + kRoundingPin;
      const std::uint64_t average = (std::bit_cast<std::uint64_t>(pinned) ^ negative) - negative;
      store_at(values, i, static_cast<std::uint32_t>(average));
    }
  }
};

// u / ranks by multiplication with floor((2^64 - 1) / ranks): at most one too small, and never too
// large, for u < 2^64.
void to_quotients_and_remainders(const void* values, std::size_t count, std::uint64_t bias,
                                 std::uint64_t ranks, void* lanes) {
  __extension__ using Wide = unsigned __int128;
  const std::uint64_t reciprocal = ~std::uint64_t{0} / ranks;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t value = load_at<std::uint64_t>(values, i) + bias;
    const auto estimate = static_cast<std::uint64_t>((Wide{value} * reciprocal) >> 64);
    const std::uint64_t left = value - estimate * ranks;
    const std::uint64_t one_more = left >= ranks ? 1 : 0;
    store_at(lanes, 2 * i, estimate + one_more);
    store_at(lanes, 2 * i + 1, left - (one_more != 0 ? ranks : 0));
  }
}

// The remainders' sum is below 2^12, so its quotient by ranks is that by multiplication with
// ceil(2^32 / ranks).
void average_quotients_and_remainders(const void* lanes, std::size_t count, std::uint64_t bias,
                                      std::uint64_t ranks, void* values) {
  const std::uint64_t reciprocal = ((std::uint64_t{1} << 32) + ranks - 1) / ranks;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t remainders = load_at<std::uint64_t>(lanes, 2 * i + 1);
    const std::uint64_t carried = (remainders * reciprocal) >> 32;
    const std::uint64_t left = remainders - carried * ranks;
    // The average rounded down. Where negative and not whole, truncation is one above.
    const std::uint64_t average = load_at<std::uint64_t>(lanes, 2 * i) + carried;
    const std::uint64_t below_zero = average < bias && left != 0 ? 1 : 0;
    store_at(values, i, average - bias + below_zero);
  }
}

template <class Value>
struct Scale {
  [[gnu::always_inline]] static void run(const void* values, std::size_t count, Value factor,
                                         void* out) {
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i) {
      store_at(out, i, static_cast<Value>(load_at<Value>(values, i) * factor));
    }
  }
};

}  // namespace

std::size_t average_lane_bytes(DataType type) {
  const std::size_t bytes = size_of(type);
  return bytes == 1 ? 2 : bytes == 4 ? 8 : 16;
}

void to_average_lanes(DataType type, unsigned ranks, const void* values, std::size_t count,
                      void* lanes) {
  const std::uint64_t bias = is_signed(type) ? std::uint64_t{1} << (8 * size_of(type) - 1) : 0;
  switch (size_of(type)) {
    case 1:
      return run_widest<ToLanes<std::uint8_t, std::uint16_t>>(
          values, count, static_cast<std::uint8_t>(bias), lanes);
    case 4:
      return run_widest<ToLanes<std::uint32_t, std::uint64_t>>(
          values, count, static_cast<std::uint32_t>(bias), lanes);
    default:
      return to_quotients_and_remainders(values, count, bias, ranks, lanes);
  }
}

void from_average_lanes(DataType type, unsigned ranks, const void* lanes, std::size_t count,
                        void* values) {
  const FloatMode mode(Denormals::kFlushed);
  const std::uint64_t bias = is_signed(type) ? std::uint64_t{1} << (8 * size_of(type) - 1) : 0;
  switch (size_of(type)) {
    case 1:
      return run_widest<Average8>(lanes, count, static_cast<std::int32_t>(ranks * bias),
                                  static_cast<float>(ranks), values);
    case 4:
      return run_widest<Average32>(lanes, count, ranks * bias, static_cast<double>(ranks), values);
    default:
      return average_quotients_and_remainders(lanes, count, bias, ranks, values);
  }
}

void scale_integers(DataType type, const void* values, std::size_t count, std::int64_t factor_bits,
                    void* out) {
  const auto factor = static_cast<std::uint64_t>(factor_bits);
  switch (size_of(type)) {
    case 1:
      return run_widest<Scale<std::uint8_t>>(values, count, static_cast<std::uint8_t>(factor), out);
    case 4:
      return run_widest<Scale<std::uint32_t>>(values, count, static_cast<std::uint32_t>(factor),
                                              out);
    default:
      return run_widest<Scale<std::uint64_t>>(values, count, factor, out);
  }
}

}  // namespace erar::numeric
