// SPDX-License-Identifier: BSD-2-Clause
// StateStore: chunks of bytes and an open-addressed table of numbers.
#include "sim/explore/state_store.h"

#include <algorithm>
#include <cstring>

#include "core/mix64.h"

namespace erar::sim {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{1} << 22;

std::uint64_t hash_of(std::string_view bytes) {
  std::uint64_t hash = bytes.size();
  for (std::size_t at = 0; at < bytes.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min<std::size_t>(8, bytes.size() - at));
    hash = mix64(hash ^ word);
  }
  return hash;
}

}  // namespace

StateStore::StateStore() : table_(1U << 16) {}

std::string_view StateStore::at(std::uint32_t index) const {
  const std::uint64_t place = places_[index];
  return {chunks_[place >> 40].data() + (place >> 16 & 0xffffff), place & 0xffff};
}

void StateStore::grow() {
  table_.assign(table_.size() * 2, 0);
  for (std::uint32_t index = 0; index < size(); index++) {
    std::size_t at = hash_of(this->at(index)) & (table_.size() - 1);
    while (table_[at] != 0) at = (at + 1) & (table_.size() - 1);
    table_[at] = index + 1;
  }
}

std::pair<std::uint32_t, bool> StateStore::insert(std::string_view bytes) {
  std::size_t slot = hash_of(bytes) & (table_.size() - 1);
  for (; table_[slot] != 0; slot = (slot + 1) & (table_.size() - 1))
    if (at(table_[slot] - 1) == bytes) return {table_[slot] - 1, false};
  if (chunks_.empty() || chunks_.back().size() + bytes.size() > kChunkBytes) {
    chunks_.emplace_back();
    chunks_.back().reserve(kChunkBytes);
  }
  auto& chunk = chunks_.back();
  places_.push_back(std::uint64_t{chunks_.size() - 1} << 40 | std::uint64_t{chunk.size()} << 16 |
                    bytes.size());
  chunk.insert(chunk.end(), bytes.begin(), bytes.end());
  table_[slot] = size();
  if (std::size_t{size()} * 5 > table_.size() * 3) grow();
  return {size() - 1, true};
}

}  // namespace erar::sim
