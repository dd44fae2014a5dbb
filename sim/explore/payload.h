// SPDX-License-Identifier: BSD-2-Clause
// Payloads whose first word tells who contributed to them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace erar::sim {

// Byte r of a share's word counts how often rank r is in it; the upper half is a tag of operation
// and segment, as many times as there are contributions.
constexpr std::uint64_t share_word(unsigned operation, unsigned segment, unsigned rank) {
  return std::uint64_t{operation * 16 + segment + 1} << 32 | std::uint64_t{1} << (8 * rank);
}

// `count` shares, from that of rank `first` on along a ring of `ranks`.
constexpr std::uint64_t partial_word(unsigned operation, unsigned segment, unsigned first,
                                     unsigned count, unsigned ranks) {
  std::uint64_t word = 0;
  for (unsigned i = 0; i < count; i++) word += share_word(operation, segment, (first + i) % ranks);
  return word;
}

// The other words are odd multiples of the first, which sums of payloads keep.
void write_payload(std::uint8_t* to, std::size_t bytes, std::uint64_t word);
// False when the words are of different payloads.
bool read_payload(const std::uint8_t* from, std::size_t bytes, std::uint64_t& word);
std::uint64_t payload_checksum(std::size_t bytes, std::uint64_t word);

}  // namespace erar::sim
