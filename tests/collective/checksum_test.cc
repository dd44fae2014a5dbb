// Checksums: nothing that was changed on the way is ever delivered.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "core/protocol/packet.h"
#include "tests/collective/reduction_oracle.h"
#include "tests/fixtures/memory_group.h"

namespace erar::tests {
namespace {

// One bit of one frame's payload is changed, each frame of an operation in turn. The sum must not
// reach anybody: the call ends with an error, or by a time-out where the frame was dropped on the
// way. No rank gets a wrong result.
void corrupt_every_frame(const Reduction& reduction) {
  constexpr std::size_t kCount = 2000;
  Random random(3);
  std::vector<Bytes> inputs;
  for (unsigned rank = 0; rank < 3; rank++)
    inputs.push_back(draw(reduction.type, Inputs::kGradients, kCount, rank, random));
  // The first round changes nothing and counts the frames.
  std::size_t frames = 0;
  for (std::size_t corrupt = 0; corrupt <= frames; corrupt++) {
    MemoryGroupOptions options;
    options.ranks = 3;
    options.seed = 100 + corrupt;
    options.timeout_ns = 20'000'000;
    MemoryGroup group(options);
    std::size_t seen = 0;
    group.ring().on_delivery([&](sim::Frame& frame) {
      if (++seen == corrupt) frame[ERAR_HEADER_BYTES + corrupt % 64] ^= 4;
    });
    std::vector<Bytes> results(3);
    std::vector<std::string> messages(3);
    group.run([&](unsigned rank, RingAllreduce& ring) {
      results[rank].resize(inputs[rank].size());
      const auto done =
          ring.allreduce(inputs[rank].data(), results[rank].data(), kCount, reduction);
      if (!done) messages[rank] = done.error().message();
    });
    bool someone_noticed = false;
    for (unsigned rank = 0; rank < 3; rank++) {
      if (!messages[rank].empty()) {
        someone_noticed = true;
        continue;
      }
      ASSERT_EQ(what_is_wrong(reduction, inputs, results[rank]), "")
          << "frame " << corrupt << ", rank " << rank;
    }
    ASSERT_EQ(someone_noticed, corrupt != 0) << "frame " << corrupt;
    if (corrupt == 0) frames = seen;
  }
  EXPECT_GT(frames, 8U);
}

TEST(Checksum, NoChangedFrameIsEverDelivered) {
  for (const DataType type : {DataType::kFloat32, DataType::kInt32, DataType::kInt8}) {
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMax}) {
      Reduction reduction;
      reduction.type = type;
      reduction.op = op;
      SCOPED_TRACE(std::string(name_of(op)) + " of " + std::string(name_of(type)));
      ASSERT_NO_FATAL_FAILURE(corrupt_every_frame(reduction));
    }
  }
}

// A bit of the payload and bits of one byte of the checksum's own field, flipped at once. Of a
// plain sum the same bit flipped in both would go unseen: one or two of a hundred such pairs.
TEST(Checksum, DamageInItsOwnFieldDoesNotHideABitOfThePayload) {
  Random random(5);
  for (unsigned round = 0; round < 2000; round++) {
    erar_packet packet{ERAR_REDUCE_SCATTER, 1, 2, 30, 400, 1408, random()};
    const std::uint64_t sum = packet.checksum;
    const std::uint64_t wire = erar_wire_checksum(&packet);
    ASSERT_EQ(erar_payload_checksum(&packet, wire), sum);
    for (unsigned bit = 0; bit < 64; bit++) {
      for (const std::uint64_t changed : {sum + (1ULL << bit), sum - (1ULL << bit)}) {
        packet.checksum = changed;
        const std::uint64_t difference = erar_wire_checksum(&packet) ^ wire;
        for (unsigned byte = 0; byte < 8; byte++)
          ASSERT_NE(difference & ~(0xffULL << 8 * byte), 0U) << "bit " << bit << " of " << sum;
      }
    }
  }
}

}  // namespace
}  // namespace erar::tests
