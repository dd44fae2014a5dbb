// FrameMaker: right frames, and what may be changed about them.
#include "tests/fuzz/frame_maker.h"

#include <cstring>
#include <iterator>

namespace erar::fuzz {
namespace {

constexpr erar_combine kWays[] = {
    {ERAR_ADD_WORDS, 0, 0, 0, 0},
    {ERAR_ADD_LANES32, 0, 0, 0, 0},
    {ERAR_ADD_LANES32, 1, 0, 0, 0},
    {ERAR_ADD_LANES, 0, 7, 0x8080808080808080ULL, 0},
    {ERAR_ADD_LANES, 1, 15, 0x8000800080008000ULL, 0},
    {ERAR_MAX_LANES, 0, 7, 0x8080808080808080ULL, 0},
    {ERAR_MAX_LANES, 1, 15, 0x8000800080008000ULL, ~0ULL},
    {ERAR_MAX_LANES, 0, 31, 0x8000000080000000ULL, 0x8000000080000000ULL},
    {ERAR_MAX_LANES, 0, 63, 0x8000000000000000ULL, ~0x8000000000000000ULL},
};

void put(std::uint8_t* at, std::uint64_t value, unsigned bytes) {
  for (unsigned i = 0; i < bytes; i++)
    at[i] = static_cast<std::uint8_t>(value >> 8 * (bytes - 1 - i));
}

// All three lengths agree, with each other and with the frame.
void set_length(Bytes& frame, std::uint32_t payload_bytes) {
  if (frame.size() < 72) return;
  put(&frame[16], payload_bytes + 58U, 2);
  put(&frame[38], payload_bytes + 38U, 2);
  put(&frame[60], payload_bytes, 2);
  frame.resize(72U + payload_bytes, 0x5a);
}

}  // namespace

void fill(std::uint8_t* to, std::uint32_t bytes, std::uint32_t seed) {
  std::uint64_t word = seed * 0x9e3779b97f4a7c15ULL + 1;
  for (std::uint32_t i = 0; i + 8 <= bytes; i += 8) {
    word = (word ^ word >> 27) * 0x94d049bb133111ebULL;
    std::memcpy(to + i, &word, 8);
  }
}

void seal(Bytes& frame) {
  if (frame.size() < 72) return;
  const Header header = read_header(frame);
  const bool is_empty = header.type == 4 || header.type == 6;
  const bool is_whole = frame.size() >= 72U + header.payload_bytes && header.payload_bytes % 8 == 0;
  const std::uint64_t checksum =
      scattered(right_checksum(header, is_empty || !is_whole ? nullptr : frame.data() + 72));
  std::memcpy(&frame[64], &checksum, 8);
}

erar_start FrameMaker::start() {
  erar_start start{};
  const erar_operation& slot = operation(reader_.below(ERAR_SLOTS));
  start.number = slot.number + ERAR_SLOTS;
  start.segments = 1 + reader_.below(kMostSegments);
  start.first_segment = reader_.below(kArenaSegments - start.segments + 1);
  start.last_bytes = 64 * (1 + reader_.below(config_.segment_bytes / 64));
  const std::uint32_t way = reader_.byte();
  start.combine = kWays[(way >> 1) % std::size(kWays)];
  start.check = way & 1;
  return start;
}

Bytes FrameMaker::made_frame() {
  const std::uint32_t kind = reader_.byte();
  const std::uint32_t number = operation(reader_.below(ERAR_SLOTS)).number;
  Header header;
  header.type = static_cast<std::uint8_t>(2 + kind % 5);
  header.operation = kind >= 128 ? number + ERAR_SLOTS : number;
  header.block = static_cast<std::uint16_t>(reader_.below(config_.ranks));
  place_segment(header, reader_.byte());
  return frame_of(header, reader_.byte());
}

Bytes FrameMaker::sum_frame() {
  const std::uint32_t kind = reader_.byte();
  const erar_operation& slot = operation(reader_.below(ERAR_SLOTS));
  Header header;
  header.operation = slot.number;
  std::uint32_t segment = 0;
  while (slot.open == ERAR_SLOT_OPEN && segment + 1 < slot.segments &&
         memory_.states[slot.first_segment + segment] ==
             (std::uint64_t{slot.number} << 2 | ERAR_FINAL))
    segment++;
  std::uint32_t block = 0;
  while (first_of_block(slot.segments, config_.ranks, block + 1) <= segment &&
         block + 1 < config_.ranks)
    block++;
  header.block = static_cast<std::uint16_t>(block);
  // At the turn rank it is the last partial sum that brings it.
  const bool turns = (config_.rank + config_.ranks - block) % config_.ranks == config_.ranks - 1;
  header.type = turns ? 2 : kind % 2 == 0 ? 3 : 5;
  place_segment(header, segment - first_of_block(slot.segments, config_.ranks, block));
  return frame_of(header, kind);
}

Bytes FrameMaker::raw_frame() {
  Bytes frame(reader_.two() % 4096);
  const std::size_t given = reader_.byte();
  for (std::size_t i = 0; i < frame.size(); i++)
    frame[i] = static_cast<std::uint8_t>(i < given ? reader_.byte() : i - 72 + 3);
  return frame;
}

Bytes FrameMaker::changed(Bytes frame) {
  const std::uint32_t what = reader_.byte();
  for (std::uint32_t i = 0; i < what % 4; i++) {
    const std::uint32_t at = reader_.byte(), value = reader_.byte();
    switch (what >> 2 & 3) {
      case 0:
        if (!frame.empty())
          frame[(at + value / 128 * 256) % frame.size()] ^= static_cast<std::uint8_t>(value | 1);
        break;
      case 1:  // of the header only
        if (frame.size() >= 72) frame[12 + at % 60] = static_cast<std::uint8_t>(value);
        break;
      case 2:
        frame.resize((at << 8 | value) % (frame.size() + 1));
        break;
      default:
        if ((what & 32) != 0) {
          set_length(frame, 64 * (value % 64) + (at < 192 ? 0 : at % 64));
          break;
        }
        frame.resize(frame.size() + at % 64, static_cast<std::uint8_t>(value));
        break;
    }
  }
  if ((what & 16) != 0) seal(frame);
  return frame;
}

Bytes FrameMaker::frame_of(const Header& header, std::uint32_t seed) const {
  Bytes frame(72U + header.payload_bytes);
  std::memcpy(frame.data(), config_.link, sizeof(config_.link));
  put(&frame[16], header.payload_bytes + 58U, 2);
  put(&frame[38], header.payload_bytes + 38U, 2);
  frame[42] = header.type;
  frame[43] = header.hop;
  put(&frame[44], header.block, 2);
  put(&frame[46], kJob, 2);
  put(&frame[48], header.segment, 4);
  put(&frame[52], header.operation, 4);
  put(&frame[56], kToken, 4);
  put(&frame[60], header.payload_bytes, 2);
  put(&frame[62], kMagic, 2);
  fill(frame.data() + 72, header.payload_bytes, seed);
  seal(frame);
  return frame;
}

void FrameMaker::place_segment(Header& header, std::uint32_t offset) const {
  const erar_operation& slot = operation(header.operation);
  const std::uint32_t links = (config_.rank + config_.ranks - header.block) % config_.ranks;
  const bool goes_round = header.type == 3 || header.type == 5 || (header.type == 6 && links == 0);
  header.hop = static_cast<std::uint8_t>(goes_round ? links + config_.ranks : links);
  const std::uint32_t first = first_of_block(slot.segments, config_.ranks, header.block);
  const std::uint32_t end = first_of_block(slot.segments, config_.ranks, header.block + 1U);
  header.segment = end > first ? first + offset % (end - first) : first;
  header.payload_bytes = static_cast<std::uint16_t>(
      header.segment + 1 == slot.segments ? slot.last_bytes : config_.segment_bytes);
}

}  // namespace erar::fuzz
