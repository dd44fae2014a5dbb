// Asks the CPU once what it has, and remembers what a test forces.
#include "core/numeric/instruction_set.h"

#include <cpuid.h>

#include <array>
#include <cstring>

namespace erar::numeric {
namespace {

constexpr std::array kBestFirst = {InstructionSet::kAvx512, InstructionSet::kAvx2,
                                   InstructionSet::kSse2};

constexpr const char* name_of(InstructionSet set) {
  switch (set) {
    case InstructionSet::kAvx512:
      return "avx512";
    case InstructionSet::kAvx2:
      return "avx2";
    case InstructionSet::kSse2:
      break;
  }
  return "sse2";
}

// clang 14 does not know "f16c" to ask for. That the OS saves the registers, AVX2's answer says.
bool cpu_has_f16c() {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

bool cpu_has(InstructionSet set) {
  const bool avx2 = __builtin_cpu_supports("avx2") != 0 && cpu_has_f16c();
  switch (set) {
    case InstructionSet::kAvx512:
      return avx2 && __builtin_cpu_supports("avx512f") != 0 &&
             __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
             __builtin_cpu_supports("avx512vl") != 0;
    case InstructionSet::kAvx2:
      return avx2;
    case InstructionSet::kSse2:
      break;
  }
  return true;
}

InstructionSet best() {
  for (const InstructionSet set : kBestFirst) {
    if (cpu_has(set)) return set;
  }
  return InstructionSet::kSse2;
}

InstructionSet& active() {
  static InstructionSet set = best();
  return set;
}

}  // namespace

InstructionSet active_instruction_set() { return active(); }

const char* instruction_set() { return name_of(active()); }

bool force_instruction_set(const char* name) {
  for (const InstructionSet set : kBestFirst) {
    if (std::strcmp(name, name_of(set)) != 0 || !cpu_has(set)) continue;
    active() = set;
    return true;
  }
  return false;
}

}  // namespace erar::numeric
