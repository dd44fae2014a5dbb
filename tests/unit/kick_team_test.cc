// KickTeam: orders run on their CPUs, and the team ends at any moment.
#include "bpf/host/kick_team.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace erar {
namespace {

void wait_for(const std::atomic<unsigned>& value, unsigned least) {
  while (value.load() < least) std::this_thread::yield();
}

unsigned any_cpu() { return static_cast<unsigned>(sched_getcpu()); }

TEST(KickTeam, RunsOrdersOnTheCpuAndInOrder) {
  const unsigned cpu = any_cpu();
  std::atomic<unsigned> done{0};
  std::atomic<bool> right{true};
  KickTeam team([&](std::uint32_t operation, std::uint32_t frames) -> Result<void> {
    // The thread may run elsewhere until it has been pinned.
    if (operation != done.load() || frames != 2 * operation) right = false;
    if (operation > 0 && any_cpu() != cpu) right = false;
    done++;
    return {};
  });
  for (unsigned order = 0; order < 100; order++) {
    ASSERT_TRUE(team.inject_on(cpu, order, 2 * order));
    wait_for(done, order + 1);
  }
  EXPECT_TRUE(right);
  EXPECT_TRUE(team.take_error());
}

TEST(KickTeam, ReportsAnErrorOnce) {
  std::atomic<unsigned> done{0};
  KickTeam team([&](std::uint32_t, std::uint32_t) -> Result<void> {
    done++;
    return Error{5, "inject", "failed"};
  });
  ASSERT_TRUE(team.inject_on(any_cpu(), 1, 1));
  wait_for(done, 1);
  bool reported = false;
  for (int i = 0; i < 1000 && !reported; i++) {
    reported = !team.take_error();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(reported);
  EXPECT_TRUE(team.take_error());
}

// The end must not be taken for one more order by a thread that is at work.
TEST(KickTeam, EndsWhileAnOrderIsUnderWay) {
  std::atomic<unsigned> begun{0};
  {
    KickTeam team([&](std::uint32_t, std::uint32_t) -> Result<void> {
      begun++;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      return {};
    });
    ASSERT_TRUE(team.inject_on(any_cpu(), 1, 1));
    wait_for(begun, 1);
  }
  EXPECT_EQ(begun, 1U);
}

}  // namespace
}  // namespace erar
