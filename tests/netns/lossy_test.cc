// Links that lose, double, hold back, damage and cut frames: sums are right all the same.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "emu/netns/fault_boxes.h"
#include "tests/netns/checked_calls.h"
#include "tests/netns/support.h"

namespace erar::test {
namespace {

constexpr std::uint64_t kTimeout_ns = 10'000'000'000;

FabricSpec lossy_spec(const std::string& label, FabricKind kind) {
  FabricSpec spec = make_spec(label, kind, kCheckedRanks);
  spec.mtu = 1500;
  spec.offloads = false;
  spec.faults = true;
  return spec;
}

void expect_calls_right(const Fabric& fabric, std::uint32_t token, std::uint64_t calls) {
  RankProcesses ranks(fabric, [&](unsigned rank, SharedState& state) {
    return run_checked_rank(fabric, rank, token, calls, kTimeout_ns, state);
  });
  for (unsigned rank = 0; rank < kCheckedRanks; rank++) {
    EXPECT_EQ(ranks.wait(rank), 0) << "rank " << rank;
    EXPECT_EQ(ranks.state().ranks[rank].calls, calls) << ranks.state().ranks[rank].message.data();
  }
}

class LossyLinks : public testing::TestWithParam<FabricKind> {};

TEST_P(LossyLinks, ChangeNoSum) {
  const FabricSpec spec = lossy_spec("lossy", GetParam());
  const FabricRemover remover(spec.name);
  auto fabric = Fabric::up(spec);
  ASSERT_TRUE(fabric) << fabric.error().message();
  auto boxes = FaultBoxes::open(spec);
  ASSERT_TRUE(boxes) << boxes.error().message();
  Faults faults;
  faults.loss = 0.01;
  faults.burst_frames = 2;
  faults.duplicate = 0.02;
  faults.reorder = 0.02;
  faults.corrupt = 0.005;
  faults.corrupt_header = 0.005;
  faults.truncate = 0.005;
  faults.seed = test_seed();
  const auto set = boxes->set(faults);
  ASSERT_TRUE(set) << set.error().message();
  expect_calls_right(*fabric, 1, 10);
  const auto counts = boxes->counts();
  ASSERT_TRUE(counts) << counts.error().message();
  for (const auto& [name, value] : counts->named())
    EXPECT_TRUE(value > 0 || name == "untouched" || name == "rule_hits") << name;
}

std::string name_of_kind(const testing::TestParamInfo<FabricKind>& kind) {
  return name_of(kind.param);
}

INSTANTIATE_TEST_SUITE_P(Fabrics, LossyLinks,
                         testing::Values(FabricKind::kRing, FabricKind::kBridge,
                                         FabricKind::kSwitch),
                         name_of_kind);

// --- One fault at a time, by rules ---

// What is done to one kind of frame, and how many of them each box must at least have met.
struct Expected {
  erar_fault_rule rule;
  std::uint64_t least = 0;
};

// The first one in each link; hop 0: of any hop.
Expected first_of(erar_fault_action action, erar_type type, std::uint32_t hop,
                  std::uint64_t least) {
  Expected made{{}, least};
  made.rule.match = ERAR_MATCH_TYPE | (hop != 0 ? ERAR_MATCH_HOP : 0);
  made.rule.action = action;
  made.rule.first_many = 1;
  made.rule.type = type;
  made.rule.hop = hop;
  return made;
}

constexpr std::uint32_t kTurnHop = kCheckedRanks - 1;
constexpr std::uint32_t kLastHop = 2 * kCheckedRanks - 2;

struct Calls {
  std::uint64_t many = 2;
  std::uint64_t timeout_ns = kTimeout_ns;
  unsigned pause_ms = 0;  // of the last rank, when each has done a call
};

class SingleFaultOnVeth : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(fabric_) << fabric_.error().message();
    ASSERT_TRUE(boxes_) << boxes_.error().message();
  }

