// Draws the inputs: what all ranks share from one generator, a rank's values from one of its own.
#include "experiments/numerics/gradients.h"

#include <cmath>
#include <random>

#include "core/numeric/block_float.h"

namespace erar::numerics {
namespace {

using Random = std::mt19937_64;

constexpr double kSigma = 1e-3;

Random generator(std::uint64_t seed, Gradients kind, unsigned stream) {
  std::seed_seq words{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32U),
                      static_cast<std::uint32_t>(kind), static_cast<std::uint32_t>(stream)};
  return Random(words);
}

// The sigma of each element's layer.
std::vector<double> layer_sigmas(std::size_t count, Random random) {
  std::vector<double> sigmas;
  sigmas.reserve(count);
  while (sigmas.size() < count) {
    const double sigma = std::pow(10.0, std::uniform_real_distribution<double>(-9, 1)(random));
    const std::size_t length = std::uniform_int_distribution<std::size_t>(1000, 6000)(random);
    for (std::size_t i = 0; i < length && sigmas.size() < count; i++) sigmas.push_back(sigma);
  }
  return sigmas;
}

// The place of each block's outlier within the block.
std::vector<std::size_t> outlier_places(std::size_t count, Random random) {
  std::vector<std::size_t> places(numeric::exponent_count(count));
  for (std::size_t& place : places) place = random() % numeric::kExponentBlock;
  return places;
}

}  // namespace

std::vector<std::vector<float>> draw_gradients(Gradients kind, unsigned ranks, std::size_t count,
                                               std::uint64_t seed) {
  const std::vector<double> sigmas = layer_sigmas(count, generator(seed, kind, 0));
  const std::vector<std::size_t> places = outlier_places(count, generator(seed, kind, 0));
  std::vector<std::vector<float>> inputs(ranks);
  for (unsigned rank = 0; rank < ranks; rank++) {
    Random random = generator(seed, kind, rank + 1);
    std::normal_distribution<double> normal;
    const auto draw = [&](std::size_t i) {
      switch (kind) {
        case Gradients::kNormal:
          return kSigma * normal(random);
        case Gradients::kLognormal: {
          const double magnitude = 1e-4 * std::exp(2.5 * normal(random));
          return random() % 2 == 0 ? magnitude : -magnitude;
        }
        case Gradients::kSparse:
          return random() % 100 == 0 ? kSigma * normal(random) : 0.0;
        case Gradients::kOutlier: {
          const std::size_t block = i / numeric::kExponentBlock;
          const bool is_outlier = i % numeric::kExponentBlock == places[block];
          return is_outlier ? 1e3 + 100 * normal(random) : kSigma * normal(random);
        }
        case Gradients::kLayers:
          return sigmas[i] * normal(random);
      }
      return 0.0;
    };
    inputs[rank].reserve(count);
    for (std::size_t i = 0; i < count; i++) inputs[rank].push_back(static_cast<float>(draw(i)));
  }
  return inputs;
}

}  // namespace erar::numerics
