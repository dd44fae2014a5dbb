// A history as bytes: what the fuzzer chooses, read one number at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/protocol/ring.h"

namespace erar::fuzz {

using Bytes = std::vector<std::uint8_t>;

// Zeros follow the end.
class Reader {
 public:
  Reader(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}

  [[nodiscard]] bool at_end() const { return at_ == end_; }
  std::uint32_t byte() { return at_ == end_ ? 0 : *at_++; }
  std::uint32_t two() {
    const std::uint32_t low = byte();
    return low | byte() << 8;
  }
  std::uint32_t below(std::uint32_t limit) { return byte() % limit; }

 private:
  const std::uint8_t* at_;
  const std::uint8_t* end_;
};

// The first byte of a command, modulo kCommands; what follows it is in step_fuzzer.cc and
// frame_maker.cc, where it is read, and in seeds.cc, where it is written.
enum Command : std::uint8_t {
  kOpen,
  kClose,
  kKick,
  kResend,
  kAlive,
  kMadeFrame,   // right but for the changes that follow
  kSumFrame,    // an all-gather or repair frame of a segment that is missing
  kRawFrame,    // bytes as given
  kAgainFrame,  // one that was there before, changed or not
  kCommands
};

inline constexpr std::uint32_t kRanks[] = {2, 3, 4, 5, 8, 64};
// Small ones more often: a history takes as long as its frames are.
inline constexpr std::uint32_t kMtus[] = {122, 250, 1500, 3498, 122, 250, 576, 122,
                                          122, 250, 122,  250,  122, 186, 122, 186};
// 0: what suits the ranks. With the largest, early frames share places.
inline constexpr std::uint32_t kWindows[] = {0, 0, 2, ERAR_LARGEST_WINDOW};
inline constexpr std::uint32_t kArenaSegments = 40;
inline constexpr std::uint32_t kMostSegments = 24;
// As docs/protocol.md has it, not wire.h: a format that changes must not keep its version.
inline constexpr std::uint16_t kMagic = 0xE7A4;
inline constexpr std::uint16_t kJob = 1;
inline constexpr std::uint32_t kToken = 0x5eed;

}  // namespace erar::fuzz
