// Rates of the passes around the lanes per instruction set beside memcpy.
//
// A name is pass/instruction set/bytes, the bytes being those of the wider of input and output. A
// rate is that of half of all bytes read and written, so memcpy's is its usual one, and a pass as
// bound by memory as memcpy has the same.
#include "core/numeric/block_double.h"
#include "core/numeric/compact_lanes.h"
#include "core/numeric/float_elements.h"
#include "core/numeric/half.h"
#include "core/numeric/integer_average.h"
#include "core/numeric/ordered_lanes.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <vector>

namespace erar::numeric {
namespace {

constexpr unsigned kRanks = 4;

// Lanes live in mapped memory, so buffers here start at a page too.
struct PageDelete {
  void operator()(std::byte* bytes) const { ::operator delete (bytes, std::align_val_t{4096}); }
};
using Page = std::unique_ptr<std::byte, PageDelete>;

Page allocate(std::size_t bytes) {
  Page page(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{4096})));
  // Numbers of like magnitude in each float type, none of them special.
  for (std::size_t i = 0; i < bytes; ++i) {
    page.get()[i] = static_cast<std::byte>(i % 2 == 1 ? 0x3c : i * 37);
  }
  return page;
}

struct Job {
  const void* in;
  void* out;
  std::size_t count;
  std::span<const Exponent> exponents;

  template <class T>
  std::span<const T> values() const {
    return {static_cast<const T*>(in), count};
  }
  template <class T>
  std::span<T> results() const {
    return {static_cast<T*>(out), count};
  }
};

struct Pass {
  std::string name;
  std::size_t bytes_in;  // per element
  std::size_t bytes_out;
  std::function<void(const Job&)> run;
};

template <class T>
T* as(void* memory) {
  return static_cast<T*>(memory);
}

template <class T>
const T* as(const void* memory) {
  return static_cast<const T*>(memory);
}

std::vector<Pass> block_passes() {
  return {
      {"double_exponents", 8, 0,
       [](const Job& job) {
         std::vector<Exponent> exponents(job.exponents.size());
         block_exponents(job.values<double>(), exponents);
       }},
      {"double_quantise", 8, 8,
       [](const Job& job) {
         quantise(job.values<double>(), job.exponents, kRanks, as<std::uint64_t>(job.out));
       }},
      {"double_dequantise", 8, 8,
       [](const Job& job) {
         dequantise(as<std::uint64_t>(job.in), job.exponents, kRanks, job.results<double>());
       }},
      {"compact_quantise", 4, 2,
       [](const Job& job) {
         const std::vector<Exponent> exponents(exponent_count(job.count), 128);
         quantise_compact(job.values<float>(), exponents, kRanks, as<std::uint16_t>(job.out));
       }},
      {"compact_dequantise", 2, 4,
       [](const Job& job) {
         const std::vector<Exponent> exponents(exponent_count(job.count), 128);
         dequantise_compact(as<std::uint16_t>(job.in), exponents, kRanks, kRanks,
                            job.results<float>());
       }},
  };
}

std::vector<Pass> half_passes() {
  std::vector<Pass> passes;
  for (const HalfKind kind : {HalfKind::kFloat16, HalfKind::kBfloat16}) {
    const std::string name = kind == HalfKind::kFloat16 ? "float16" : "bfloat16";
    passes.push_back({name + "_to_float", 2, 4, [=](const Job& job) {
                        half_to_float(kind, as<std::uint16_t>(job.in), job.count,
                                      as<float>(job.out));
                      }});
    passes.push_back({"float_to_" + name, 4, 2, [=](const Job& job) {
                        float_to_half(kind, as<float>(job.in), job.count,
                                      as<std::uint16_t>(job.out));
                      }});
  }
  return passes;
}

