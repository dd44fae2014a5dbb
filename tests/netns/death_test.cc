// Ranks that are killed, stopped, cut off or slow: the others end in time, name it, and go on
// without.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>

#include "core/clock.h"
#include "tests/netns/checked_calls.h"
#include "tests/netns/support.h"

namespace erar::test {
namespace {

constexpr unsigned kRanks = kCheckedRanks;
constexpr std::uint64_t kTimeout_ns = 1'000'000'000;

enum class Fate { kKilled, kStopped, kCutOff };

class Death : public testing::TestWithParam<Fate> {
 protected:
  static void strike(const Fabric& fabric, const RankProcesses& ranks, unsigned victim) {
    const RingEndpoint endpoint = fabric.endpoint(victim);
    switch (GetParam()) {
      case Fate::kKilled:
        ranks.signal(victim, SIGKILL);
        break;
      case Fate::kStopped:
        ranks.signal(victim, SIGSTOP);
        break;
      case Fate::kCutOff:
        for (const std::string& name : {endpoint.rx_interface, endpoint.tx_interface}) {
          const auto cut =
              run_inside(fabric.rank_namespace(victim), {"ip", "link", "set", name, "down"});
          EXPECT_TRUE(cut) << cut.error().message();
        }
        break;
    }
  }
  static void mend(const Fabric& fabric, unsigned victim) {
    if (GetParam() != Fate::kCutOff) return;
    const RingEndpoint endpoint = fabric.endpoint(victim);
    for (const std::string& name : {endpoint.rx_interface, endpoint.tx_interface})
      (void)run_inside(fabric.rank_namespace(victim), {"ip", "link", "set", name, "up"});
  }
};

void expect_no_program_left(const Fabric& fabric) {
  for (unsigned rank = 0; rank < kRanks; rank++) {
    const auto links = run_inside(fabric.rank_namespace(rank), {"ip", "-d", "link", "show"});
    ASSERT_TRUE(links) << links.error().message();
    EXPECT_EQ(links->find("prog/xdp"), std::string::npos) << *links;
  }
}

TEST_P(Death, EndsTheCallOnAllOthersInTimeAndNamesTheRank) {
  const unsigned seed = test_seed();
  std::mt19937 random(seed);
  FabricSpec spec = make_spec("death", FabricKind::kRing, kRanks);
  spec.mtu = 3498;
  const FabricRemover remover(spec.name);
  auto fabric = Fabric::up(spec);
  ASSERT_TRUE(fabric) << fabric.error().message();
  for (unsigned round = 0; round < 4; round++) {
    const unsigned victim = random() % kRanks;
    const auto moment = std::chrono::microseconds(random() % 60'000);
    SCOPED_TRACE(fmt::format("rank {} after {} us", victim, moment.count()));
    RankProcesses ranks(*fabric, [&](unsigned rank, SharedState& state) {
      return run_checked_rank(*fabric, rank, 1000 + round, UINT64_MAX, kTimeout_ns, state);
    });
    // All have begun.
    ASSERT_TRUE(eventually(std::chrono::seconds(20), [&] {
      return std::all_of(&ranks.state().ranks[0], &ranks.state().ranks[kRanks],
                         [](const RankReport& report) { return report.calls > 0; });
    }));
    std::this_thread::sleep_for(moment);
    const std::uint64_t struck_ns = monotonic_ns();
    strike(*fabric, ranks, victim);
    for (unsigned rank = 0; rank < kRanks; rank++) {
      if (rank == victim) continue;
      EXPECT_EQ(ranks.wait(rank), 0) << rank;
      const RankReport& report = ranks.state().ranks[rank];
      const std::string message = report.message.data();
      EXPECT_FALSE(report.wrong);
      EXPECT_EQ(report.code, ETIMEDOUT) << message;
      EXPECT_NE(message.find(fmt::format("rank {} is silent", victim)), std::string::npos)
          << "rank " << rank << ": " << message;
      EXPECT_TRUE(report.untouched) << "rank " << rank;
      const double seconds = static_cast<double>(report.ended_ns - struck_ns) * 1e-9;
      EXPECT_LT(seconds, 2 * static_cast<double>(kTimeout_ns) * 1e-9) << "rank " << rank;
    }
    ranks.signal(victim, SIGKILL);
    ranks.wait(victim);
    mend(*fabric, victim);
    expect_no_program_left(*fabric);

    // A new group on the same links works at once.
    RankProcesses again(*fabric, [&](unsigned rank, SharedState& state) {
      return run_checked_rank(*fabric, rank, 2000 + round, 3, 5 * kTimeout_ns, state);
    });
    for (unsigned rank = 0; rank < kRanks; rank++) {
      EXPECT_EQ(again.wait(rank), 0) << rank << ": " << again.state().ranks[rank].message.data();
      EXPECT_EQ(again.state().ranks[rank].calls, 3U)
          << rank << ": " << again.state().ranks[rank].message.data();
    }
  }
}

std::string name_of(const testing::TestParamInfo<Fate>& fate) {
  constexpr const char* kNames[] = {"killed", "stopped", "cut_off"};
  return kNames[static_cast<int>(fate.param)];
}

INSTANTIATE_TEST_SUITE_P(Fates, Death,
                         testing::Values(Fate::kKilled, Fate::kStopped, Fate::kCutOff), name_of);

// A rank that is away for less than the time-out costs time and nothing else.
TEST(Delay, OfARankThatComesBackLosesNothing) {
  std::mt19937 random(test_seed());
  FabricSpec spec = make_spec("pause", FabricKind::kRing, kRanks);
  const FabricRemover remover(spec.name);
  auto fabric = Fabric::up(spec);
  ASSERT_TRUE(fabric) << fabric.error().message();
  RankProcesses ranks(*fabric, [&](unsigned rank, SharedState& state) {
    return run_checked_rank(*fabric, rank, 7, 60, 5 * kTimeout_ns, state);
  });
  for (int pause = 0; pause < 4; pause++) {
    const unsigned victim = random() % kRanks;
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 200));
    ranks.signal(victim, SIGSTOP);
    std::this_thread::sleep_for(std::chrono::milliseconds(200 + random() % 400));
    ranks.signal(victim, SIGCONT);
  }
  for (unsigned rank = 0; rank < kRanks; rank++) {
    EXPECT_EQ(ranks.wait(rank), 0);
    EXPECT_EQ(ranks.state().ranks[rank].calls, 60U) << ranks.state().ranks[rank].message.data();
  }
}

}  // namespace
}  // namespace erar::test
