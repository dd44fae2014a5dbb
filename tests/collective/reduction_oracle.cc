// The oracle: 128-bit integers and long doubles, element by element.
#include "tests/collective/reduction_oracle.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>

#include "core/numeric/block_double.h"
#include "core/numeric/block_float.h"
#include "core/numeric/compact_lanes.h"
#include "core/numeric/half.h"

namespace erar::tests {
namespace {

using Wide = __int128;

// Exact in long double for every float type: 64 bits of mantissa, 15 of exponent.
long double float_at(DataType type, const Bytes& bytes, std::size_t index) {
  const std::byte* at = bytes.data() + index * size_of(type);
  if (type == DataType::kFloat64) {
    double value = 0;
    std::memcpy(&value, at, sizeof(value));
    return value;
  }
  float value = 0;
  if (type == DataType::kFloat32) {
    std::memcpy(&value, at, sizeof(value));
  } else {
    std::uint16_t bits = 0;
    std::memcpy(&bits, at, sizeof(bits));
    numeric::half_to_float(numeric::half_kind_of(type), &bits, 1, &value);
  }
  return value;
}

template <class T>
Wide integer_of(const std::byte* at) {
  T value = 0;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

Wide integer_at(DataType type, const Bytes& bytes, std::size_t index) {
  const std::byte* at = bytes.data() + index * size_of(type);
  switch (type) {
    case DataType::kInt8:
      return integer_of<std::int8_t>(at);
    case DataType::kUint8:
      return integer_of<std::uint8_t>(at);
    case DataType::kInt32:
      return integer_of<std::int32_t>(at);
    case DataType::kUint32:
      return integer_of<std::uint32_t>(at);
    case DataType::kInt64:
      return integer_of<std::int64_t>(at);
    default:
      return integer_of<std::uint64_t>(at);
  }
}

// Mantissa bits without the hidden one, and the exponent of the smallest normal number.
struct Format {
  int mantissa;
  int smallest;
  long double largest;
};

Format format_of(DataType type) {
  switch (type) {
    case DataType::kFloat16:
      return {10, -14, 65504.0L};
    case DataType::kBfloat16:
      return {7, -126, 0x1.fep127L};
    case DataType::kFloat32:
      return {23, -126, 0x1.fffffep127L};
    default:
      return {52, -1022, 0x1.fffffffffffffp1023L};
  }
}

// Half a unit in the last place of a result of this magnitude.
long double rounding_of(const Format& format, long double magnitude) {
  const int exponent =
      magnitude == 0 ? format.smallest : std::max(std::ilogb(magnitude), format.smallest);
  return std::ldexp(1.0L, exponent - format.mantissa - 1);
}

void put(DataType type, long double value, std::byte* at) {
  if (type == DataType::kFloat64) {
    const auto narrow = static_cast<double>(value);
    std::memcpy(at, &narrow, sizeof(narrow));
    return;
  }
  const auto narrow = static_cast<float>(value);
  if (type == DataType::kFloat32) {
    std::memcpy(at, &narrow, sizeof(narrow));
    return;
  }
  std::uint16_t bits = 0;
  numeric::float_to_half(numeric::half_kind_of(type), &narrow, 1, &bits);
  std::memcpy(at, &bits, sizeof(bits));
}

long double draw_value(const Format& format, Inputs kind, std::size_t index, unsigned rank,
                       Random& random) {
  const auto uniform = [&random] { return std::uniform_real_distribution<double>(-1, 1)(random); };
  const int bits = -format.smallest;  // binades on either side of 1, about
  switch (kind) {
    case Inputs::kGradients:
      return std::normal_distribution<double>(0, 0.02)(random);
    case Inputs::kMixed: {
      const int exponent = static_cast<int>(random() % static_cast<unsigned>(2 * bits)) - bits;
      return std::ldexp(static_cast<long double>(uniform()), exponent);
    }
    case Inputs::kBlockwise: {
      const auto scale = static_cast<int>((index / 100 * 7 + rank * 3) % 20);
      return std::ldexp(static_cast<long double>(uniform()), -scale);
    }
    case Inputs::kDenormal:
      return random() % 3 == 0 ? 0.0L
                               : std::ldexp(static_cast<long double>(uniform()), format.smallest);
    case Inputs::kHuge:
      return format.largest * (0.5L + 0.5L * static_cast<long double>(std::fabs(uniform()))) *
             (random() % 2 == 0 ? 1 : -1);
    case Inputs::kOneRank:
      return rank == 1 ? static_cast<long double>(uniform()) : 0.0L;
    case Inputs::kSparse:
      return index % 1000 == 500  ? format.largest / 256
             : random() % 16 == 0 ? static_cast<long double>(uniform())
                                  : 0.0L;
  }
  return 0;
}

template <class T>
std::string text_of(T value) {
  std::ostringstream text;
  text.precision(21);
  text << value;
  return text.str();
}

std::string wrong_integers(const Reduction& reduction, const std::vector<Bytes>& inputs,
                           const Bytes& result) {
  const DataType type = reduction.type;
  const auto ranks = static_cast<Wide>(inputs.size());
  const std::size_t bytes = size_of(type);
  for (std::size_t i = 0; i < result.size() / bytes; i++) {
    Wide sum = 0;
    Wide least = integer_at(type, inputs[0], i);
    Wide most = least;
    for (const Bytes& input : inputs) {
      const Wide value = integer_at(type, input, i);
      sum += value * static_cast<Wide>(reduction.pre_scale);
      least = std::min(least, value);
      most = std::max(most, value);
    }
    Wide expected = sum;
    if (reduction.op == ReduceOp::kAverage) expected = sum / ranks;
    if (reduction.op == ReduceOp::kMin) expected = least;
    if (reduction.op == ReduceOp::kMax) expected = most;
    // Little-endian: the low bytes are the value modulo the type's width.
    if (std::memcmp(&expected, result.data() + i * bytes, bytes) == 0) continue;
    return "element " + std::to_string(i) + ": " +
           text_of(static_cast<long double>(integer_at(type, result, i))) + " instead of " +
           text_of(static_cast<long double>(expected));
  }
  return {};
}

std::string wrong_extremes(const Reduction& reduction, const std::vector<Bytes>& inputs,
                           const Bytes& result) {
  for (std::size_t i = 0; i < result.size() / size_of(reduction.type); i++) {
    long double expected = float_at(reduction.type, inputs[0], i);
    for (const Bytes& input : inputs) {
      const long double value = float_at(reduction.type, input, i);
      expected =
          reduction.op == ReduceOp::kMin ? std::min(expected, value) : std::max(expected, value);
    }
    const long double got = float_at(reduction.type, result, i);
    if (!(got == expected))
      return "element " + std::to_string(i) + ": " + text_of(got) + " instead of " +
             text_of(expected);
  }
  return {};
}

// One quantisation step of a block, from its ranks' largest magnitudes.
long double step_of(const Reduction& reduction, const std::vector<long double>& largest) {
  const auto ranks = static_cast<unsigned>(largest.size());
  const long double most = *std::max_element(largest.begin(), largest.end());
  if (most == 0) return 0;
  if (reduction.type == DataType::kFloat64) {
    const int exponent = std::max(std::ilogb(most) + 1023, 1);
    return numeric::block_double_step(static_cast<numeric::Exponent>(exponent), ranks);
  }
  if (reduction.compressed) {
    const int exponent = std::max(std::ilogb(most) + 127, 1);
    return numeric::compact_step(static_cast<numeric::Exponent>(exponent), ranks);
  }
  // Of what a sum can be, a part in 2^30.
  long double total = 0;
  for (const long double magnitude : largest) total += magnitude;
  return total * 0x1p-30L * (1 + 0x1p-24L);
}

long double scaled(const Reduction& reduction, long double value) {
  if (reduction.pre_scale == 1) return value;
  if (reduction.type == DataType::kFloat64) return static_cast<double>(value) * reduction.pre_scale;
  return static_cast<float>(static_cast<double>(value) * reduction.pre_scale);
}

std::string wrong_sums(const Reduction& reduction, const std::vector<Bytes>& inputs,
                       const Bytes& result) {
  const auto ranks = static_cast<unsigned>(inputs.size());
  const DataType type = reduction.type;
  const Format format = format_of(type);
  const Format middle = format_of(type == DataType::kFloat64 ? type : DataType::kFloat32);
  const std::size_t count = result.size() / size_of(type);
  for (std::size_t first = 0; first < count; first += numeric::kExponentBlock) {
    const std::size_t end = std::min(count, first + numeric::kExponentBlock);
    std::vector<long double> largest;
    for (const Bytes& input : inputs) {
      largest.push_back(0);
      for (std::size_t i = first; i < end; i++)
        largest.back() =
            std::max(largest.back(), std::fabs(scaled(reduction, float_at(type, input, i))));
    }
    const long double step = step_of(reduction, largest);
    // Half a step per rank; a whole one where 16-bit lanes are clamped.
    const long double quantised = (reduction.compressed ? 1.0L : 0.5L) * ranks * step;
    for (std::size_t i = first; i < end; i++) {
      long double exact = 0;
      long double magnitudes = 0;
      for (const Bytes& input : inputs) {
        exact += scaled(reduction, float_at(type, input, i));
        magnitudes += std::fabs(scaled(reduction, float_at(type, input, i)));
      }
      long double bound = quantised + rounding_of(middle, std::fabs(exact) + quantised);
      if (reduction.op == ReduceOp::kAverage) {
        exact /= ranks;
        bound = bound / ranks + rounding_of(middle, std::fabs(exact) + bound);
      }
      if (size_of(type) == 2) bound += rounding_of(format, std::fabs(exact) + bound);
      // The long doubles' own roundings.
      bound += std::ldexp(magnitudes, -60);
      const long double got = float_at(type, result, i);
      const bool overflows = std::fabs(exact) + bound > format.largest;
      if (std::isinf(got) && overflows && (got > 0) == (exact > 0)) continue;
      // An average's sum may overflow where the average would not.
      if (std::isinf(got) && std::fabs(exact) * ranks + bound > middle.largest) continue;
      if (!(std::fabs(got - exact) <= bound))
        return "element " + std::to_string(i) + ": " + text_of(got) + " instead of " +
               text_of(exact) + ", off by more than " + text_of(bound);
    }
  }
  return {};
}

}  // namespace

Bytes draw(DataType type, Inputs kind, std::size_t count, unsigned rank, Random& random) {
  Bytes bytes(count * size_of(type));
  if (!is_float(type)) {
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    return bytes;
  }
  const Format format = format_of(type);
  for (std::size_t i = 0; i < count; i++)
    put(type, draw_value(format, kind, i, rank, random), bytes.data() + i * size_of(type));
  return bytes;
}

std::string what_is_wrong(const Reduction& reduction, const std::vector<Bytes>& inputs,
                          const Bytes& result) {
  if (!is_float(reduction.type)) return wrong_integers(reduction, inputs, result);
  if (reduction.op == ReduceOp::kMin || reduction.op == ReduceOp::kMax)
    return wrong_extremes(reduction, inputs, result);
  return wrong_sums(reduction, inputs, result);
}

}  // namespace erar::tests
