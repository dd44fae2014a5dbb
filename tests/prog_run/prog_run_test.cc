// The loaded XDP program on packet fixtures, by BPF_PROG_TEST_RUN, beside the native step.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "bpf/host/device.h"
#include "core/protocol/lanes.h"
#include "core/session/ring_config.h"
#include "sim/ring/memory_ring.h"
#include "tests/fixtures/frame_fixtures.h"
#include "tests/prog_run/program.h"

namespace erar {
namespace {

using sim::Frame;
using tests::FrameFixture;

class ProgRun : public testing::Test {
 protected:
  void SetUp() override { open_device(tests::fixture_start()); }

  void open_device(const erar_start& start) {
    device_.reset();
    DeviceOptions options;
    options.arena_segments = tests::kFixtureSegments;
    options.token = 0x5eed;
    auto opened = Device::open(program_endpoint(), options);
    ASSERT_TRUE(opened) << opened.error().message();
    device_ = std::move(*opened);
    native_ = native_rank();
    for (std::uint32_t segment = 0; segment < tests::kFixtureSegments; segment++) {
      for (std::uint32_t i = 0; i < 1408; i++) {
        const std::uint8_t share = tests::fixture_share(segment, i);
        device_->arena()[segment * std::size_t{1408} + i] = std::byte{share};
        native_->segment(segment)[i] = share;
      }
    }
    EXPECT_EQ(device_->open_operation(start), native_->start(start));
  }

  // The native twin has the same place in the ring and the same link headers.
  static std::unique_ptr<sim::MemoryRank> native_rank() {
    auto config = make_ring_config(program_endpoint(), tests::kFixtureSegments, 1, 0x5eed);
    return std::make_unique<sim::MemoryRank>(*config);
  }

  [[nodiscard]] std::uint64_t counter(erar_counter which) const {
    const auto all = device_->counters();
    return all ? (*all)[which] : ~0ULL;
  }

