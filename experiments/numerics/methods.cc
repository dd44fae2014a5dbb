// Sums of all ranks' buffers, one function for each method.
#include "experiments/numerics/methods.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <mutex>
#include <new>
#include <optional>

#include "core/data_type.h"
#include "sim/ring/memory_group.h"

namespace erar::numerics {
namespace {

constexpr double kIntScale = 1e8;
constexpr std::size_t kChunkAlign = 64 / sizeof(float);

std::uint32_t scaled_int(float value) {
  const double product = static_cast<double>(value) * kIntScale;
  // -2^31 is the least that fits; truncation also takes what lies above -2^31 - 1.
  const bool fits = product > -0x1p31 - 1 && product < 0x1p31;
  return static_cast<std::uint32_t>(fits ? static_cast<std::int32_t>(product)
                                         : std::numeric_limits<std::int32_t>::min());
}

}  // namespace

Result<Sum> erar_sum(const Inputs& inputs, bool compressed, std::uint64_t seed) {
  const std::size_t count = inputs[0].size();
  sim::MemoryGroupOptions options;
  options.ranks = static_cast<unsigned>(inputs.size());
  options.mtu = 3498;
  options.group_bytes = 1U << 16;
  options.registered_bytes = 0;
  options.seed = seed;
  options.timeout_ns = 120'000'000'000;  // of all ranks on however few CPUs
  sim::MemoryGroup group(options);
  Reduction reduction;
  reduction.compressed = compressed;
  std::vector<std::vector<float>> outputs(inputs.size(), std::vector<float>(count));
  std::mutex lock;
  std::optional<Error> error;
  group.run([&](unsigned rank, RingAllreduce& ring) {
    Result<void> done;
    try {
      done = ring.allreduce(inputs[rank].data(), outputs[rank].data(), count, reduction);
    } catch (const std::bad_alloc&) {  // on a thread of its own nothing else would catch it
      done = Error{ENOMEM,
                   fmt::format("allreduce of {} elements on {} ranks", count, inputs.size()), ""};
    }
    if (done) return;
    const std::lock_guard held(lock);
    // The ranks that wait for one that has no memory only say that they waited in vain.
    if (!error || done.error().code == ENOMEM) error = done.error();
  });
  if (error) return *error;
  Sum sum;
  for (const std::vector<float>& output : outputs)
    sum.ranks_agree &= std::memcmp(output.data(), outputs[0].data(), count * sizeof(float)) == 0;
  sum.values = std::move(outputs[0]);
  return sum;
}

std::size_t float_ring_chunk(std::size_t count, std::size_t ranks) {
  const std::size_t even = (count + ranks - 1) / ranks;
  return (even + kChunkAlign - 1) / kChunkAlign * kChunkAlign;
}

std::vector<float> float_ring_sum(const Inputs& inputs) {
  const std::size_t count = inputs[0].size();
  const std::size_t ranks = inputs.size();
  const std::size_t each = float_ring_chunk(count, ranks);
  std::vector<float> sum(count);
  for (std::size_t chunk = 0; chunk < ranks; chunk++) {
    const std::size_t end = std::min(count, each * (chunk + 1));
    for (std::size_t i = std::min(count, each * chunk); i < end; i++) {
      sum[i] = inputs[chunk][i];
      for (std::size_t hop = 1; hop < ranks; hop++) sum[i] += inputs[(chunk + hop) % ranks][i];
    }
  }
  return sum;
}

std::vector<float> scaled_int_sum(const Inputs& inputs) {
  std::vector<std::uint32_t> sums(inputs[0].size());
  for (const std::vector<float>& input : inputs)
    for (std::size_t i = 0; i < sums.size(); i++) sums[i] += scaled_int(input[i]);
  std::vector<float> values(sums.size());
  for (std::size_t i = 0; i < sums.size(); i++)
    values[i] = static_cast<float>(static_cast<std::int32_t>(sums[i]) / kIntScale);
  return values;
}

Result<Sum> sum_by(Method method, const Inputs& inputs, std::uint64_t seed) {
  switch (method) {
    case Method::kErar:
      return erar_sum(inputs, false, seed);
    case Method::kErarCompressed:
      return erar_sum(inputs, true, seed);
    case Method::kFloatRing:
      return Sum{float_ring_sum(inputs)};
    case Method::kScaledInt:
      return Sum{scaled_int_sum(inputs)};
  }
  return refusal("no such method");
}

}  // namespace erar::numerics
