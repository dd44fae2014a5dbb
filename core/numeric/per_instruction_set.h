// Compiles one plain loop for every instruction set and calls the one that is active.
//
// A loop is a class of the unit that uses it, in an anonymous namespace, with an always-inlined
// static member `run`; the compiler turns it into vectors. `#pragma GCC ivdep` before the loop says
// that element i reads and writes element i only, so that working in place is safe. Elements are
// loaded and stored as bytes, since in place the same memory is an array of two types.
//
// Not target_clones: those need ifunc, whose resolvers run before the sanitizers that our tests are
// built with have started. Units with floating point in their loops are compiled with
// -ffp-contract=off: AVX-512 has fused multiply-add, SSE2 has not, and the bits must be the same.
#pragma once

#include "core/numeric/instruction_set.h"

#include <cstddef>
#include <cstring>

namespace erar::numeric {

template <class T>
[[gnu::always_inline]] inline T load_at(const void* array, std::size_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(array) + index * sizeof(T), sizeof value);
  return value;
}

template <class T>
[[gnu::always_inline]] inline void store_at(void* array, std::size_t index, T value) {
  std::memcpy(static_cast<char*>(array) + index * sizeof(T), &value, sizeof value);
}

template <class Loop, class... Arguments>
[[gnu::noinline]] auto run_sse2(Arguments... arguments) {
  return Loop::run(arguments...);
}

template <class Loop, class... Arguments>
[[gnu::noinline, gnu::target("avx2")]] auto run_avx2(Arguments... arguments) {
  return Loop::run(arguments...);
}

template <class Loop, class... Arguments>
[[gnu::noinline, gnu::target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")]] auto
run_avx512(Arguments... arguments) {
  return Loop::run(arguments...);
}

// Not inlined, so a FloatMode around this call holds for the whole loop.
template <class Loop, class... Arguments>
auto run_widest(Arguments... arguments) {
  switch (active_instruction_set()) {
    case InstructionSet::kAvx512:
      return run_avx512<Loop>(arguments...);
    case InstructionSet::kAvx2:
      return run_avx2<Loop>(arguments...);
    case InstructionSet::kSse2:
      break;
  }
  return run_sse2<Loop>(arguments...);
}

}  // namespace erar::numeric
