// Sum kernels: one plain loop, compiled for AVX-512, AVX2 and the baseline, chosen at run time.
//
// Chosen by hand and not by target_clones: those need ifunc, whose resolvers run before the
// sanitizers that our tests are built with have started.
#include "emu/baseline/sum_kernel.h"

#include <cstdint>

namespace erar {
namespace {

// int32 is summed as uint32: the same bits, and wrapping is defined. `ivdep` instead of __restrict,
// as sum may be one of the operands: iteration i touches element i only, so vectors are safe either
// way.
template <class T>
[[gnu::always_inline]] inline void sum_loop(void* sum, const void* own, const void* arrived,
                                            std::size_t count) {
  auto* out = static_cast<T*>(sum);
  const auto* a = static_cast<const T*>(own);
  const auto* b = static_cast<const T*>(arrived);
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) out[i] = a[i] + b[i];
}

template <class T>
void sum_baseline(void* sum, const void* own, const void* arrived, std::size_t count) {
  sum_loop<T>(sum, own, arrived, count);
}

#if defined(__x86_64__)
template <class T>
[[gnu::target("avx2")]] void sum_avx2(void* sum, const void* own, const void* arrived,
                                      std::size_t count) {
  sum_loop<T>(sum, own, arrived, count);
}

template <class T>
[[gnu::target("avx512f,prefer-vector-width=512")]] void sum_avx512(void* sum, const void* own,
                                                                   const void* arrived,
                                                                   std::size_t count) {
  sum_loop<T>(sum, own, arrived, count);
}

template <class T>
SumKernel widest() {
  if (__builtin_cpu_supports("avx512f")) return sum_avx512<T>;
  if (__builtin_cpu_supports("avx2")) return sum_avx2<T>;
  return sum_baseline<T>;
}
#else
template <class T>
SumKernel widest() {
  return sum_baseline<T>;
}
#endif

}  // namespace

SumKernel sum_kernel(DataType type) {
  return type == DataType::kInt32 ? widest<std::uint32_t>() : widest<float>();
}

}  // namespace erar
