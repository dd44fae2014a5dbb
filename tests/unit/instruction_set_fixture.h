// What the tests of numeric passes share: a run per instruction set, a seed that replays it, and
// hostile floating point modes.
#pragma once

#include "core/numeric/instruction_set.h"

#include <gtest/gtest.h>
#include <xmmintrin.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <random>
#include <string>
#include <vector>

namespace erar::numeric {

using Random = std::mt19937_64;

inline constexpr std::array<std::size_t, 9> kCounts = {0, 1, 15, 16, 17, 1023, 1024, 1025, 5000};

// Every test runs once per instruction set. ERAR_SEED replays a run.
class InstructionSetTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!force_instruction_set(GetParam())) GTEST_SKIP() << "the CPU lacks " << GetParam();
    ASSERT_STREQ(instruction_set(), GetParam());
    const char* given = std::getenv("ERAR_SEED");
    const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10)
                                                : (std::uint64_t{std::random_device()()});
    std::cout << "ERAR_SEED=" << seed << '\n';
    random_.seed(seed);
  }
  void TearDown() override {
    for (const char* name : {"avx512", "avx2", "sse2"}) {
      if (force_instruction_set(name)) return;
    }
  }

  Random random_;
};

inline auto instruction_sets() { return testing::Values("avx512", "avx2", "sse2"); }

inline std::string instruction_set_name(const testing::TestParamInfo<const char*>& set) {
  return set.param;
}

// Denormals flushed both ways and rounding upwards; the same, rounding towards zero and with every
// exception trapping.
inline constexpr std::array<unsigned, 2> kHostileModes = {0xdfc0, 0xe040};

// Runs the action in that mode, and tells what the mode is afterwards.
template <class Action>
unsigned in_mode(unsigned mode, Action action) {
  const unsigned before = _mm_getcsr();
  _mm_setcsr(mode);
  action();
  const unsigned after = _mm_getcsr();
  _mm_setcsr(before);
  return after;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

// A vector's elements at some distance from alignment, with a margin on both sides that tells when
// it is touched.
template <class T>
class Misaligned {
 public:
  Misaligned(std::size_t count, std::size_t offset)
      : offset_(offset * sizeof(T)),
        bytes_(count * sizeof(T)),
        memory_(bytes_ + offset_ + kMargin, kUntouched) {}

  T* data() { return reinterpret_cast<T*>(memory_.data() + offset_); }

  void fill(const std::vector<T>& elements) {
    if (!elements.empty()) std::memcpy(data(), elements.data(), bytes_);
  }
  bool holds(const std::vector<T>& elements) {
    return elements.size() * sizeof(T) == bytes_ &&
           (bytes_ == 0 || std::memcmp(data(), elements.data(), bytes_) == 0);
  }
  bool margin_is_untouched() const {
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      if (i >= offset_ && i < offset_ + bytes_) continue;
      if (memory_[i] != kUntouched) return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t kMargin = 160;
  static constexpr unsigned char kUntouched = 0xa5;
  std::size_t offset_;
  std::size_t bytes_;
  std::vector<unsigned char> memory_;
};

}  // namespace erar::numeric
