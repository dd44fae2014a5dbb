// The measuring loop on a backend of shared memory: what it verifies, and how it ends when a rank
// fails.
#include "experiments/bench/rank_loop.h"

#include "core/clock.h"
#include "emu/baseline/reduce_kernel.h"
#include "experiments/bench/shared_region.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <cmath>
#include <functional>
#include <set>
#include <thread>
#include <vector>

namespace erar::bench {
namespace {

using ::testing::HasSubstr;

// What is done to one rank's result or operation; called with the number of operations before it.
struct Sabotage {
  unsigned rank = 0;
  std::function<void(std::uint64_t operation, std::span<std::uint32_t> output)> on_output;
  std::function<bool(std::uint64_t operation)> fails;
};

// Ranks are threads that read each other's buffers.
struct Group {
  explicit Group(unsigned ranks) : inputs(ranks), meeting(ranks) {}
  std::vector<const void*> inputs;
  std::barrier<> meeting;
  Sabotage sabotage;
  std::vector<int> exponents;  // of rank 0's values, by operation
};

class SharedMemoryBackend : public Backend {
 public:
  SharedMemoryBackend(Group& group, unsigned rank) : group_(group), rank_(rank) {}

  Result<std::span<std::byte>> allocate(std::size_t bytes) override {
    memory_.push_back(std::make_unique<std::byte[]>(bytes));
    return std::span<std::byte>(memory_.back().get(), bytes);
  }

  Result<void> allreduce(const void* input, void* output, std::size_t count,
                         const Reduction& reduction) override {
    const std::uint64_t operation = operations_++;
    group_.inputs[rank_] = input;
    group_.meeting.arrive_and_wait();
    const std::vector<std::byte> result = reduced(count, reduction);
    if (rank_ == 0 && reduction.type == DataType::kFloat32) note_exponent(input, count);
    group_.meeting.arrive_and_wait();  // in place: nobody writes before all have read
    std::copy(result.begin(), result.end(), static_cast<std::byte*>(output));
    const Sabotage& sabotage = group_.sabotage;
    if (sabotage.rank != rank_) return {};
    if (sabotage.on_output) {
      sabotage.on_output(operation, {static_cast<std::uint32_t*>(output), result.size() / 4});
    }
    if (sabotage.fails && sabotage.fails(operation)) return refusal("sabotaged");
    return {};
  }

  // Differs by rank and operation; every third has nothing to agree on.
  [[nodiscard]] std::uint64_t agreement_ns() const override {
    return operations_ % 3 == 0 ? 0 : 1000 * operations_ + rank_;
  }

  std::vector<std::pair<std::string, std::uint64_t>> counters() override {
    return {{"operations", operations_}};
  }

 private:
  [[nodiscard]] std::vector<std::byte> reduced(std::size_t count,
                                               const Reduction& reduction) const {
    std::vector<std::byte> result(count * size_of(reduction.type));
    std::vector<std::byte> own(result.size());
    const CombineKernel combine = combine_kernel(reduction.type, reduction.op);
    for (const void* input : group_.inputs) {
      std::byte* const values = input == group_.inputs[0] ? result.data() : own.data();
      scale(reduction.type, values, input, count, reduction.pre_scale);
      if (values == own.data()) combine(result.data(), result.data(), own.data(), count);
    }
    if (reduction.op == ReduceOp::kAverage) {
      divide(reduction.type, result.data(), count, static_cast<unsigned>(group_.inputs.size()));
    }
    return result;
  }

  // Of the largest magnitude in the first block.
  void note_exponent(const void* input, std::size_t count) {
    const auto* values = static_cast<const float*>(input);
    float largest = 0;
    for (std::size_t i = 0; i < std::min<std::size_t>(count, 1024); ++i) {
      largest = std::max(largest, std::fabs(values[i]));
    }
    group_.exponents.push_back(std::ilogb(largest));
  }

