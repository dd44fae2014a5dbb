// The launcher: what becomes of ranks, their children and their launcher.
#include "emu/rank/launcher.h"

#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>

#include "emu/netns/processes.h"
#include "tests/netns/support.h"

namespace erar {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr unsigned kRanks = 3;

// Seen by the test and by all ranks.
struct Board {
  std::atomic<unsigned> ready;
  std::atomic<pid_t> pids[kRanks];
};

class LauncherTest : public testing::Test {
 protected:
  void SetUp() override {
    auto fabric = Fabric::up(spec_);
    ASSERT_TRUE(fabric) << fabric.error().message();
    fabric_.emplace(std::move(*fabric));
    void* memory =
        mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    board_ = new (memory) Board{};
  }
  void TearDown() override {
    if (board_ != nullptr) munmap(board_, sizeof(Board));
  }

  void sign_in(unsigned rank) {
    board_->pids[rank] = getpid();
    ++board_->ready;
  }

  LaunchOutcome launch(const std::function<int(unsigned)>& body) {
    auto outcome = launch_ranks(*fabric_, {}, body);
    EXPECT_TRUE(outcome) << outcome.error().message();
    return outcome ? *outcome : LaunchOutcome{-1, -1};
  }

  LaunchOutcome launch_shell(const std::string& script) {
    auto outcome = launch_program(*fabric_, {}, {"sh", "-c", script}, 29500);
    EXPECT_TRUE(outcome) << outcome.error().message();
    return outcome ? *outcome : LaunchOutcome{-1, -1};
  }

  // A launcher in a process of its own that exits with the outcome's status.
  pid_t fork_launcher(const std::function<int(unsigned)>& body, LaunchOptions options = {}) {
    std::fflush(nullptr);
    pid_t pid = fork();
    if (pid == 0) {
      auto outcome = launch_ranks(*fabric_, options, body);
      _exit(outcome ? outcome->status : 99);
    }
    EXPECT_TRUE(test::eventually(5s, [&] { return board_->ready == kRanks; }));
    return pid;
  }

  bool all_ranks_gone() {
    return test::eventually(2s, [&] {
      for (auto& pid : board_->pids) {
        if (process_start_ticks(pid) != 0) return false;
      }
      return true;
    });
  }

