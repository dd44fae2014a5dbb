// Elements of all types for the oracle's tests: filled, read exactly, rounded, and their
// neighbours.
#pragma once

#include "experiments/bench/oracle.h"
#include "tests/unit/element_types.h"
#include "workloads/generator/values.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

namespace erar::bench {

template <class T>
std::vector<T> elements_of(const Operation& operation, unsigned rank, std::size_t count) {
  std::vector<T> elements(count);
  workloads::fill(stream_of(operation, rank), operation.reduction.type, 0,
                  std::as_writable_bytes(std::span<T>(elements)));
  return elements;
}

template <class T>
std::uint64_t wrong_in(const Operation& operation, const std::vector<T>& result) {
  return count_wrong(operation, std::as_bytes(std::span<const T>(result)));
}

template <class T>
long double as_exact(T value) {
  if constexpr (sizeof(T) == 2) {
    return static_cast<long double>(static_cast<float>(value));
  } else {
    return static_cast<long double>(value);
  }
}

// By way of float for 16 bits, as both backends do.
template <class T>
T rounded_to(long double value) {
  if constexpr (sizeof(T) == 2) {
    return T(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

template <class T>
T next_up(T value) {
  if constexpr (sizeof(T) == 2) {
    if (as_exact(value) == 0) {
      value.bits = 1;
    } else {
      value.bits = static_cast<std::uint16_t>(value.bits + (as_exact(value) > 0 ? 1 : -1));
    }
    return value;
  } else {
    return std::nextafter(value, std::numeric_limits<T>::infinity());
  }
}

template <class T>
T negated(T value) {
  if constexpr (sizeof(T) == 2) {
    value.bits ^= 0x8000U;
    return value;
  } else {
    return -value;
  }
}

template <class T>
T next_down(T value) {
  return negated(next_up(negated(value)));
}

}  // namespace erar::bench
