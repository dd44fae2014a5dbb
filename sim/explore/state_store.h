// SPDX-License-Identifier: BSD-2-Clause
// StateStore: states as bytes, each once, numbered in the order in which they were found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace erar::sim {

// Compares whole states: two that share a hash are still two.
class StateStore {
 public:
  StateStore();
  // Number of the state, and whether it is new. At most 2^32 - 1 states of at most 64 KiB.
  std::pair<std::uint32_t, bool> insert(std::string_view bytes);
  [[nodiscard]] std::string_view at(std::uint32_t index) const;
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(places_.size()); }

 private:
  void grow();

  std::vector<std::vector<char>> chunks_;
  std::vector<std::uint64_t> places_;  // chunk << 40 | offset << 16 | bytes
  std::vector<std::uint32_t> table_;   // state number + 1 by hash; 0: empty
};

}  // namespace erar::sim
