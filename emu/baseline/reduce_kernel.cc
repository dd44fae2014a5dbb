// Plain loops, compiled for AVX-512, AVX2 and the baseline, chosen at run time.
//
// Chosen by hand and not by target_clones: those need ifunc, whose resolvers run before the
// sanitizers that our tests are built with have started.
#include "emu/baseline/reduce_kernel.h"

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "emu/baseline/half_element.h"

namespace erar {
namespace {

template <class T>
constexpr bool kIsHalf = std::is_same_v<T, Float16> || std::is_same_v<T, Bfloat16>;

// What an element is computed as.
template <class T>
using Working = std::conditional_t<kIsHalf<T>, float, T>;

// Not by assigning a whole Float16, which keeps GCC from vectorising.
template <class T>
[[gnu::always_inline]] inline void store(T& element, Working<T> value) {
  if constexpr (kIsHalf<T>) {
    element.bits = T(value).bits;
  } else {
    element = value;
  }
}

// Integers are added as unsigned: the same bits, and wrapping is defined.
struct Add {
  template <class T>
  [[gnu::always_inline]] static T of(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      using Bits = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<Bits>(a) + static_cast<Bits>(b));
    } else {
      return a + b;
    }
  }
};

struct Lesser {
  template <class T>
  [[gnu::always_inline]] static T of(T a, T b) {
    return a < b ? a : b;
  }
};

struct Greater {
  template <class T>
  [[gnu::always_inline]] static T of(T a, T b) {
    return a > b ? a : b;
  }
};

// `ivdep` instead of __restrict, as result may be one of the operands: iteration i touches element
// i only, so vectors are safe either way.
template <class T, class Op>
struct Combine {
  [[gnu::always_inline]] static void run(void* result, const void* own, const void* arrived,
                                         std::size_t count) {
    auto* out = static_cast<T*>(result);
    const auto* a = static_cast<const T*>(own);
    const auto* b = static_cast<const T*>(arrived);
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i) {
      store(out[i], Op::of(static_cast<Working<T>>(a[i]), static_cast<Working<T>>(b[i])));
    }
  }
};

// Integers of up to 32 bits are divided as floats that hold them, which vectors can do: a quotient
// by at most 64 that is not whole is at least 1/64 from the next whole number, far more than its
// rounding.
template <class T>
struct Divide {
  using Small = std::conditional_t<sizeof(T) == 1, float, double>;
  using Quotient = std::conditional_t<std::is_integral_v<T> && sizeof(T) <= 4, Small, Working<T>>;

  [[gnu::always_inline]] static void run(void* values, std::size_t count, unsigned divisor) {
    auto* out = static_cast<T*>(values);
    const auto by = static_cast<Quotient>(divisor);
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i) {
      const auto quotient = static_cast<Quotient>(static_cast<Working<T>>(out[i])) / by;
      store(out[i], static_cast<Working<T>>(quotient));
    }
  }
};

// The factor of an integer type is what is left of it modulo 2^64.
template <class T>
struct Scale {
  using Factor = std::conditional_t<std::is_integral_v<T>, std::uint64_t, double>;

  [[gnu::always_inline]] static void run(void* result, const void* values, std::size_t count,
                                         Factor factor) {
    auto* out = static_cast<T*>(result);
    const auto* in = static_cast<const T*>(values);
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i) {
      if constexpr (std::is_integral_v<T>) {
        using Bits = std::make_unsigned_t<T>;
        out[i] =
            static_cast<T>(static_cast<Bits>(static_cast<Bits>(in[i]) * static_cast<Bits>(factor)));
      } else {
        const double product = static_cast<double>(static_cast<Working<T>>(in[i])) * factor;
        store(out[i], static_cast<Working<T>>(product));
      }
    }
  }
};

template <class Loop, class... Arguments>
void for_baseline(Arguments... arguments) {
  Loop::run(arguments...);
}

#if defined(__x86_64__)
template <class Loop, class... Arguments>
[[gnu::target("avx2")]] void for_avx2(Arguments... arguments) {
  Loop::run(arguments...);
}

template <class Loop, class... Arguments>
[[gnu::target("avx512f,prefer-vector-width=512")]] void for_avx512(Arguments... arguments) {
  Loop::run(arguments...);
}

template <class Loop, class... Arguments>
auto widest() -> void (*)(Arguments...) {
  if (__builtin_cpu_supports("avx512f")) return for_avx512<Loop, Arguments...>;
  if (__builtin_cpu_supports("avx2")) return for_avx2<Loop, Arguments...>;
  return for_baseline<Loop, Arguments...>;
}
#else
template <class Loop, class... Arguments>
auto widest() -> void (*)(Arguments...) {
  return for_baseline<Loop, Arguments...>;
}
#endif

template <class T>
struct Element {
  using Type = T;
};

template <class Visitor>
auto visit(DataType type, Visitor visitor) {
  switch (type) {
    case DataType::kInt8:
      return visitor(Element<std::int8_t>{});
    case DataType::kUint8:
      return visitor(Element<std::uint8_t>{});
    case DataType::kInt32:
      return visitor(Element<std::int32_t>{});
    case DataType::kUint32:
      return visitor(Element<std::uint32_t>{});
    case DataType::kInt64:
      return visitor(Element<std::int64_t>{});
    case DataType::kUint64:
      return visitor(Element<std::uint64_t>{});
    case DataType::kFloat16:
      return visitor(Element<Float16>{});
    case DataType::kFloat64:
      return visitor(Element<double>{});
    case DataType::kBfloat16:
      return visitor(Element<Bfloat16>{});
    case DataType::kFloat32:
      break;
  }
  return visitor(Element<float>{});
}

template <class Loop>
CombineKernel widest_combine() {
  return widest<Loop, void*, const void*, const void*, std::size_t>();
}

// Of a whole number, also of one beyond 64 bits.
std::uint64_t modulo_2_64(double whole) {
  const double rest = std::fmod(std::fabs(whole), 0x1p64);
  const auto bits = static_cast<std::uint64_t>(rest);
  return whole < 0 ? std::uint64_t{0} - bits : bits;
}

}  // namespace

CombineKernel combine_kernel(DataType type, ReduceOp op) {
  return visit(type, [op](auto element) {
    using T = typename decltype(element)::Type;
    if (op == ReduceOp::kMin) return widest_combine<Combine<T, Lesser>>();
    if (op == ReduceOp::kMax) return widest_combine<Combine<T, Greater>>();
    return widest_combine<Combine<T, Add>>();
  });
}

void divide(DataType type, void* values, std::size_t count, unsigned divisor) {
  visit(type, [&](auto element) {
    using T = typename decltype(element)::Type;
    widest<Divide<T>, void*, std::size_t, unsigned>()(values, count, divisor);
  });
}

void scale(DataType type, void* result, const void* values, std::size_t count, double factor) {
  visit(type, [&](auto element) {
    using Loop = Scale<typename decltype(element)::Type>;
    typename Loop::Factor by{};
    if constexpr (std::is_same_v<typename Loop::Factor, double>) {
      by = factor;
    } else {
      by = modulo_2_64(factor);
    }
    widest<Loop, void*, const void*, std::size_t, typename Loop::Factor>()(result, values, count,
                                                                           by);
  });
}

}  // namespace erar
