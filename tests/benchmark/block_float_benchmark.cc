// Rates of the block-float functions per instruction set beside memcpy, in bytes of values per
// second.
//
// A name is function/instruction set/bytes; InPlace works where it reads, and is named so. Sizes
// are those of a window (L1, L2), of a group in flight (L2, L3) and of a whole gradient (memory).
#include "core/numeric/block_float.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace erar::numeric {
namespace {

constexpr unsigned kRanks = 4;

// Lanes live in mapped memory, so buffers here start at a page too. Malloc's 16 bytes past a page
// would make every 64-byte vector cross a cache line.
template <class T>
struct PageAllocator {
  using value_type = T;
  static constexpr std::align_val_t kPage{4096};
  PageAllocator() = default;
  template <class U>
  explicit PageAllocator(const PageAllocator<U>& /*other*/) {}
  T* allocate(std::size_t count) {
    return static_cast<T*>(::operator new(count * sizeof(T), kPage));
  }
  void deallocate(T* pointer, std::size_t /*count*/) { ::operator delete(pointer, kPage); }
  bool operator==(const PageAllocator&) const = default;
};

// Buffers of one run, filled with lanes and values that belong together.
struct Buffers {
  explicit Buffers(std::size_t bytes) : values(bytes / sizeof(float)), lanes(values.size()) {
    std::mt19937 random(1);
    std::normal_distribution<float> gradient(0.0F, 1e-3F);
    for (float& value : values) value = gradient(random);
    maxima.resize(exponent_count(values.size()));
    block_maxima(values, maxima);
    for (MagnitudeSum sum : maxima) {
      for (std::uint64_t& word : sum.words) word *= kRanks;
      scales.push_back(scale_of(sum, kRanks));
    }
    quantise(values, scales, kRanks, lanes.data());
  }

  std::vector<float, PageAllocator<float>> values;
  std::vector<std::uint32_t, PageAllocator<std::uint32_t>> lanes;
  std::vector<MagnitudeSum> maxima;
  std::vector<BlockScale> scales;
};

void finish(benchmark::State& state) {
  benchmark::ClobberMemory();
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

void run_memcpy(benchmark::State& state) {
  Buffers buffers(static_cast<std::size_t>(state.range(0)));
  for ([[maybe_unused]] auto _ : state) {
    std::memcpy(buffers.lanes.data(), buffers.values.data(), buffers.values.size() * sizeof(float));
    benchmark::ClobberMemory();
  }
  finish(state);
}

void run_maxima(benchmark::State& state) {
  Buffers buffers(static_cast<std::size_t>(state.range(0)));
  for ([[maybe_unused]] auto _ : state) {
    block_maxima(buffers.values, buffers.maxima);
    benchmark::ClobberMemory();
  }
  finish(state);
}

void run_quantise(benchmark::State& state) {
  Buffers buffers(static_cast<std::size_t>(state.range(0)));
  for ([[maybe_unused]] auto _ : state) {
    quantise(buffers.values, buffers.scales, kRanks, buffers.lanes.data());
    benchmark::ClobberMemory();
  }
  finish(state);
}

void run_dequantise(benchmark::State& state) {
  Buffers buffers(static_cast<std::size_t>(state.range(0)));
  for ([[maybe_unused]] auto _ : state) {
    dequantise(buffers.lanes.data(), buffers.scales, kRanks, buffers.values);
    benchmark::ClobberMemory();
  }
  finish(state);
}

// One after the other, since each undoes the other: quantised lanes are not values to quantise
// again.
void run_round_trip_in_place(benchmark::State& state) {
  Buffers buffers(static_cast<std::size_t>(state.range(0)));
  auto* lanes = reinterpret_cast<std::uint32_t*>(buffers.values.data());
  for ([[maybe_unused]] auto _ : state) {
    quantise(buffers.values, buffers.scales, 1, lanes);
    benchmark::ClobberMemory();
    dequantise(lanes, buffers.scales, 1, buffers.values);
    benchmark::ClobberMemory();
  }
  finish(state);
  state.SetBytesProcessed(2 * state.iterations() * state.range(0));
}

// As a pipelined operation does it: lanes of one group, still in the cache, to their part of a
// large buffer.
template <Destination kDestination>
void run_dequantise_groups(benchmark::State& state) {
  constexpr std::size_t kGroup = (1U << 20) / sizeof(float);
  Buffers buffers(static_cast<std::size_t>(state.range(0)));
  const std::span<const BlockScale> scales(buffers.scales);
  const std::size_t group = std::min(kGroup, buffers.values.size());
  for ([[maybe_unused]] auto _ : state) {
    for (std::size_t first = 0; first < buffers.values.size(); first += group) {
      dequantise(buffers.lanes.data(), scales.first(exponent_count(group)), kRanks,
                 std::span(buffers.values).subspan(first, group), kDestination);
    }
    benchmark::ClobberMemory();
  }
  finish(state);
}

void register_function(const char* function, const std::string& set,
                       void (*run)(benchmark::State&)) {
  const auto forced = [=](benchmark::State& state) {
    if (!set.empty() && !force_instruction_set(set.c_str())) {
      state.SkipWithError(("the CPU lacks " + set).c_str());
      return;
    }
    run(state);
  };
  const std::string name = std::string(function) + (set.empty() ? "" : "/" + set);
  auto* registered = benchmark::RegisterBenchmark(name.c_str(), forced);
  for (const std::int64_t bytes : {64LL << 10, 1LL << 20, 64LL << 20}) registered->Arg(bytes);
  registered->MinTime(0.2);
}

}  // namespace
}  // namespace erar::numeric

int main(int argc, char** argv) {
  using namespace erar::numeric;
  register_function("memcpy", "", run_memcpy);
  for (const char* set : {"avx512", "avx2", "sse2"}) {
    register_function("block_maxima", set, run_maxima);
    register_function("quantise", set, run_quantise);
    register_function("dequantise", set, run_dequantise);
    register_function("groups_to_cache", set, run_dequantise_groups<Destination::kCache>);
    register_function("groups_to_memory", set, run_dequantise_groups<Destination::kMemory>);
    register_function("round_trip_in_place", set, run_round_trip_in_place);
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
