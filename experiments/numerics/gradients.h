// Gradient-like inputs: what the errors of a sum are measured on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace erar::numerics {

enum class Gradients : std::uint8_t {
  kNormal,     // normal, sigma 1e-3
  kLognormal,  // random signs, magnitudes lognormal: 1e-4 times exp of normal, sigma 2.5
  kSparse,     // 1 % normal as above, the rest zero
  kOutlier,    // normal as above, but one element of each 1024, the same on all ranks, is about 1e3
  kLayers,     // normal, layers of some thousand elements with sigmas from 1e-9 to 1e1
};
inline constexpr std::array kAllGradients = {Gradients::kNormal, Gradients::kLognormal,
                                             Gradients::kSparse, Gradients::kOutlier,
                                             Gradients::kLayers};

constexpr std::string_view name_of(Gradients kind) {
  constexpr std::array<std::string_view, kAllGradients.size()> kNames = {
      "normal", "lognormal", "sparse", "outlier", "layers"};
  return kNames[static_cast<std::size_t>(kind)];
}

// Each rank's buffer. A rank's values do not depend on how many ranks there are.
std::vector<std::vector<float>> draw_gradients(Gradients kind, unsigned ranks, std::size_t count,
                                               std::uint64_t seed);

}  // namespace erar::numerics