  // Runs the frame through both; they must do the same and send the same. Returns what leaves.
  Frame expect_same(const Frame& frame, bool from_process = false) {
    Frame native = frame;
    const Verdict verdict = from_process ? native_->kick(tests::fixture_start().number, native)
                                         : native_->receive(native);
    const RunOutcome outcome = run_program(device_->program_fd(), frame, from_process);
    EXPECT_EQ(outcome.action, action_of(verdict));
    if (verdict == Verdict::kForward) {
      // Ethernet padding may stay behind the frame; the header says where the payload ends.
      native.resize(std::min(native.size(), outcome.frame.size()));
      EXPECT_EQ(outcome.frame, native);
    }
    for (unsigned i = 0; i < ERAR_COUNTERS; i++)
      EXPECT_EQ(counter(static_cast<erar_counter>(i)),
                native_->counter(static_cast<erar_counter>(i)))
          << Device::counter_name(i);
    return outcome.frame;
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<sim::MemoryRank> native_;
};

class ProgRunOnFixtures : public ProgRun, public testing::WithParamInterface<FrameFixture> {};

TEST_P(ProgRunOnFixtures, DoesWhatTheNativeStepDoes) {
  Frame frame = tests::fixture_frame();
  GetParam().change(frame);
  expect_same(frame);
  EXPECT_EQ(counter(GetParam().counter), 1U);
}

INSTANTIATE_TEST_SUITE_P(Frames, ProgRunOnFixtures, testing::ValuesIn(tests::frame_fixtures()),
                         [](const auto& fixture) { return fixture.param.name; });

TEST_F(ProgRun, AddsThisRanksShareToEveryByteWithCarries) {
  const Frame sent = expect_same(tests::fixture_frame());
  ASSERT_EQ(sent.size(), ERAR_HEADER_BYTES + 1408U);
  for (std::uint32_t word = 0; word < 1408 / 8; word++) {
    std::uint64_t theirs = 0, ours = 0, sum = 0;
    for (std::uint32_t byte = 0; byte < 8; byte++) {
      theirs |= std::uint64_t{static_cast<std::uint8_t>(8 * word + byte + 3)} << (8 * byte);
      ours |= std::uint64_t{tests::fixture_share(0, 8 * word + byte)} << (8 * byte);
    }
    std::memcpy(&sum, sent.data() + ERAR_HEADER_BYTES + 8 * std::size_t{word}, 8);
    ASSERT_EQ(sum, theirs + ours) << "word " << word;
  }
}

TEST_F(ProgRun, EveryWayToCombineAndToCheckMatchesTheNativeLoop) {
  const erar_combine ways[] = {
      {ERAR_ADD_WORDS, 0, 0, 0, 0},
      {ERAR_ADD_WORDS, 1, 0, 0, 0},
      {ERAR_ADD_LANES32, 0, 0, 0, 0},
      {ERAR_ADD_LANES32, 1, 0, 0, 0},
      {ERAR_ADD_LANES, 0, 7, ERAR_HIGH_OF_LANES8, 0},
      {ERAR_MAX_LANES, 0, 7, ERAR_HIGH_OF_LANES8, 0},
      {ERAR_MAX_LANES, 1, 15, ERAR_HIGH_OF_LANES16, ~0ULL},
      {ERAR_MAX_LANES, 0, 31, ERAR_HIGH_OF_LANES32, ERAR_HIGH_OF_LANES32},
      {ERAR_MAX_LANES, 0, 63, ERAR_HIGH_OF_LANES64, ~ERAR_HIGH_OF_LANES64},
  };
  for (const erar_combine& way : ways) {
    for (const std::uint32_t check : {0U, 1U}) {
      SCOPED_TRACE(testing::Message() << "loop " << way.loop << ", lanes " << std::hex
                                      << way.lane_high << ", check " << check);
      erar_start start = tests::fixture_start();
      start.combine = way;
      start.check = check;
      open_device(start);
      expect_same(tests::fixture_frame());
      EXPECT_EQ(counter(ERAR_COUNT_ADDS), 1U);
    }
  }
}

// Adding, at the turn (block 2's frames turn at rank 1), and storing what others have added.
TEST_F(ProgRun, AChangedPayloadIsDroppedOnAnyHop) {
  struct Hop {
    std::uint8_t type;
    std::uint8_t hop;
    std::uint16_t block;
    std::uint32_t segment;
  };
  std::uint64_t dropped = 0;
  std::uint64_t stored = 0;
  for (const Hop& hop : {Hop{ERAR_REDUCE_SCATTER, 1, 0, 0}, Hop{ERAR_REDUCE_SCATTER, 3, 2, 4},
                         Hop{ERAR_ALL_GATHER, 4, 1, 2}, Hop{ERAR_ALL_GATHER, 6, 3, 7}}) {
    Frame frame = tests::fixture_frame();
    auto* header = reinterpret_cast<erar_frame*>(frame.data());
    header->type = hop.type;
    header->hop = hop.hop;
    header->block = ERAR_BE16(hop.block);
    header->segment = ERAR_BE32(hop.segment);
    tests::seal(frame);
    Frame wrong = frame;
    wrong[ERAR_HEADER_BYTES + 700] ^= 0x10;
    expect_same(wrong);
    EXPECT_EQ(counter(ERAR_DROP_CHECKSUM), ++dropped);
    EXPECT_EQ(counter(ERAR_COUNT_STORED), stored);
    expect_same(frame);
    EXPECT_EQ(counter(ERAR_DROP_CHECKSUM), dropped);
    stored += hop.hop >= 3 ? 1 : 0;
    EXPECT_EQ(counter(ERAR_COUNT_STORED), stored);
  }
}

TEST_F(ProgRun, KickFramesStartTheOwnBlockAndThenHaveNothingToDo) {
  Frame kick(ERAR_HEADER_BYTES + 1408);
  const auto config = native_->config();
  erar_write_kick(reinterpret_cast<erar_frame*>(kick.data()), &config,
                  tests::fixture_start().number);
  for (int i = 0; i < 2; i++) {
    const Frame sent = expect_same(kick, true);
    const auto* header = reinterpret_cast<const erar_frame*>(sent.data());
    EXPECT_EQ(ERAR_BE32(header->segment), 2U + i);
    EXPECT_EQ(std::memcmp(sent.data() + ERAR_HEADER_BYTES, device_->arena().data() + 1408 * (2 + i),
                          1408),
              0);
  }
  expect_same(kick, true);
  EXPECT_EQ(counter(ERAR_COUNT_RETIRED), 1U);
}

TEST_F(ProgRun, TheLastReceiverStoresAndRecyclesIntoItsOwnBlock) {
  // Block 3 ends at rank 1 after six links.
  Frame frame = tests::fixture_frame();
  auto* header = reinterpret_cast<erar_frame*>(frame.data());
  header->type = ERAR_ALL_GATHER;
  header->hop = 6;
  header->block = ERAR_BE16(3);
  header->segment = ERAR_BE32(7);
  tests::seal(frame);
  const Frame sent = expect_same(frame);
  EXPECT_EQ(counter(ERAR_COUNT_RECYCLED), 1U);
  EXPECT_EQ(std::memcmp(device_->arena().data() + 7 * 1408, frame.data() + ERAR_HEADER_BYTES, 1408),
            0);
  EXPECT_EQ(ERAR_BE16(reinterpret_cast<const erar_frame*>(sent.data())->block), 1);
}

}  // namespace
}  // namespace erar