  // Runs calls whose sums must be right under these rules, until every box has met as many frames
  // as it must. Once is enough, unless a rank was so late that others have sent again what was not
  // lost: then what was lost may come without being asked for.
  void heal(const std::vector<Expected>& rules, const Calls& calls = {}) {
    constexpr int kAttempts = 4;
    for (int attempt = 1; attempt <= kAttempts; attempt++) {
      std::string unmet;
      run_under(rules, calls, unmet);
      if (HasFailure() || unmet.empty()) return;
      fmt::print("attempt {}: {}\n", attempt, unmet);
      if (attempt == kAttempts) ADD_FAILURE() << unmet;
    }
  }

  // Of the last run.
  [[nodiscard]] const std::vector<RankReport>& reports() const { return reports_; }

 private:
  void run_under(const std::vector<Expected>& rules, const Calls& calls, std::string& unmet) {
    std::vector<erar_fault_rule> set;
    for (const Expected& expected : rules) set.push_back(expected.rule);
    std::vector<FaultCounts> before;
    for (unsigned rank = 0; rank < kCheckedRanks; rank++) {
      const auto done = boxes_->box(rank).set_rules(set);
      ASSERT_TRUE(done) << done.error().message();
      const auto counts = boxes_->box(rank).counts();
      ASSERT_TRUE(counts) << counts.error().message();
      before.push_back(*counts);
    }
    run(calls);
    for (unsigned rank = 0; rank < kCheckedRanks; rank++)
      check_box(rank, rules, before[rank], unmet);
  }

  void run(const Calls& calls) {
    const std::uint32_t token = ++token_;
    RankProcesses ranks(*fabric_, [&](unsigned rank, SharedState& state) {
      return run_checked_rank(*fabric_, rank, token, calls.many, calls.timeout_ns, state);
    });
    if (calls.pause_ms != 0) pause_last(ranks, calls.pause_ms);
    reports_.clear();
    for (unsigned rank = 0; rank < kCheckedRanks; rank++) {
      EXPECT_EQ(ranks.wait(rank), 0) << "rank " << rank;
      reports_.push_back(ranks.state().ranks[rank]);
      EXPECT_EQ(reports_[rank].calls, calls.many) << reports_[rank].message.data();
    }
  }

  static void pause_last(RankProcesses& ranks, unsigned pause_ms) {
    const auto& reports = ranks.state().ranks;
    EXPECT_TRUE(eventually(std::chrono::seconds(20), [&] {
      return std::all_of(reports.begin(), reports.begin() + kCheckedRanks,
                         [](const RankReport& report) { return report.calls > 0; });
    }));
    ranks.signal(kCheckedRanks - 1, SIGSTOP);
    std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms));
    ranks.signal(kCheckedRanks - 1, SIGCONT);
  }

  // What was asked for is what was done, to the frame: the box has no other faults.
  void check_box(unsigned rank, const std::vector<Expected>& rules, const FaultCounts& before,
                 std::string& unmet) {
    const auto matches = boxes_->box(rank).rule_matches();
    const auto after = boxes_->box(rank).counts();
    ASSERT_TRUE(matches) << matches.error().message();
    ASSERT_TRUE(after) << after.error().message();
    std::uint64_t dropped = 0, doubled = 0;
    for (std::size_t i = 0; i < rules.size(); i++) {
      const erar_fault_rule& rule = rules[i].rule;
      const std::uint64_t met = (*matches)[i];
      (rule.action == ERAR_RULE_DROP ? dropped : doubled) +=
          std::min<std::uint64_t>(met, rule.first_many);
      if (met < rules[i].least)
        unmet += fmt::format("box {} has met {} frames of type {} hop {}, not {}; ", rank, met,
                             rule.type, rule.hop, rules[i].least);
    }
    const auto went_up = [&](erar_fault_counter which) { return (*after)[which] - before[which]; };
    EXPECT_EQ(went_up(ERAR_FAULT_DROPPED), dropped) << "box " << rank;
    EXPECT_EQ(went_up(ERAR_FAULT_DUPLICATED), doubled) << "box " << rank;
    EXPECT_EQ(went_up(ERAR_FAULT_RULE_HITS), dropped + doubled) << "box " << rank;
  }

  const FabricSpec spec_ = lossy_spec("single", FabricKind::kRing);
  const FabricRemover remover_{spec_.name};
  Result<Fabric> fabric_ = Fabric::up(spec_);
  Result<FaultBoxes> boxes_ = FaultBoxes::open(spec_);
  std::uint32_t token_ = 0;
  std::vector<RankReport> reports_;
};

