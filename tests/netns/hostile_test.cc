// Strangers on the links: floods of frames that are wrong in every way change no sum and stop no
// call; a second job on the same interfaces is refused and disturbs nothing.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "bpf/host/erar_backend.h"
#include "bpf/host/frame_socket.h"
#include "emu/netns/layout.h"
#include "emu/netns/namespace.h"
#include "tests/netns/checked_calls.h"
#include "tests/netns/hostile_frames.h"
#include "tests/netns/support.h"

namespace erar::test {
namespace {

constexpr unsigned kRanks = kCheckedRanks;
constexpr std::uint64_t kTimeout_ns = 10'000'000'000;
constexpr std::uint32_t kToken = 0xfeedbeef;
// A checked call's: its opening and three groups.
constexpr std::uint32_t kOperationsPerCall = 4;

// Sends frames to all ranks as fast as it can, from a thread of its own, until it is destroyed.
class Flood {
 public:
  // Writes the next frame to the rank that `frames` are for, with the ranks in about `operation`.
  using Write = std::function<void(HostileFrames& frames, HostileFrame& frame, std::uint64_t number,
                                   std::uint32_t operation)>;

  Flood(const Fabric& fabric, std::uint16_t job, std::uint32_t token, const SharedState& state,
        Write write)
      : state_(state), write_(std::move(write)) {
    const unsigned seed = test_seed();
    for (unsigned victim = 0; victim < kRanks; victim++) {
      const unsigned left = (victim + kRanks - 1) % kRanks;
      const bool ring = fabric.spec().kind == FabricKind::kRing;
      // The last device before the rank's: what it is given arrives there.
      const std::string device = ring ? "next" : fmt::format("port{}", victim);
      const auto opened = in_namespace(
          ring ? fabric.rank_namespace(left) : middle_namespace_name(fabric.spec().name),
          [&]() -> Result<void> {
            auto socket = FrameSocket::open(device);
            if (!socket) return socket.error();
            sockets_.push_back(std::move(*socket));
            return {};
          });
      EXPECT_TRUE(opened) << opened.error().message();
      frames_.emplace_back(fabric.endpoint(left), job, token, seed + victim);
    }
    if (sockets_.size() == kRanks) thread_ = std::thread([this] { run(); });
  }
  Flood(const Flood&) = delete;
  Flood& operator=(const Flood&) = delete;
  ~Flood() { stop(); }

  void stop() {
    leaving_ = true;
    if (thread_.joinable()) thread_.join();
  }
  [[nodiscard]] std::uint64_t sent() const { return sent_; }

 private:
  static constexpr std::size_t kBatch = 16;

  void run() {
    std::array<HostileFrame, kBatch> batch;
    while (!leaving_) {
      const auto calls = *const_cast<const volatile std::uint64_t*>(&state_.ranks[0].calls);
      const auto operation =
          static_cast<std::uint32_t>(ERAR_FIRST_OPERATION + calls * kOperationsPerCall);
      for (unsigned victim = 0; victim < kRanks; victim++) {
        std::array<std::span<const std::uint8_t>, kBatch> leaving;
        for (std::size_t i = 0; i < kBatch; i++) {
          const auto ahead = static_cast<std::uint32_t>(number_ % (kOperationsPerCall + 1));
          write_(frames_[victim], batch[i], number_, operation + ahead);
          number_++;
          leaving[i] = {batch[i].bytes.data(), batch[i].size};
        }
        // A full queue refuses the rest of a batch.
        if (sockets_[victim].send(leaving)) sent_ += kBatch;
      }
    }
  }

