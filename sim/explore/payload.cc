// SPDX-License-Identifier: BSD-2-Clause
// Payloads: multiples of their first word.
#include "sim/explore/payload.h"

#include <cstring>

namespace erar::sim {
namespace {

constexpr std::uint64_t multiple(std::uint64_t word, std::size_t index) {
  return word * (2 * index + 1);
}

}  // namespace

void write_payload(std::uint8_t* to, std::size_t bytes, std::uint64_t word) {
  for (std::size_t i = 0; i < bytes / 8; i++) {
    const std::uint64_t value = multiple(word, i);
    std::memcpy(to + 8 * i, &value, 8);
  }
}

bool read_payload(const std::uint8_t* from, std::size_t bytes, std::uint64_t& word) {
  std::memcpy(&word, from, 8);
  for (std::size_t i = 0; i < bytes / 8; i++) {
    std::uint64_t value = 0;
    std::memcpy(&value, from + 8 * i, 8);
    if (value != multiple(word, i)) return false;
  }
  return true;
}

std::uint64_t payload_checksum(std::size_t bytes, std::uint64_t word) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < bytes / 8; i++) sum += multiple(word, i);
  return sum;
}

}  // namespace erar::sim