  Group& group_;
  unsigned rank_;
  std::uint64_t operations_ = 0;
  std::vector<std::unique_ptr<std::byte[]>> memory_;
};

struct Outcome {
  std::vector<int> status;
  std::uint64_t wrong = 0;
  std::vector<std::uint64_t> times;
  std::vector<std::uint64_t> agreements;
  std::vector<int> exponents;
  std::string failure;
  std::vector<std::uint64_t> operations;  // that each rank's backend has counted
};

Outcome run(unsigned ranks, RankPlan plan, const Sabotage& sabotage = {}) {
  plan.summation = Summation::kRing;  // the backend adds in the type, rank by rank
  Group group(ranks);
  group.sabotage = sabotage;
  Result<SharedRegion> region = SharedRegion::create(ranks, plan.iters, 20'000'000'000U);
  const SoftirqMeter softirq = SoftirqMeter::open();
  Outcome outcome;
  outcome.status.resize(ranks);
  std::vector<std::thread> threads;
  for (unsigned rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      outcome.status[rank] = run_rank(*region, plan, rank, softirq, [&] {
        return Result<std::unique_ptr<Backend>>(std::make_unique<SharedMemoryBackend>(group, rank));
      });
      if (outcome.status[rank] != 0) group.meeting.arrive_and_drop();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (unsigned rank = 0; rank < ranks; ++rank) outcome.wrong += region->slot(rank).wrong;
  outcome.times.assign(region->times().begin(), region->times().end());
  outcome.agreements.assign(region->agreements().begin(), region->agreements().end());
  outcome.exponents = group.exponents;
  outcome.failure = region->failure();
  for (unsigned rank = 0; rank < ranks; ++rank) {
    outcome.operations.push_back(region->slot(rank).counters[0].value);
  }
  return outcome;
}

RankPlan plan_of(std::size_t bytes, DataType type) {
  RankPlan plan;
  plan.bytes = bytes;
  plan.reduction = {type, ReduceOp::kSum};
  plan.iters = 40;
  plan.warmup = 3;
  return plan;
}

TEST(RankLoop, ChainLengths) {
  RankPlan plan = plan_of(0, DataType::kInt32);
  for (const auto& [bytes, chain] :
       std::vector<std::pair<std::size_t, std::uint64_t>>{{0, 32},
                                                          {4, 32},
                                                          {131072, 32},
                                                          {262144, 16},
                                                          {1U << 20U, 4},
                                                          {4U << 20U, 1},
                                                          {1U << 26U, 1}}) {
    plan.bytes = bytes;
    EXPECT_EQ(chain_length(plan), chain) << bytes;
  }
  plan.bytes = 4;
  plan.iters = 5;
  EXPECT_EQ(chain_length(plan), 5U);
  EXPECT_EQ(buffer_count(plan), 12U);  // in and out, with the lead-in
  plan.registered = plan.in_place = true;
  EXPECT_EQ(buffer_count(plan), 6U);
  EXPECT_GE(registered_bytes(plan, 4), 6U * 64U);
}

TEST(RankLoop, CorrectResultsOfEverySizeTypeAndPlace) {
  for (const DataType type : {DataType::kInt32, DataType::kFloat32}) {
    for (const std::size_t bytes : {0U, 4U, 12U, 4100U, 1U << 20U, 5U << 20U}) {
      for (const bool registered : {false, true}) {
        RankPlan plan = plan_of(bytes, type);
        plan.registered = plan.in_place = registered;
        plan.iters = 6;
        const Outcome outcome = run(3, plan);
        EXPECT_EQ(outcome.status, (std::vector<int>{0, 0, 0})) << outcome.failure;
        EXPECT_EQ(outcome.wrong, 0U) << bytes;
        for (const std::uint64_t time_ns : outcome.times) EXPECT_GT(time_ns, 0U);
      }
    }
  }
}

TEST(RankLoop, CorrectResultsOfEveryTypeAndOperation) {
  for (const DataType type : kDataTypes) {
    for (const Reduction& reduction :
         {Reduction{type, ReduceOp::kSum}, Reduction{type, ReduceOp::kSum, -3},
          Reduction{type, ReduceOp::kAverage}, Reduction{type, ReduceOp::kMin},
          Reduction{type, ReduceOp::kMax}}) {
      RankPlan plan = plan_of(10'000, type);
      plan.reduction = reduction;
      plan.iters = 5;
      const Outcome outcome = run(3, plan);
      EXPECT_EQ(outcome.status, (std::vector<int>{0, 0, 0})) << outcome.failure;
      EXPECT_EQ(outcome.wrong, 0U) << name_of(type) << " " << name_of(reduction.op);
    }
  }
}

// Each rank waits until all have what was agreed on, so the slowest rank's wait counts.
TEST(RankLoop, KeepsTheLongestAgreementOfEachTimedOperation) {
  RankPlan plan = plan_of(1024, DataType::kFloat32);  // chains of 32
  const Outcome outcome = run(3, plan);
  ASSERT_EQ(outcome.agreements.size(), 40U);
  const std::uint64_t before[2] = {3 + 1 + 1, 3 + 1 + 1 + 32 + 1};  // warm-up, lead-ins
  for (std::uint64_t i = 0; i < 40; ++i) {
    const std::uint64_t number = (i < 32 ? before[0] + i : before[1] + i - 32) + 1;
    EXPECT_EQ(outcome.agreements[i], number % 3 == 0 ? 0 : 1000 * number + 2) << i;
  }
  plan.bytes = 4U << 20U;  // no chains, no lead-ins
  plan.iters = 4;
  EXPECT_EQ(run(2, plan).agreements, (std::vector<std::uint64_t>{4001, 5001, 0, 7001}));
}

// What error feedback leaves behind is bounded by the magnitudes of the call before.
TEST(RankLoop, MagnitudesStayOnlyWhereCompressed) {
  RankPlan plan = plan_of(4096, DataType::kFloat32);
  const Outcome changing = run(2, plan);
  EXPECT_GT(std::set<int>(changing.exponents.begin(), changing.exponents.end()).size(), 5U);
  plan.reduction.compressed = true;
  const Outcome constant = run(2, plan);
  ASSERT_EQ(constant.exponents.size(), changing.exponents.size());
  EXPECT_EQ(std::set<int>(constant.exponents.begin(), constant.exponents.end()).size(), 1U);
  EXPECT_EQ(constant.wrong, 0U);
}

TEST(RankLoop, RunsAsManyOperationsAsAskedFor) {
  RankPlan plan = plan_of(1024, DataType::kInt32);  // chains of 32
  const Outcome outcome = run(2, plan);
  EXPECT_EQ(outcome.times.size(), 40U);
  EXPECT_EQ(outcome.operations[0], 3U + 1 + 40 + 2);  // warm-up and its lead-in, 32 + 8 and theirs
}

TEST(RankLoop, OneWrongElementInOneOperationIsFound) {
  for (const std::uint64_t bad : {0U, 3U, 20U, 45U}) {  // warm-up, lead-in, first chain, last chain
    const Sabotage sabotage{1,
                            [bad](std::uint64_t operation, std::span<std::uint32_t> output) {
                              if (operation == bad) output[output.size() - 1] ^= 1;
                            },
                            {}};
    EXPECT_EQ(run(2, plan_of(4096, DataType::kInt32), sabotage).wrong, 1U) << bad;
  }
}

TEST(RankLoop, NanIsWrong) {
  const Sabotage sabotage{0,
                          [](std::uint64_t operation, std::span<std::uint32_t> output) {
                            if (operation == 9) output[0] = 0x7fc00000;
                          },
                          {}};
  EXPECT_GE(run(2, plan_of(4096, DataType::kFloat32), sabotage).wrong, 1U);
}

TEST(RankLoop, FloatsThatAreRightButNotTheSameBitsAreWrong) {
  const Sabotage sabotage{1,
                          [](std::uint64_t operation, std::span<std::uint32_t> output) {
                            if (operation == 9) output[7] ^= 1;  // the last bit: within the bound
                          },
                          {}};
  EXPECT_EQ(run(4, plan_of(4096, DataType::kFloat32), sabotage).wrong, 1U);
}

// Also where the oracle compares values, to which -0 and +0 are the same.
TEST(RankLoop, BitsAreComparedOfAllFloatTypesAndOperations) {
  for (const DataType type : kDataTypes) {
    const Sabotage sabotage{1,
                            [](std::uint64_t operation, std::span<std::uint32_t> output) {
                              if (operation == 9) output[8] ^= 1;
                            },
                            {}};
    for (const ReduceOp op : kReduceOps) {
      RankPlan plan = plan_of(4096, type);
      plan.reduction.op = op;
      const std::uint64_t wrong = run(4, plan, sabotage).wrong;
      const bool tolerated = is_float(type) && (op == ReduceOp::kSum || op == ReduceOp::kAverage);
      EXPECT_EQ(wrong, is_float(type) && !tolerated ? 2U : 1U) << name_of(type) << name_of(op);
    }
  }
}

TEST(RankLoop, AFailingRankEndsAllAndIsNamed) {
  const Sabotage sabotage{1, {}, [](std::uint64_t operation) { return operation == 45; }};
  const std::uint64_t start_ns = monotonic_ns();
  const Outcome outcome = run(3, plan_of(4096, DataType::kInt32), sabotage);
  EXPECT_EQ(outcome.status, (std::vector<int>{1, 1, 1}));
  EXPECT_EQ(outcome.failure, "rank 1: sabotaged");
  EXPECT_EQ(outcome.operations[1], 46U) << "counters of a rank that failed are kept, too";
  EXPECT_LT(monotonic_ns() - start_ns, 5'000'000'000U);
}

TEST(SharedRegion, BarrierHoldsProcessesTogether) {
  constexpr unsigned kRanks = 4;
  constexpr std::uint64_t kRounds = 500;
  Result<SharedRegion> region = SharedRegion::create(kRanks, 0, 20'000'000'000U);
  ASSERT_TRUE(static_cast<bool>(region));
  const auto body = [&](unsigned rank) {
    for (std::uint64_t round = 1; round <= kRounds; ++round) {
      region->slot(rank).wrong = round;
      if (!region->barrier(rank)) return 1;
      for (unsigned other = 0; other < kRanks; ++other) {
        if (region->slot(other).wrong != round) return 2;
      }
      if (!region->barrier(rank)) return 1;
    }
    return 0;
  };
  std::vector<pid_t> children;
  for (unsigned rank = 0; rank < kRanks; ++rank) {
    children.push_back(::fork());
    if (children.back() == 0) ::_exit(body(rank));
  }
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
}

TEST(SharedRegion, BarrierTimesOutWhenAPeerIsDead) {
  Result<SharedRegion> region = SharedRegion::create(2, 0, 200'000'000U);
  ASSERT_TRUE(static_cast<bool>(region));
  const Result<void> met = region->barrier(0);
  ASSERT_FALSE(static_cast<bool>(met));
  EXPECT_EQ(met.error().code, ETIMEDOUT);
  EXPECT_THAT(met.error().message(), HasSubstr("wait for rank 1"));
}

// Rank 1 is stopped where no backend would notice; rank 2 computes for longer than the limit, and
// nobody minds.
TEST(SharedRegion, BarrierNamesTheRankThatIsStopped) {
  constexpr unsigned kRanks = 3;
  Result<SharedRegion> region = SharedRegion::create(kRanks, 0, 500'000'000U);
  ASSERT_TRUE(static_cast<bool>(region));
  const auto body = [&](unsigned rank) {
    region->enter(rank);
    if (!region->barrier(rank)) return 1;
    const std::uint64_t start_ns = monotonic_ns();
    while (rank == 2 && monotonic_ns() - start_ns < 1'500'000'000U) {
    }
    if (!region->barrier(rank)) return 2;
    if (rank == 1) ::raise(SIGSTOP);
    const Result<void> met = region->barrier(rank);
    if (met) return 3;
    region->fail(rank, met.error());
    return 0;
  };
  std::vector<pid_t> children;
  for (unsigned rank = 0; rank < kRanks; ++rank) {
    children.push_back(::fork());
    if (children.back() == 0) ::_exit(body(rank));
  }
  for (const unsigned rank : {0U, 2U, 1U}) {
    int status = -1;
    if (rank == 1) ::kill(children[rank], SIGKILL);
    ASSERT_EQ(::waitpid(children[rank], &status, 0), children[rank]);
    EXPECT_EQ(status, rank == 1 ? SIGKILL : 0) << "rank " << rank;
  }
  EXPECT_THAT(region->failure(), HasSubstr("wait for rank 1 (idle for"));
}

TEST(SharedRegion, FailureWakesWaitersAndTheFirstIsKept) {
  Result<SharedRegion> region = SharedRegion::create(2, 0, 60'000'000'000U);
  ASSERT_TRUE(static_cast<bool>(region));
  const std::uint64_t start_ns = monotonic_ns();
  std::thread failing([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    region->fail(1, refusal("first"));
    region->fail(0, refusal("second"));
  });
  EXPECT_FALSE(static_cast<bool>(region->barrier(0)));
  failing.join();
  EXPECT_LT(monotonic_ns() - start_ns, 5'000'000'000U);
  EXPECT_THAT(region->failure(), HasSubstr("rank 1: first"));
  EXPECT_FALSE(static_cast<bool>(region->barrier(0))) << "a failed region lets nobody through";
}

}  // namespace
}  // namespace erar::bench
