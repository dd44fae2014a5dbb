// Fabrics when things go wrong: commands killed halfway, owners gone, files deleted, processes
// inside.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <random>
#include <thread>

#include "core/unique_fd.h"
#include "emu/netns/command.h"
#include "emu/netns/fabric.h"
#include "emu/netns/layout.h"
#include "emu/netns/namespace.h"
#include "emu/netns/processes.h"
#include "emu/netns/state_file.h"
#include "tests/netns/support.h"

namespace erar {
namespace {

using namespace std::chrono_literals;
using test::fabric_name;
using test::FabricRemover;
using test::make_spec;

// A process of its own; its exit status is what `work` returns.
pid_t fork_child(const std::function<int()>& work) {
  std::fflush(nullptr);
  pid_t pid = fork();
  if (pid == 0) _exit(work());
  return pid;
}

int wait_for(pid_t pid) {
  int status = -1;
  waitpid(pid, &status, 0);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

// Kills an `up` at a random moment, 12 times per kind, and builds on what it left.
class KilledInTheMiddle : public testing::TestWithParam<FabricKind> {};

TEST_P(KilledInTheMiddle, NextCommandFindsItsWay) {
  std::mt19937 random(test::test_seed());
  const FabricSpec spec = make_spec("kill", GetParam(), 6);
  FabricRemover remover(spec.name);
  auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(Fabric::up(spec));
  const std::chrono::microseconds whole = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::steady_clock::now() - start);
  ASSERT_TRUE(Fabric::down(spec.name));

  unsigned halfway = 0;
  for (unsigned round = 0; round < 12; ++round) {
    auto delay =
        std::chrono::microseconds(std::uniform_int_distribution<long>(0, whole.count())(random));
    SCOPED_TRACE(testing::Message()
                 << "round " << round << ", killed after " << delay.count() << " us");
    pid_t child = fork_child([&] { return Fabric::up(spec) ? 0 : 1; });
    std::this_thread::sleep_for(delay);
    kill(child, SIGKILL);
    wait_for(child);
    auto state = read_state(spec.name);
    bool complete = state && state->complete;
    if (state && !complete) ++halfway;

    if (round % 2 == 0 && !complete) {
      auto fabric = Fabric::up(spec);
      ASSERT_TRUE(fabric) << fabric.error().message();
      auto answered = test::ping_all_pairs(*fabric);
      ASSERT_TRUE(answered) << answered.error().message();
    }
    auto removed = Fabric::down(spec.name);
    ASSERT_TRUE(removed || removed.error().code == ENOENT) << removed.error().message();
    ASSERT_TRUE(test::traces(spec.name).empty()) << test::traces(spec.name).front();
  }
  EXPECT_GT(halfway, 0u) << "no kill hit the middle: the test tests nothing";
}

INSTANTIATE_TEST_SUITE_P(All, KilledInTheMiddle,
                         testing::Values(FabricKind::kRing, FabricKind::kBridge,
                                         FabricKind::kSwitch),
                         [](const auto& shape) { return name_of(shape.param); });

TEST(FabricCrash, OrphanIsReclaimedByAnyCommand) {
  FabricSpec orphan = make_spec("orphan", FabricKind::kRing, 2);
  orphan.ephemeral = true;
  FabricRemover removers[] = {FabricRemover(orphan.name), FabricRemover(fabric_name("other"))};
  ASSERT_EQ(wait_for(fork_child([&] { return Fabric::up(orphan) ? 0 : 1; })), 0);
  EXPECT_FALSE(test::traces(orphan.name).empty());
  ASSERT_TRUE(Fabric::up(make_spec("other", FabricKind::kRing, 2)));
  EXPECT_TRUE(test::traces(orphan.name).empty());
}

// Whatever command comes next: making a fabric, using one, or asking for the half-made one itself.
TEST(FabricCrash, HalfMadeFabricIsReclaimedByAnyCommand) {
  const FabricSpec half = make_spec("half", FabricKind::kBridge, 2);
  FabricRemover removers[] = {FabricRemover(half.name), FabricRemover(fabric_name("other")),
                              FabricRemover(fabric_name("third"))};
  ASSERT_TRUE(Fabric::up(make_spec("other", FabricKind::kRing, 2)));
  const std::function<void()> commands[] = {
      [] { EXPECT_TRUE(Fabric::up(make_spec("third", FabricKind::kRing, 2))); },
      [] { EXPECT_TRUE(Fabric::open(fabric_name("other"))); },
      [] { EXPECT_TRUE(Fabric::down(fabric_name("third"))); },
      [&] {
        auto fabric = Fabric::open(half.name);
        ASSERT_FALSE(fabric);
        EXPECT_NE(fabric.error().message().find("half-made"), std::string::npos)
            << fabric.error().message();
      }};
  for (const auto& command : commands) {
    ASSERT_EQ(wait_for(fork_child([&] {
                if (!Fabric::up(half)) return 1;
                FabricState state{half, false, getpid(), process_start_ticks(getpid())};
                return write_state(state) ? 0 : 1;
              })),
              0);
    ASSERT_FALSE(test::traces(half.name).empty());
    command();
    EXPECT_TRUE(test::traces(half.name).empty());
  }
}

TEST(FabricCrash, OwnedFabricIsLeftAlone) {
  FabricSpec owned = make_spec("owned", FabricKind::kRing, 2);
  owned.ephemeral = true;
  FabricRemover removers[] = {FabricRemover(owned.name), FabricRemover(fabric_name("other"))};
  auto fabric = Fabric::up(owned);
  ASSERT_TRUE(fabric);
  // Another process may neither take its name nor reclaim it.
  EXPECT_EQ(wait_for(fork_child([&] { return Fabric::up(owned).error().code; })), EEXIST);
  const FabricSpec other = make_spec("other", FabricKind::kRing, 2);
  EXPECT_EQ(wait_for(fork_child([&] { return Fabric::up(other) ? 0 : 1; })), 0);
  EXPECT_TRUE(test::ping_all_pairs(*fabric));
}

TEST(FabricCrash, NamespacesWithoutStateFileAreFound) {
  FabricSpec spec = make_spec("nofile", FabricKind::kBridge, 3);
  FabricRemover remover(spec.name);
  ASSERT_TRUE(Fabric::up(spec));
  ASSERT_TRUE(remove_state(spec.name));
  ASSERT_TRUE(Fabric::up(spec)) << "up removes what is left";
  ASSERT_TRUE(remove_state(spec.name));
  ASSERT_TRUE(Fabric::down(spec.name));
  EXPECT_TRUE(test::traces(spec.name).empty());
}

TEST(FabricCrash, DamagedStateFileIsNoObstacle) {
  FabricSpec spec = make_spec("damaged", FabricKind::kRing, 2);
  FabricRemover remover(spec.name);
  ASSERT_TRUE(Fabric::up(spec));
  std::string path = "/run/erar/fabrics/" + spec.name + ".json";
  ASSERT_EQ(truncate(path.c_str(), 20), 0);
  auto opened = Fabric::open(spec.name);
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message().find(path), std::string::npos) << opened.error().message();
  ASSERT_TRUE(Fabric::up(spec));
  ASSERT_EQ(truncate(path.c_str(), 0), 0);
  ASSERT_TRUE(Fabric::down(spec.name));
  EXPECT_TRUE(test::traces(spec.name).empty());
}

// A process inside that ignores SIGTERM is killed; one outside is not touched.
TEST(FabricCrash, DownEndsProcessesInside) {
  FabricSpec spec = make_spec("inside", FabricKind::kRing, 2);
  FabricRemover remover(spec.name);
  auto fabric = Fabric::up(spec);
  ASSERT_TRUE(fabric);
  auto network = open_namespace(fabric->rank_namespace(1));
  ASSERT_TRUE(network);
  auto stubborn = [&] {
    if (setns(network->get(), CLONE_NEWNET) != 0) return 1;
    signal(SIGTERM, SIG_IGN);
    for (;;) pause();
  };
  auto polite = [&] {
    if (setns(network->get(), CLONE_NEWNET) != 0) return 1;
    signal(SIGTERM, [](int) { _exit(7); });
    for (;;) pause();
  };
  auto outside = [] {
    for (;;) pause();
    return 0;
  };
  pid_t pids[] = {fork_child(stubborn), fork_child(polite), fork_child(outside)};
  std::vector<std::string> names = {fabric->rank_namespace(0), fabric->rank_namespace(1)};
  ASSERT_TRUE(test::eventually(2s, [&] { return processes_in(names).size() == 2; }));
  std::this_thread::sleep_for(50ms);  // both have set their signal handling

  auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(Fabric::down(spec.name));
  EXPECT_LT(std::chrono::steady_clock::now() - start, 4s);
  EXPECT_EQ(wait_for(pids[0]), 128 + SIGKILL);
  EXPECT_EQ(wait_for(pids[1]), 7);
  EXPECT_NE(process_start_ticks(pids[2]), 0u);
  kill(pids[2], SIGKILL);
  wait_for(pids[2]);
}

TEST(FabricCrash, NamesOfNamespacesAreReadExactly) {
  EXPECT_EQ(fabric_of_namespace("erar-a-0"), "a");
  EXPECT_EQ(fabric_of_namespace("erar-a-63"), "a");
  EXPECT_EQ(fabric_of_namespace("erar-a-mid"), "a");
  EXPECT_EQ(fabric_of_namespace("erar-a-1-0"), "a-1");
  EXPECT_EQ(fabric_of_namespace("erar-a-mid-0"), "a-mid");
  for (const char* name :
       {"erar-a", "erar--", "erar-0", "erar-a-", "erar-a-00", "erar-a-01", "erar-a-64", "erar-a-1x",
        "erar-a-middle", "xerar-a-0", "erar-A-0", "erar-doctor-12.probe", "a-0", ""}) {
    EXPECT_EQ(fabric_of_namespace(name), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace erar
