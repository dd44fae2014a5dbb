// RingPlan: which bytes one allreduce sends, reduces and receives, in stream order. No sockets
// here.
//
// Both streams of a rank are laid out once per operation; the transfer then only moves cursors
// along them. What a rank sends is a first part of its own followed by what it received, so byte i
// of the rest may leave as soon as byte i has been received (and reduced): cut-through without
// pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/data_type.h"

namespace erar {

// Goes ahead of each operation's data, in the same packet, so that ranks that call with differing
// arguments learn it before they use each other's bytes, at no extra round trip.
struct OperationHeader {
  std::uint32_t magic = 0x6f704152;  // "opAR"
  std::uint32_t sequence = 0;
  std::uint64_t count = 0;
  double pre_scale = 1;
  std::uint16_t type = 0;
  std::uint16_t op = 0;
  std::uint16_t not_finite = 0;
  std::uint16_t compressed = 0;

  OperationHeader() = default;
  OperationHeader(std::uint32_t number, std::size_t elements, const Reduction& reduction)
      : sequence(number),
        count(elements),
        pre_scale(reduction.pre_scale),
        type(static_cast<std::uint16_t>(reduction.type)),
        op(static_cast<std::uint16_t>(reduction.op)),
        not_finite(static_cast<std::uint16_t>(reduction.not_finite)),
        compressed(reduction.compressed ? 1 : 0) {}

  bool operator==(const OperationHeader&) const = default;
};
static_assert(sizeof(OperationHeader) == 32);

// Arriving bytes are combined with own and stored in result (own == result when in place).
struct ReduceSegment {
  const std::byte* own = nullptr;
  std::byte* result = nullptr;
  std::size_t bytes = 0;
  bool last = false;  // of all ranks' operands: what is stored is the reduction itself

  [[nodiscard]] std::size_t size() const { return bytes; }
};

struct RingPlan {
  std::vector<std::span<const std::byte>> send;
  std::vector<ReduceSegment> reduce;          // received first
  std::vector<std::span<std::byte>> receive;  // received next, straight into place
  std::size_t own_bytes = 0;                  // of send: the first, which wait for nothing received
  std::size_t send_bytes = 0;
  std::size_t reduce_bytes = 0;
  std::size_t receive_bytes = 0;

  void clear();
  void add_send(std::span<const std::byte> bytes);
  void add_reduce(const ReduceSegment& segment);
  void add_receive(std::span<std::byte> bytes);
};

// A position in one of a plan's lists.
struct SegmentCursor {
  std::size_t segment = 0;
  std::size_t offset = 0;

  template <class Segments>
  void advance(const Segments& segments, std::size_t bytes) {
    offset += bytes;
    while (segment < segments.size() && offset >= segments[segment].size()) {
      offset -= segments[segment].size();
      ++segment;
    }
  }
};

// Reduce-scatter, then all-gather: 2(N-1) steps, 2(N-1)/N of the buffer on each link, the least
// that a ring can do. input may be output; it is never copied as a whole.
//
// Whoever sends without copying relies on this: bytes that were sent are overwritten, within the
// operation, only by bytes that the successor computed from them, so only after it had them.
void plan_allreduce(RingPlan& plan, unsigned rank, unsigned ranks, const std::byte* input,
                    std::byte* output, std::size_t count, std::size_t element_bytes);

}  // namespace erar
