// Kinds of floats to test with; each kind is a case that once was, or could be, handled wrongly.
#pragma once

#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

namespace erar::numeric {

using Random = std::mt19937_64;

struct Pattern {
  const char* name;
  std::function<float(Random&)> draw;
};

inline float from_bits(std::uint64_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
}

// Any finite value, all exponents equally likely.
inline float any_finite(Random& random) {
  const std::uint64_t bits = random();
  return from_bits((bits & 0x807fffff) | ((bits >> 32) % 255) << 23);
}

inline float random_sign(float magnitude, Random& random) {
  return (random() & 1) != 0 ? -magnitude : magnitude;
}

// Magnitudes around 2^power.
inline Pattern around(const char* name, int power) {
  return {name, [power](Random& random) {
            std::uniform_real_distribution<double> mantissa(-2, 2);
            return static_cast<float>(std::ldexp(mantissa(random), power));
          }};
}

inline std::vector<Pattern> patterns() {
  return {
      {"gradients",
       [](Random& random) { return std::normal_distribution<float>(0.0F, 1e-3F)(random); }},
      {"zeros", [](Random& random) { return random_sign(0.0F, random); }},
      {"any finite", any_finite},
      {"denormals", [](Random& random) { return from_bits(random() & 0x807fffff); }},
      {"few denormal bits", [](Random& random) { return from_bits(random() & 0x80000007); }},
      {"FLT_MAX", [](Random&) { return FLT_MAX; }},
      {"+-FLT_MAX", [](Random& random) { return random_sign(FLT_MAX, random); }},
      {"1e-38", [](Random& random) { return random_sign(1e-38F, random); }},
      {"3e38", [](Random& random) { return random_sign(3e38F, random); }},
      {"sparse", [](Random& random) { return random() % 8 == 0 ? any_finite(random) : 0.0F; }},
      // On both sides of where the exact path begins and ends: exponents 26 to 32.
      around("2^-102", -102),
      around("2^-99", -99),
      around("2^-96", -96),
      around("2^-95", -95),
      around("2^-94", -94),
      around("2^-126", -126),
  };
}

}  // namespace erar::numeric