  const SharedState& state_;
  Write write_;
  std::vector<FrameSocket> sockets_;
  std::vector<HostileFrames> frames_;
  std::uint64_t number_ = 0;
  std::atomic<std::uint64_t> sent_{0};
  std::atomic<bool> leaving_{false};
  std::thread thread_;
};

FabricSpec hostile_spec(const std::string& label, FabricKind kind) {
  FabricSpec spec = make_spec(label, kind, kRanks);
  spec.mtu = 1500;
  return spec;
}

bool all_began(RankProcesses& ranks) {
  return eventually(std::chrono::seconds(30), [&] {
    return std::all_of(&ranks.state().ranks[0], &ranks.state().ranks[kRanks],
                       [](const RankReport& report) { return report.calls > 0; });
  });
}

void expect_calls_right(RankProcesses& ranks, std::uint64_t calls) {
  for (unsigned rank = 0; rank < kRanks; rank++) {
    EXPECT_EQ(ranks.wait(rank), 0) << "rank " << rank;
    EXPECT_FALSE(ranks.state().ranks[rank].wrong) << "rank " << rank;
    EXPECT_EQ(ranks.state().ranks[rank].calls, calls) << ranks.state().ranks[rank].message.data();
  }
}

std::uint64_t counted(RankProcesses& ranks, erar_counter counter) {
  std::uint64_t sum = 0;
  for (unsigned rank = 0; rank < kRanks; rank++) sum += ranks.state().ranks[rank].counters[counter];
  return sum;
}

class HostileFlood : public testing::TestWithParam<FabricKind> {};

TEST_P(HostileFlood, ChangesNoSumAndStopsNoCall) {
  constexpr std::uint64_t kCalls = 60;
  const FabricSpec spec = hostile_spec("hostile", GetParam());
  const FabricRemover remover(spec.name);
  auto fabric = Fabric::up(spec);
  ASSERT_TRUE(fabric) << fabric.error().message();
  RankProcesses ranks(*fabric, [&](unsigned rank, SharedState& state) {
    return run_checked_rank(*fabric, rank, kToken, kCalls, kTimeout_ns, state);
  });
  Flood flood(*fabric, 1, kToken, ranks.state(),
              [](HostileFrames& frames, HostileFrame& frame, std::uint64_t number,
                 std::uint32_t operation) {
                frames.write(
                    frame, static_cast<Hostility>(number % static_cast<unsigned>(Hostility::kMany)),
                    operation);
              });
  expect_calls_right(ranks, kCalls);
  flood.stop();

  std::uint64_t dropped = 0;
  for (const auto& [counter, name] : {std::pair{ERAR_DROP_SHORT, "short"},
                                      {ERAR_DROP_MALFORMED, "malformed"},
                                      {ERAR_DROP_JOB, "job"},
                                      {ERAR_DROP_MISROUTED, "misrouted"},
                                      {ERAR_DROP_STALE, "stale"},
                                      {ERAR_DROP_EARLY, "early"},
                                      {ERAR_DROP_RANGE, "range"},
                                      {ERAR_DROP_CHECKSUM, "checksum"},
                                      {ERAR_DROP_KICK, "kick"}}) {
    const std::uint64_t count = counted(ranks, counter);
    fmt::print("{} {}, ", name, count);
    EXPECT_GT(count, 100U) << name;
    dropped += count;
  }
  fmt::print("parked {}, resent {}, requested {}; {} sent\n", counted(ranks, ERAR_COUNT_PARKED),
             counted(ranks, ERAR_COUNT_RESENT), counted(ranks, ERAR_COUNT_REQUESTED), flood.sent());
  EXPECT_GT(dropped, 10'000U);
  EXPECT_EQ(counted(ranks, ERAR_DROP_INTERNAL), 0U);
}

std::string name_of_kind(const testing::TestParamInfo<FabricKind>& kind) {
  return name_of(kind.param);
}

INSTANTIATE_TEST_SUITE_P(Fabrics, HostileFlood,
                         testing::Values(FabricKind::kRing, FabricKind::kBridge), name_of_kind);

// An interface carries one program, and a program serves one job.
TEST(SecondJob, IsRefusedAndDisturbsNothing) {
  constexpr std::uint64_t kCalls = 40;
  const FabricSpec spec = hostile_spec("jobs", FabricKind::kBridge);
  const FabricRemover remover(spec.name);
  auto fabric = Fabric::up(spec);
  ASSERT_TRUE(fabric) << fabric.error().message();
  const auto open_second = [&](unsigned rank, SharedState& state, bool generic_mode) {
    ErarOptions options;
    options.job = 2;
    options.token = kToken + 1;
    options.generic_mode = generic_mode;
    const auto backend = open_erar_backend(fabric->endpoint(rank), options);
    RankReport& report = state.ranks[rank];
    report.code = backend ? 0 : backend.error().code;
    if (!backend)
      fmt::format_to_n(report.message.data(), report.message.size() - 1, "{}",
                       backend.error().message());
    return 0;
  };
  RankProcesses first(*fabric, [&](unsigned rank, SharedState& state) {
    return run_checked_rank(*fabric, rank, kToken, kCalls, kTimeout_ns, state);
  });
  ASSERT_TRUE(all_began(first));
  // Of the second job's ranks beyond these links, say: right frames, of another job.
  Flood flood(*fabric, 2, kToken + 1, first.state(),
              [](HostileFrames& frames, HostileFrame& frame, std::uint64_t,
                 std::uint32_t operation) { frames.write_right(frame, operation); });
  for (const bool generic_mode : {false, true}) {
    RankProcesses second(*fabric, [&](unsigned rank, SharedState& state) {
      return open_second(rank, state, generic_mode);
    });
    for (unsigned rank = 0; rank < kRanks; rank++) {
      EXPECT_EQ(second.wait(rank), 0);
      const RankReport& report = second.state().ranks[rank];
      const std::string message = report.message.data();
      EXPECT_TRUE(report.code == EBUSY || report.code == EEXIST) << report.code << message;
      EXPECT_NE(message.find("an interface serves one job"), std::string::npos) << message;
    }
  }
  // The refusals came while the first job was at work.
  EXPECT_LT(first.state().ranks[0].calls, kCalls);
  expect_calls_right(first, kCalls);
  flood.stop();
  EXPECT_GT(counted(first, ERAR_DROP_JOB), 10'000U);
  fmt::print("job {}, {} sent\n", counted(first, ERAR_DROP_JOB), flood.sent());

  // The first job's end makes room.
  RankProcesses third(
      *fabric, [&](unsigned rank, SharedState& state) { return open_second(rank, state, false); });
  for (unsigned rank = 0; rank < kRanks; rank++) {
    EXPECT_EQ(third.wait(rank), 0);
    EXPECT_EQ(third.state().ranks[rank].code, 0) << third.state().ranks[rank].message.data();
  }
}

}  // namespace
}  // namespace erar::test
