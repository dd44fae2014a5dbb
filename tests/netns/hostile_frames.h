// Frames that a stranger in the network may send to a rank, each wrong in one way or in all.
#pragma once

#include <array>
#include <cstdint>
#include <random>

#include "core/endpoint.h"
#include "core/protocol/operation.h"

namespace erar::test {

enum class Hostility {
  kJob,
  kToken,
  kMagic,
  kVersion,
  kType,
  kHop,
  kBlock,
  kSegment,        // of another block, or of none
  kOver,           // of an operation that is over
  kFarAhead,       // of one that nobody can have begun
  kEarly,          // of one that is to come: a damaged frame that is laid down
  kPayloadLength,  // no whole chunks, none, too many, or other than the segment's
  kOuterLength,    // of the IP or UDP header
  kTruncated,
  kKick,           // only the rank's own process may
  kDamagedReduce,  // right in all but the payload or the checksum
  kDamagedGather,
  kDamagedRequest,
  kDamagedRepair,
  kDamagedAlive,
  kJunk,  // random bytes to the port
  kMany
};

struct HostileFrame {
  alignas(8) std::array<std::uint8_t, ERAR_MAX_FRAME_BYTES> bytes;
  std::size_t size = 0;
};

// Frames to one rank as its predecessor would send them.
class HostileFrames {
 public:
  // `predecessor`: whose successor is the victim.
  HostileFrames(const RingEndpoint& predecessor, std::uint16_t job, std::uint32_t token,
                unsigned seed);

  // `operation`: about where the ranks are.
  void write(HostileFrame& frame, Hostility hostility, std::uint32_t operation);
  // A frame that is right in every way, but for its payload, which is nobody's.
  void write_right(HostileFrame& frame, std::uint32_t operation);

 private:
  void write_plausible(HostileFrame& frame, erar_type type, std::uint32_t operation);
  [[nodiscard]] std::uint32_t word() { return static_cast<std::uint32_t>(random_()); }
  [[nodiscard]] std::uint32_t below(std::uint32_t end) { return word() % end; }

  erar_config config_;  // the predecessor's
  std::mt19937 random_;
};

}  // namespace erar::test