// Of each hop one, in each link. What is asked for meanwhile, if anything is, is lost once, too.
TEST_F(SingleFaultOnVeth, ALostReduceScatterFrameIsSentAgain) {
  for (std::uint32_t hop = 1; hop <= kTurnHop; hop++) {
    SCOPED_TRACE(fmt::format("hop {}", hop));
    heal({first_of(ERAR_RULE_DROP, ERAR_REDUCE_SCATTER, hop, 2),
          first_of(ERAR_RULE_DROP, ERAR_REQUEST, 0, 0),
          first_of(ERAR_RULE_DROP, ERAR_REPAIR, 0, 0)});
    // Only the rank that started it can send it again, and each rank's was lost in one of the
    // links.
    for (const RankReport& report : reports()) EXPECT_GT(report.counters[ERAR_COUNT_RESENT], 0U);
  }
}

// The block's own rank may send its share again. Behind it only a repair brings the sum, and has to
// be asked for: the first request and the first repair are lost in each link, so a second follows.
TEST_F(SingleFaultOnVeth, LostAllGatherFramesRequestsAndRepairsAreHealed) {
  for (std::uint32_t hop = kTurnHop + 1; hop <= kLastHop; hop++) {
    SCOPED_TRACE(fmt::format("hop {}", hop));
    const bool must_ask = hop > kCheckedRanks;
    heal({first_of(ERAR_RULE_DROP, ERAR_ALL_GATHER, hop, 2),
          first_of(ERAR_RULE_DROP, ERAR_REQUEST, 0, must_ask ? 2 : 0),
          first_of(ERAR_RULE_DROP, ERAR_REPAIR, 0, must_ask ? 2 : 0)});
  }
}

// A frame of each type and hop, and the first request and repair. For those, an all-gather frame is
// lost on its last link.
TEST_F(SingleFaultOnVeth, DoubledFramesChangeNothing) {
  for (std::uint32_t hop = 1; hop <= kLastHop; hop++) {
    SCOPED_TRACE(fmt::format("hop {}", hop));
    const erar_type type = hop <= kTurnHop ? ERAR_REDUCE_SCATTER : ERAR_ALL_GATHER;
    heal({first_of(ERAR_RULE_DUPLICATE, type, hop, 1),
          first_of(ERAR_RULE_DROP, ERAR_ALL_GATHER, kLastHop, 1),
          first_of(ERAR_RULE_DUPLICATE, ERAR_REQUEST, 0, 1),
          first_of(ERAR_RULE_DUPLICATE, ERAR_REPAIR, 0, 1)});
  }
}

// Three ranks wait for one that is paused, and say so eight times within its pause.
TEST_F(SingleFaultOnVeth, SignsOfLifeMayBeLostAndDoubled) {
  Calls calls;
  calls.many = 10;
  calls.timeout_ns = 2'000'000'000;  // a sign of life after each 16th of it
  calls.pause_ms = 1000;
  for (const erar_fault_action action : {ERAR_RULE_DROP, ERAR_RULE_DUPLICATE}) {
    SCOPED_TRACE(action == ERAR_RULE_DROP ? "lost" : "doubled");
    heal({first_of(action, ERAR_ALIVE, 0, 2)}, calls);
    for (const RankReport& report : reports()) EXPECT_GT(report.counters[ERAR_COUNT_ALIVE], 0U);
  }
}

}  // namespace
}  // namespace erar::test