  FabricSpec spec_ = test::make_spec("launch", FabricKind::kRing, kRanks);
  test::FabricRemover remover_{spec_.name};
  std::optional<Fabric> fabric_;
  Board* board_ = nullptr;
};

int wait_for(pid_t pid) {
  int status = -1;
  waitpid(pid, &status, 0);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

TEST_F(LauncherTest, RanksRunInTheirNamespacesOnTheirCpus) {
  LaunchOutcome outcome = launch([](unsigned) {
    cpu_set_t cpus;
    sched_getaffinity(0, sizeof(cpus), &cpus);
    return if_nametoindex("next") != 0 && CPU_COUNT(&cpus) == 1 ? 0 : 1;
  });
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.failed_rank, -1);
  EXPECT_EQ(if_nametoindex("next"), 0u) << "the launcher itself moved";
}

TEST_F(LauncherTest, FirstFailureIsTheOutcomeAndEndsTheOthers) {
  auto start = Clock::now();
  LaunchOutcome outcome = launch([](unsigned rank) {
    if (rank == 1) return 5;
    sleep(60);
    return 0;
  });
  EXPECT_EQ(outcome.status, 5);
  EXPECT_EQ(outcome.failed_rank, 1);
  EXPECT_LT(Clock::now() - start, 1500ms);
}

TEST_F(LauncherTest, RanksThatIgnoreSigtermAreKilled) {
  auto start = Clock::now();
  LaunchOutcome outcome = launch([this](unsigned rank) {
    if (rank != 2) signal(SIGTERM, SIG_IGN);
    sign_in(rank);
    while (board_->ready < kRanks) usleep(1000);
    if (rank == 2) raise(SIGSEGV);
    sleep(60);
    return 0;
  });
  EXPECT_EQ(outcome.status, 128 + SIGSEGV);
  EXPECT_EQ(outcome.failed_rank, 2);
  EXPECT_GE(Clock::now() - start, 1900ms);
  EXPECT_LT(Clock::now() - start, 4s);
  EXPECT_TRUE(all_ranks_gone());
}

TEST_F(LauncherTest, SignalsArePassedOn) {
  for (int number : {SIGINT, SIGTERM, SIGHUP}) {
    board_->ready = 0;
    pid_t launcher = fork_launcher([this, number](unsigned rank) {
      signal(number, [](int) { _exit(42); });
      sign_in(rank);
      sleep(60);
      return 0;
    });
    kill(launcher, number);
    EXPECT_EQ(wait_for(launcher), 42) << strsignal(number);
    EXPECT_TRUE(all_ranks_gone());
  }
}

TEST_F(LauncherTest, RanksThatIgnoreASignalPassedOnAreKilled) {
  for (int number : {SIGTERM, SIGHUP}) {
    board_->ready = 0;
    LaunchOptions options;
    options.grace_after_signal = 500ms;
    pid_t launcher = fork_launcher(
        [this, number](unsigned rank) {
          signal(number, SIG_IGN);
          sign_in(rank);
          sleep(60);
          return 0;
        },
        options);
    auto start = Clock::now();
    kill(launcher, number);
    EXPECT_EQ(wait_for(launcher), 128 + SIGKILL) << strsignal(number);
    EXPECT_GE(Clock::now() - start, 500ms);
    EXPECT_LT(Clock::now() - start, 3s);
    EXPECT_TRUE(all_ranks_gone());
  }
}

TEST_F(LauncherTest, RanksStartWithDefaultSignalHandling) {
  signal(SIGTERM, [](int) {});
  signal(SIGPIPE, SIG_IGN);
  sigset_t blocked;
  sigset_t before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  sigprocmask(SIG_BLOCK, &blocked, &before);
  LaunchOutcome outcome = launch([](unsigned rank) {
    raise(rank == 0 ? SIGTERM : SIGPIPE);
    return 0;
  });
  sigset_t after;
  sigprocmask(SIG_SETMASK, &before, &after);
  signal(SIGTERM, SIG_DFL);
  signal(SIGPIPE, SIG_DFL);
  EXPECT_GT(outcome.status, 128);
  EXPECT_EQ(sigismember(&after, SIGTERM), 1) << "the caller's mask was not restored";
  EXPECT_EQ(sigismember(&after, SIGINT), 0) << "the caller's mask was not restored";
}

TEST_F(LauncherTest, KilledLauncherTakesItsRanksAlong) {
  pid_t launcher = fork_launcher([this](unsigned rank) {
    signal(SIGTERM, SIG_IGN);
    sign_in(rank);
    sleep(60);
    return 0;
  });
  kill(launcher, SIGKILL);
  wait_for(launcher);
  EXPECT_TRUE(all_ranks_gone());
}

TEST_F(LauncherTest, ChildrenOfRanksEndWithThem) {
  const std::string file = testing::TempDir() + spec_.name + "-child";
  // Rank 0 starts a child that ignores SIGTERM and waits with it; rank 1 fails once it is there.
  LaunchOutcome outcome = launch_shell(
      "case $RANK in"
      " 0) sh -c 'trap \"\" TERM; echo $$ > " +
      file +
      "; sleep 60; sleep 60' & wait;;"
      " 1) while ! test -s " +
      file +
      "; do sleep 0.01; done; exit 3;;"
      " *) exec sleep 60;;"
      " esac");
  EXPECT_EQ(outcome.status, 3);
  EXPECT_EQ(outcome.failed_rank, 1);
  pid_t child = 0;
  std::ifstream(file) >> child;
  std::remove(file.c_str());
  ASSERT_GT(child, 0);
  EXPECT_TRUE(test::eventually(1s, [&] { return process_start_ticks(child) == 0; }));
  EXPECT_TRUE(
      test::eventually(1s, [&] { return processes_in({fabric_->rank_namespace(0)}).empty(); }));
}

TEST_F(LauncherTest, ProgramsKnowTheirPlace) {
  LaunchOutcome outcome = launch_shell(
      "test $WORLD_SIZE = 3 && test $LOCAL_RANK = 0 && test $MASTER_ADDR = 10.79.0.1 &&"
      " test $MASTER_PORT = 29500 && ip -o addr show dev id0 | grep -q 10.79.0.$((RANK + 1))");
  EXPECT_EQ(outcome.status, 0);
}

TEST_F(LauncherTest, UnknownProgramIs127) {
  auto outcome = launch_program(*fabric_, {}, {"no-such-program-anywhere"}, 1);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->status, 127);
}

TEST_F(LauncherTest, MissingNamespaceIsAnError) {
  ASSERT_TRUE(Fabric::down(spec_.name));
  auto outcome = launch_ranks(*fabric_, {}, [](unsigned) { return 0; });
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, ENOENT);
}

}  // namespace
}  // namespace erar
