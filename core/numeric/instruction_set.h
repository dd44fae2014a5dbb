// Which instruction set the numeric passes use: the CPU's best, or the one a test asks for.
#pragma once

#include <cstdint>

namespace erar::numeric {

// Each includes what the ones before it have. kAvx2 stands for AVX2 and F16C, kAvx512 for AVX-512
// F, BW, DQ and VL, as all server CPUs with AVX-512 have them.
enum class InstructionSet : std::uint8_t { kSse2, kAvx2, kAvx512 };

InstructionSet active_instruction_set();

// The same by name: "avx512", "avx2" or "sse2".
const char* instruction_set();
// For tests and benchmarks: false when the CPU lacks it. Not thread-safe.
bool force_instruction_set(const char* name);

}  // namespace erar::numeric
