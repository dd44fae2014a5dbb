// What the ranks of one allreduce must have in common, how they find out, and what they say if not.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/data_type.h"

namespace erar {

// One rank's call, as it is sent to the others when the calls turn out to differ. Everything that
// decides which operations follow and what their lanes mean is here.
struct CallRecord {
  std::uint64_t count = 0;
  std::uint64_t pre_scale_bits = 0;  // of the double
  std::uint64_t group_bytes = 0;
  std::uint32_t segment_bytes = 0;
  std::uint8_t type = 0;
  std::uint8_t op = 0;
  std::uint8_t not_finite = 0;
  std::uint8_t compressed = 0;
  std::uint8_t checksum = 0;
  std::uint8_t whole = 0;  // one group, since the buffer is registered and needs no conversion
  std::array<std::uint8_t, 26> reserved{};

  static CallRecord of(std::size_t count, const Reduction& reduction, std::size_t group_bytes,
                       std::uint32_t segment_bytes, bool checksum);
};
static_assert(sizeof(CallRecord) == 64);

// A 512-bit hash of the call. The ranks' signatures are summed word by word on the ring: the sum is
// `ranks` times the own signature on every rank when all calls are equal, and on none when they are
// not (but for 1 chance in about 2^512).
using CallSignature = std::array<std::uint64_t, 8>;
CallSignature signature_of(const CallRecord& record);
bool all_equal(const CallSignature& own, const CallSignature& sum, unsigned ranks);

// "ranks disagree on count: 100 on ranks 0, 1, 3; 200 on rank 2". records[r] is rank r's; some two
// differ. The same text on every rank.
std::string describe_disagreement(std::span<const CallRecord> records);

}  // namespace erar
