// Ordered lanes: one loop each way, for words of 16, 32 and 64 bits.
//
// Masks are made by shifts of the top bit instead of comparisons, since SSE2 compares no 64-bit
// words: the difference of two patterns without sign has it set if the first is the smaller.
#include "core/numeric/ordered_lanes.h"

#include "core/numeric/float_format.h"
#include "core/numeric/per_instruction_set.h"

namespace erar::numeric {
namespace {

// All ones if the top bit is set, else 0.
template <class Bits>
[[gnu::always_inline]] inline Bits spread_top_bit(Bits word) {
  return static_cast<Bits>(Bits{0} - static_cast<Bits>(word >> FloatFormat<Bits>::kSignShift));
}

// `flip` is all ones for the minimum, 0 for the maximum.
template <class Bits>
struct ToOrdered {
  [[gnu::always_inline]] static bool run(const void* values, std::size_t count, Bits largest,
                                         Bits flip, void* lanes) {
    constexpr Bits kSign = FloatFormat<Bits>::kSign;
    Bits any = 0;
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i) {
      const Bits bits = load_at<Bits>(values, i);
      const auto magnitude = static_cast<Bits>(bits & static_cast<Bits>(kSign - 1));
      const Bits marker = spread_top_bit(static_cast<Bits>(largest - magnitude));
      const auto flipped = static_cast<Bits>(spread_top_bit(bits) | kSign);
      store_at(lanes, i, static_cast<Bits>((bits ^ flipped ^ flip) | marker));
      any = static_cast<Bits>(any | marker);
    }
    return any != 0;
  }
};

template <class Bits>
struct FromOrdered {
  [[gnu::always_inline]] static bool run(const void* lanes, std::size_t count, Bits nan, Bits flip,
                                         void* values) {
    constexpr Bits kSign = FloatFormat<Bits>::kSign;
    Bits any = 0;
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i) {
      const Bits lane = load_at<Bits>(lanes, i);
      // Nonzero words, and only these, have the top bit in themselves or in their negative.
      const auto rest = static_cast<Bits>(~lane);
      const auto marker = static_cast<Bits>(
          ~spread_top_bit(static_cast<Bits>(rest | static_cast<Bits>(Bits{0} - rest))));
      const auto ordered = static_cast<Bits>(lane ^ flip);
      const auto flipped = static_cast<Bits>(spread_top_bit(static_cast<Bits>(~ordered)) | kSign);
      const auto bits = static_cast<Bits>(ordered ^ flipped);
      store_at(values, i, static_cast<Bits>((bits & ~marker) | (nan & marker)));
      any = static_cast<Bits>(any | marker);
    }
    return any != 0;
  }
};

template <class Bits>
Bits flip_of(Extreme extreme) {
  return static_cast<Bits>(extreme == Extreme::kMin ? ~Bits{0} : Bits{0});
}

}  // namespace

bool to_ordered(DataType type, Extreme extreme, bool infinities_are_values, const void* values,
                std::size_t count, void* lanes) {
  return with_float_format(type, [=](auto format) {
    using Bits = typename decltype(format)::Bits;
    const auto largest = static_cast<Bits>(format.infinity - (infinities_are_values ? 0 : 1));
    return run_widest<ToOrdered<Bits>>(values, count, largest, flip_of<Bits>(extreme), lanes);
  });
}

bool from_ordered(DataType type, Extreme extreme, const void* lanes, std::size_t count,
                  void* values) {
  return with_float_format(type, [=](auto format) {
    using Bits = typename decltype(format)::Bits;
    return run_widest<FromOrdered<Bits>>(lanes, count, format.quiet_nan, flip_of<Bits>(extreme),
                                         values);
  });
}

}  // namespace erar::numeric
