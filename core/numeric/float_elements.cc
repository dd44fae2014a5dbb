// Passes over floats: arithmetic, and bit patterns compared as integers.
//
// Patterns are compared by the top bit of a difference, since SSE2 compares no 64-bit words.
#include "core/numeric/float_elements.h"

#include "core/numeric/float_format.h"
#include "core/numeric/float_mode.h"
#include "core/numeric/half.h"
#include "core/numeric/per_instruction_set.h"

#include <algorithm>

namespace erar::numeric {
namespace {

// In double also for float: the factor is one.
template <class Float>
struct Scale {
  [[gnu::always_inline]] static void run(const Float* values, std::size_t count, double factor,
                                         Float* out) {
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i) {
      out[i] = static_cast<Float>(static_cast<double>(values[i]) * factor);
    }
  }
};

template <class Float>
struct Divide {
  [[gnu::always_inline]] static void run(Float* values, std::size_t count, Float by) {
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i) values[i] /= by;
  }
};

// 1 where the pattern is infinity's or above, else 0.
template <class Bits>
[[gnu::always_inline]] inline Bits not_finite(Bits bits, Bits infinity) {
  constexpr auto kMagnitude = static_cast<Bits>(FloatFormat<Bits>::kSign - 1);
  const auto difference = static_cast<Bits>(infinity - 1 - (bits & kMagnitude));
  return static_cast<Bits>(difference >> FloatFormat<Bits>::kSignShift);
}

template <class Bits>
struct AnyNotFinite {
  [[gnu::always_inline]] static bool run(const void* values, std::size_t count, Bits infinity) {
    Bits any = 0;
    for (std::size_t i = 0; i < count; ++i) {
      any = static_cast<Bits>(any | not_finite(load_at<Bits>(values, i), infinity));
    }
    return any != 0;
  }
};

template <class Bits>
struct ZeroNotFinite {
  [[gnu::always_inline]] static void run(const void* values, std::size_t count, Bits infinity,
                                         void* out) {
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i) {
      const Bits bits = load_at<Bits>(values, i);
      const auto kept = static_cast<Bits>(not_finite(bits, infinity) - 1);  // 0 or all ones
      store_at(out, i, static_cast<Bits>(bits & kept));
    }
  }
};

template <class Bits>
struct MarkNotFinite {
  [[gnu::always_inline]] static void run(const void* values, std::size_t count, Bits infinity,
                                         std::uint8_t* marks) {
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i) {
      marks[i] = static_cast<std::uint8_t>(not_finite(load_at<Bits>(values, i), infinity));
    }
  }
};

template <class Bits>
struct SetNan {
  [[gnu::always_inline]] static void run(const std::uint8_t* marks, std::size_t count, Bits nan,
                                         void* values) {
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i) {
      const Bits bits = load_at<Bits>(values, i);
      store_at(values, i, marks[i] != 0 ? nan : bits);
    }
  }
};

// So many elements are looked through before the pass stops at an offender among them.
constexpr std::size_t kSearched = 4096;

template <class Bits>
std::optional<Offender> find(const void* values, std::size_t count, FloatFormat<Bits> format) {
  for (std::size_t first = 0; first < count; first += kSearched) {
    const std::size_t part = std::min(kSearched, count - first);
    const void* from = static_cast<const char*>(values) + first * sizeof(Bits);
    if (!run_widest<AnyNotFinite<Bits>>(from, part, format.infinity)) continue;
    std::size_t i = 0;
    while (not_finite(load_at<Bits>(from, i), format.infinity) == 0) ++i;
    const Bits bits = load_at<Bits>(from, i);
    Offender::Kind kind = Offender::Kind::kNaN;
    if (bits == format.infinity) kind = Offender::Kind::kInfinity;
    if (bits == (format.infinity | format.kSign)) kind = Offender::Kind::kMinusInfinity;
    return Offender{first + i, kind};
  }
  return std::nullopt;
}

}  // namespace

void scale(std::span<const float> values, double factor, float* out) {
  const FloatMode mode(Denormals::kKept);
  run_widest<Scale<float>>(values.data(), values.size(), factor, out);
}

void scale(std::span<const double> values, double factor, double* out) {
  const FloatMode mode(Denormals::kKept);
  run_widest<Scale<double>>(values.data(), values.size(), factor, out);
}

void divide(std::span<float> values, float by) {
  const FloatMode mode(Denormals::kKept);
  run_widest<Divide<float>>(values.data(), values.size(), by);
}

void divide(std::span<double> values, double by) {
  const FloatMode mode(Denormals::kKept);
  run_widest<Divide<double>>(values.data(), values.size(), by);
}

void scale_floats(DataType type, const void* values, std::size_t count, double factor, void* out) {
  if (type == DataType::kFloat64) {
    scale({static_cast<const double*>(values), count}, factor, static_cast<double*>(out));
  } else if (type == DataType::kFloat32) {
    scale({static_cast<const float*>(values), count}, factor, static_cast<float*>(out));
  } else {
    compute_as_floats(
        half_kind_of(type), static_cast<const std::uint16_t*>(values), count,
        static_cast<std::uint16_t*>(out),
        [factor](std::size_t, std::span<float> floats) { scale(floats, factor, floats.data()); });
  }
}

void divide_floats(DataType type, void* values, std::size_t count, unsigned by) {
  if (type == DataType::kFloat64) {
    divide({static_cast<double*>(values), count}, static_cast<double>(by));
  } else if (type == DataType::kFloat32) {
    divide({static_cast<float*>(values), count}, static_cast<float>(by));
  } else {
    auto* halves = static_cast<std::uint16_t*>(values);
    compute_as_floats(
        half_kind_of(type), halves, count, halves,
        [by](std::size_t, std::span<float> floats) { divide(floats, static_cast<float>(by)); });
  }
}

std::optional<Offender> first_not_finite(DataType type, const void* values, std::size_t count) {
  return with_float_format(type, [=](auto format) { return find(values, count, format); });
}

void zero_not_finite(std::span<const float> values, float* out) {
  with_float_format(DataType::kFloat32, [=](auto format) {
    using Bits = typename decltype(format)::Bits;
    run_widest<ZeroNotFinite<Bits>>(values.data(), values.size(), format.infinity, out);
  });
}

void zero_not_finite(std::span<const double> values, double* out) {
  with_float_format(DataType::kFloat64, [=](auto format) {
    using Bits = typename decltype(format)::Bits;
    run_widest<ZeroNotFinite<Bits>>(values.data(), values.size(), format.infinity, out);
  });
}

void mark_not_finite(DataType type, const void* values, std::size_t count, std::uint8_t* marks) {
  with_float_format(type, [=](auto format) {
    using Bits = typename decltype(format)::Bits;
    run_widest<MarkNotFinite<Bits>>(values, count, format.infinity, marks);
  });
}

void set_nan(DataType type, const std::uint8_t* marks, std::size_t count, void* values) {
  with_float_format(type, [=](auto format) {
    using Bits = typename decltype(format)::Bits;
    run_widest<SetNan<Bits>>(marks, count, format.quiet_nan, values);
  });
}

}  // namespace erar::numeric
