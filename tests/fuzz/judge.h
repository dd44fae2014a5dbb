// The judge: what must become of a frame, said a second time and differently from the step.
//
// Written from docs/protocol.md over plain bytes, for one thread, without the step's headers but
// for the names of counters and the layout of what is shared. It reads a rank's memory before the
// step and says which counters go up, what is stored, parked and sent.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "tests/fuzz/guarded_rank.h"
#include "tests/fuzz/history.h"

namespace erar::fuzz {

// The headers of a frame that is long enough, in host order.
struct Header {
  std::uint8_t type = 0;
  std::uint8_t hop = 0;
  std::uint16_t block = 0;
  std::uint16_t job = 0;
  std::uint32_t segment = 0;
  std::uint32_t operation = 0;
  std::uint32_t token = 0;
  std::uint16_t payload_bytes = 0;
  std::uint16_t magic = 0;
  std::uint64_t checksum = 0;  // the sum that the field stands for, see right_checksum()
};
Header read_header(const Bytes& frame);
// What is written into a frame for a sum: one to one, so that sums may be compared instead.
std::uint64_t scattered(std::uint64_t sum);
// The sum of a frame of these headers (its own `checksum` left out) and payload.
std::uint64_t right_checksum(const Header& header, const std::uint8_t* payload);
// First segment of a block.
std::uint32_t first_of_block(std::uint32_t segments, std::uint32_t ranks, std::uint32_t block);
// A frame's payload after a rank's share was combined into it.
Bytes combined(const erar_combine& way, const std::uint8_t* payload, const std::uint8_t* share,
               std::uint32_t bytes);

using ParkedHeaders = std::array<Header, GuardedRank::kPlaces>;

// What must happen.
struct Expectation {
  erar_counter outcome = ERAR_COUNT_FOREIGN;  // none of a resend
  Verdict verdict = Verdict::kDrop;
  GuardedRank::Counters counts{};          // by how much each counter goes up
  std::optional<std::uint32_t> stored_at;  // segment of the arena that gets `stored`
  Bytes stored;
  std::optional<std::uint32_t> share_at;  // segment of the arena that may be read or written
  std::optional<std::uint32_t> next_at;   // segment of the arena that leaves, recycled
  std::optional<std::uint32_t> place;     // parking place that may be read or written
  std::optional<std::uint32_t> parked_bytes;
  // What leaves; its checksum says whether it must be right: of a frame made here, or that came so.
  Header sent;
  bool sent_is_sealed = false;
  Bytes payload;
};

// The memory's segments and places are unpoisoned by the judge as it looks at them.
Expectation judge_frame(GuardedRank& rank, const Bytes& frame);
// parked: of each place, the headers of the frame that was parked there last.
Expectation judge_kick(GuardedRank& rank, std::uint32_t operation, const ParkedHeaders& parked);
Expectation judge_resend(GuardedRank& rank, std::uint32_t operation, std::uint32_t block,
                         std::uint32_t segment);

// Empty when the frame that left is well-formed and what the judge expected; else what is wrong.
const char* wrong_about_sent(const GuardedRank& rank, const Expectation& expected,
                             const Bytes& frame);

}  // namespace erar::fuzz
