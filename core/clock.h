// The one clock that all times in the project are read from.
#pragma once

#include <cstdint>
#include <ctime>

namespace erar {

inline std::uint64_t clock_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(now.tv_nsec);
}

// CLOCK_MONOTONIC is the same for all processes and namespaces of a host, so times that ranks of
// one host took may be compared.
inline std::uint64_t monotonic_ns() { return clock_ns(CLOCK_MONOTONIC); }

}  // namespace erar
