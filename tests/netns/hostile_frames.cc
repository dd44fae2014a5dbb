// HostileFrames: a plausible frame, and then what is wrong with it.
#include "tests/netns/hostile_frames.h"

#include <algorithm>

#include "core/protocol/lanes.h"
#include "core/protocol/packet.h"
#include "core/protocol/start.h"
#include "core/session/ring_config.h"

namespace erar::test {
namespace {

// Enough for the operations of the checked calls: their groups are 1 MiB.
constexpr std::uint32_t kBlockSegments = 190;

erar_frame& header(HostileFrame& frame) {
  return *reinterpret_cast<erar_frame*>(frame.bytes.data());
}

void set_lengths(HostileFrame& frame, std::uint32_t payload_bytes, std::uint32_t most_bytes) {
  erar_frame& head = header(frame);
  head.payload_bytes = ERAR_BE16(static_cast<__u16>(payload_bytes));
  head.ip_total_length = ERAR_BE16(static_cast<__u16>(payload_bytes + ERAR_IP_OVERHEAD_BYTES));
  head.udp_length = ERAR_BE16(static_cast<__u16>(payload_bytes + ERAR_UDP_OVERHEAD_BYTES));
  frame.size = ERAR_HEADER_BYTES + std::min(payload_bytes, most_bytes);
}

void seal(HostileFrame& frame) {
  erar_frame& head = header(frame);
  erar_packet packet{head.type,
                     head.hop,
                     ERAR_BE16(head.block),
                     ERAR_BE32(head.segment),
                     ERAR_BE32(head.operation),
                     ERAR_BE16(head.payload_bytes),
                     0};
  if (packet.type != ERAR_REQUEST && packet.type != ERAR_ALIVE)
    packet.checksum =
        erar_sum_words(frame.bytes.data() + ERAR_HEADER_BYTES, frame.bytes.data() + frame.size,
                       ERAR_MAX_CHUNKS, ERAR_MAX_CHUNKS);
  head.checksum = erar_wire_checksum(&packet);
}

erar_type type_of(Hostility hostility) {
  switch (hostility) {
    case Hostility::kDamagedGather:
      return ERAR_ALL_GATHER;
    case Hostility::kDamagedRequest:
      return ERAR_REQUEST;
    case Hostility::kDamagedRepair:
      return ERAR_REPAIR;
    case Hostility::kDamagedAlive:
      return ERAR_ALIVE;
    default:
      return ERAR_REDUCE_SCATTER;
  }
}

}  // namespace

HostileFrames::HostileFrames(const RingEndpoint& predecessor, std::uint16_t job,
                             std::uint32_t token, unsigned seed)
    : config_(*make_ring_config(predecessor, 1, job, token)), random_(seed) {}

void HostileFrames::write_plausible(HostileFrame& frame, erar_type type, std::uint32_t operation) {
  const std::uint32_t victim = (config_.rank + 1) % config_.ranks;
  const bool gathers = type == ERAR_ALL_GATHER || type == ERAR_REPAIR;
  const std::uint32_t turn = erar_turn_hop(config_.ranks);
  const std::uint32_t hop = 1 + below(turn) + (gathers ? turn : 0);
  const std::uint32_t block = (victim + 2 * config_.ranks - hop) % config_.ranks;
  erar_frame& head = header(frame);
  erar_write_kick(&head, &config_, operation);
  head.type = static_cast<__u8>(type);
  head.hop = static_cast<__u8>(hop);
  head.block = ERAR_BE16(static_cast<__u16>(block));
  // A whole group's segments, or the one of an opening, which is the last rank's.
  const std::uint32_t segment = below(8) == 0 ? 0 : block * kBlockSegments + below(kBlockSegments);
  head.segment = ERAR_BE32(segment);
  set_lengths(frame, config_.segment_bytes, config_.segment_bytes);
  for (std::size_t at = ERAR_HEADER_BYTES; at + 4 <= frame.size; at += 4)
    *reinterpret_cast<std::uint32_t*>(frame.bytes.data() + at) = word();
}

void HostileFrames::write_right(HostileFrame& frame, std::uint32_t operation) {
  write_plausible(frame, below(2) ? ERAR_REDUCE_SCATTER : ERAR_ALL_GATHER, operation);
  seal(frame);
}

void HostileFrames::write(HostileFrame& frame, Hostility hostility, std::uint32_t operation) {
  write_plausible(frame, type_of(hostility), operation);
  erar_frame& head = header(frame);
  // Where a field alone must stop the frame all the rest is right, checksum included: taken, it
  // would spoil a sum. The others could be meant for a segment that exists.
  std::uint64_t damage = 0;
  switch (hostility) {
    case Hostility::kJob:
      head.job = ERAR_BE16(static_cast<__u16>(config_.job + 1 + below(100)));
      break;
    case Hostility::kToken:
      head.token ^= 1U << below(32);
      break;
    case Hostility::kMagic:
      head.magic ^= ERAR_BE16(static_cast<__u16>(0x10U << below(12)));
      break;
    case Hostility::kVersion:
      head.magic ^= ERAR_BE16(static_cast<__u16>(1 + below(15)));
      break;
    case Hostility::kType:
      head.type = static_cast<__u8>(ERAR_ALIVE + 1 + below(200));
      break;
    case Hostility::kHop:
      head.hop = static_cast<__u8>(head.hop + 1 + below(2));
      break;
    case Hostility::kBlock:
      head.block = ERAR_BE16(static_cast<__u16>(config_.ranks + below(60'000)));
      break;
    case Hostility::kSegment:
      head.segment = below(2) ? word() | 0x80 : ERAR_BE32(kBlockSegments * 6 + below(1U << 20));
      break;
    case Hostility::kOver:
      head.operation = ERAR_BE32(operation - 3 * ERAR_SLOTS - below(1U << 16));
      damage = 1;
      break;
    case Hostility::kFarAhead:
      head.operation = ERAR_BE32(operation + 4 * ERAR_SLOTS + below(1U << 30));
      damage = 1;
      break;
    case Hostility::kEarly:
      head.operation = ERAR_BE32(operation + below(2 * ERAR_SLOTS));
      damage = 1 + word();
      break;
    case Hostility::kPayloadLength:
      set_lengths(frame, below(2) ? below(1U << 16) | 1 : ERAR_CHUNK_BYTES * below(22),
                  config_.segment_bytes);
      damage = 1;
      break;
    case Hostility::kOuterLength:
      (below(2) ? head.ip_total_length : head.udp_length) ^=
          ERAR_BE16(static_cast<__u16>(1 + below(2000)));
      break;
    case Hostility::kTruncated:
      frame.size =
          ERAR_UDP_HEADER_END + below(static_cast<std::uint32_t>(frame.size) - ERAR_UDP_HEADER_END);
      break;
    case Hostility::kKick:
      head.type = ERAR_KICK;
      break;
    case Hostility::kJunk:
      for (std::size_t at = ERAR_UDP_HEADER_END; at < frame.size; at++)
        frame.bytes[at] = static_cast<std::uint8_t>(word());
      return;
    default:
      damage = 1 + word();
  }
  if (hostility != Hostility::kTruncated) seal(frame);
  head.checksum += damage;
}

}  // namespace erar::test
