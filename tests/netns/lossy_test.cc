// Links that lose, double, hold back, damage and cut frames: sums are right all the same.
#include <fmt/format.h>
#include <gtest/gtest.h>

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

// One frame of each type and hop is lost or doubled, once in each link.
TEST(SingleFaultOnVeth, OfEveryKindOfFrameIsHealed) {
  const FabricSpec spec = lossy_spec("single", FabricKind::kRing);
  const FabricRemover remover(spec.name);
  auto fabric = Fabric::up(spec);
  ASSERT_TRUE(fabric) << fabric.error().message();
  auto boxes = FaultBoxes::open(spec);
  ASSERT_TRUE(boxes) << boxes.error().message();
  const auto rule = [](std::uint32_t action, std::uint32_t type, std::uint32_t hop) {
    erar_fault_rule made{};
    made.match = ERAR_MATCH_TYPE | (hop != 0 ? ERAR_MATCH_HOP : 0);
    made.action = action;
    made.first_many = 1;
    made.type = type;
    made.hop = hop;
    return made;
  };
  std::uint32_t token = 0;
  for (const std::uint32_t action : {ERAR_RULE_DROP, ERAR_RULE_DUPLICATE}) {
    for (std::uint32_t hop = 1; hop <= 2 * kCheckedRanks - 2; hop++) {
      const std::uint32_t type = hop < kCheckedRanks ? ERAR_REDUCE_SCATTER : ERAR_ALL_GATHER;
      // What is sent to heal the loss meets faults, too.
      const erar_fault_rule rules[] = {rule(action, type, hop), rule(action, ERAR_REQUEST, 0),
                                       rule(action, ERAR_REPAIR, 0)};
      SCOPED_TRACE(fmt::format("action {}, type {}, hop {}", action, type, hop));
      std::uint64_t hits = 0;
      for (unsigned rank = 0; rank < kCheckedRanks; rank++) {
        const auto set = boxes->box(rank).set_rules(rules);
        ASSERT_TRUE(set) << set.error().message();
      }
      expect_calls_right(*fabric, ++token, 2);
      for (unsigned rank = 0; rank < kCheckedRanks; rank++) {
        const auto matches = boxes->box(rank).rule_matches();
        ASSERT_TRUE(matches) << matches.error().message();
        EXPECT_GT((*matches)[0], 0U) << "box " << rank;
        hits += (*matches)[0];
      }
      EXPECT_GT(hits, kCheckedRanks);
    }
  }
}

}  // namespace
}  // namespace erar::test