std::vector<Pass> float_passes() {
  std::vector<Pass> passes;
  for (const DataType type : {DataType::kFloat16, DataType::kFloat32, DataType::kFloat64}) {
    const std::string name(name_of(type));
    const std::size_t bytes = size_of(type);
    passes.push_back({name + "_to_ordered", bytes, bytes, [=](const Job& job) {
                        to_ordered(type, Extreme::kMin, false, job.in, job.count, job.out);
                      }});
    passes.push_back({name + "_from_ordered", bytes, bytes, [=](const Job& job) {
                        from_ordered(type, Extreme::kMin, job.in, job.count, job.out);
                      }});
    passes.push_back({name + "_first_not_finite", bytes, 0, [=](const Job& job) {
                        benchmark::DoNotOptimize(first_not_finite(type, job.in, job.count));
                      }});
    passes.push_back({name + "_mark_not_finite", bytes, 1, [=](const Job& job) {
                        mark_not_finite(type, job.in, job.count, as<std::uint8_t>(job.out));
                      }});
    // Reads its values as well.
    passes.push_back({name + "_set_nan", bytes + 1, bytes, [=](const Job& job) {
                        set_nan(type, as<std::uint8_t>(job.in), job.count, job.out);
                      }});
  }
  const auto add = [&]<class T>(const std::string& name, T by) {
    passes.push_back({name + "_scale", sizeof by, sizeof by,
                      [=](const Job& job) { scale(job.values<T>(), by, as<T>(job.out)); }});
    passes.push_back({name + "_divide_in_place", sizeof by, sizeof by,
                      [=](const Job& job) { divide(job.results<T>(), by); }});
    passes.push_back({name + "_zero_not_finite", sizeof by, sizeof by,
                      [=](const Job& job) { zero_not_finite(job.values<T>(), as<T>(job.out)); }});
  };
  add("float32", 1.5F);
  add("float64", 1.5);
  return passes;
}

std::vector<Pass> integer_passes() {
  std::vector<Pass> passes;
  for (const DataType type : {DataType::kInt8, DataType::kInt32, DataType::kInt64}) {
    const std::string name(name_of(type));
    const std::size_t bytes = size_of(type);
    const std::size_t lane_bytes = average_lane_bytes(type);
    passes.push_back({name + "_to_average_lanes", bytes, lane_bytes, [=](const Job& job) {
                        to_average_lanes(type, kRanks, job.in, job.count, job.out);
                      }});
    passes.push_back({name + "_from_average_lanes", lane_bytes, bytes, [=](const Job& job) {
                        from_average_lanes(type, kRanks, job.in, job.count, job.out);
                      }});
    passes.push_back({name + "_scale", bytes, bytes, [=](const Job& job) {
                        scale_integers(type, job.in, job.count, 12345, job.out);
                      }});
  }
  return passes;
}

void run_pass(benchmark::State& state, const Pass& pass, const std::string& set) {
  if (!set.empty() && !force_instruction_set(set.c_str())) {
    state.SkipWithError(("the CPU lacks " + set).c_str());
    return;
  }
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const Page in = allocate(bytes);
  const Page out = allocate(bytes);
  const std::size_t count = bytes / std::max(pass.bytes_in, pass.bytes_out);
  // Those of a double of exponent byte 0x3c are below 0x400.
  const std::vector<Exponent> exponents(exponent_count(count), 0x400);
  const Job job{in.get(), out.get(), count, exponents};
  for ([[maybe_unused]] auto _ : state) {
    pass.run(job);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() *
                          static_cast<std::int64_t>(count * (pass.bytes_in + pass.bytes_out) / 2));
}

void register_pass(const Pass& pass, const std::string& set) {
  const std::string name = pass.name + (set.empty() ? "" : "/" + set);
  auto* registered = benchmark::RegisterBenchmark(
      name.c_str(), [=](benchmark::State& state) { run_pass(state, pass, set); });
  for (const std::int64_t bytes : {1LL << 20, 64LL << 20}) registered->Arg(bytes);
  registered->MinTime(0.1);
}

}  // namespace
}  // namespace erar::numeric

int main(int argc, char** argv) {
  using namespace erar::numeric;
  register_pass({"memcpy", 1, 1, [](const Job& job) { std::memcpy(job.out, job.in, job.count); }},
                "");
  for (const auto& passes : {block_passes(), half_passes(), float_passes(), integer_passes()}) {
    for (const Pass& pass : passes) {
      for (const char* set : {"avx512", "avx2", "sse2"}) register_pass(pass, set);
    }
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
