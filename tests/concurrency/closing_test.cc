// Late frames of operation k on several CPUs while the process closes k, changes the memory and
// opens k+8 there, to which early frames come: nothing of k is written behind the process's back,
// nothing of k+8 leaves as k's, and each early frame is taken once.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <iostream>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "core/session/operation_slot.h"
#include "tests/concurrency/crew.h"
#include "tests/concurrency/hammered_rank.h"

namespace erar::tests {
namespace {

constexpr auto kLength = std::chrono::milliseconds(400);
constexpr unsigned kBurst = 8;  // late frames that each CPU takes in a round
constexpr std::uint32_t kRanks = HammeredRank::kRanks;

struct Case {
  const char* name;
  unsigned cpus;  // with the process's own, which closes and opens
  // k is complete when it is closed, as operations are whose call went well; else its sums are
  // still being stored, as when ranks disagree or a call fails.
  bool complete;
};

void PrintTo(const Case& tested, std::ostream* out) { *out << tested.name; }

struct Delivery {
  HammerFrame frame;
  Verdict verdict = Verdict::kDrop;
};

// What a CPU is given in a round: late frames and then early ones, each of which comes once.
struct Share {
  std::array<Delivery, kBurst> late;
  std::vector<Delivery> early;
  bool closed_amid = false;  // the slot was open when a step began and was not when it ended
};

class Closing : public testing::TestWithParam<Case> {
 protected:
  Closing() : rank_(GetParam().cpus), crew_(GetParam().cpus), random_(5) {
    for (unsigned cpu = 0; cpu < GetParam().cpus; cpu++)
      shares_.push_back(std::make_unique<Share>());
    open(ERAR_FIRST_OPERATION);
  }

  // From operation k, open and with its own segments started, to k+8 likewise.
  void turn_over(std::uint32_t number) {
    const std::uint32_t next = number + ERAR_SLOTS;
    rank_.reset_counts();
    if (GetParam().complete) complete(number);
    deal(number, next);
    std::string changed;
    crew_.at_once([&](unsigned cpu) {
      if (cpu != 0) return take_all(cpu, number);
      dawdle(random_() % 4096);
      close_operation(rank_.on_cpu(0), number);
      rank_.fill(next);
      changed = fault_of_shares(next);
      frames_due_ = open_operation(rank_.on_cpu(0), HammeredRank::start_of(next));
    });
    ASSERT_EQ(changed, "");
    taken_.fill(0);
    kick_all(next);
    for (unsigned cpu = 1; cpu < GetParam().cpus; cpu++) judge(*shares_[cpu], number, next);
    if (HasFatalFailure()) return;
    expect_taken_once(next);
  }

  HammeredRank rank_;
  Crew crew_;
  std::uint64_t closed_amid_ = 0;
  std::uint64_t parked_ = 0;
  std::uint64_t early_ = 0;
  std::uint64_t stale_ = 0;

 private:
  void open(std::uint32_t number) {
    rank_.fill(number);
    frames_due_ = open_operation(rank_.on_cpu(0), HammeredRank::start_of(number));
    kick_all(number);
  }

  void complete(std::uint32_t number) {
    for (std::uint32_t segment = 0; segment < HammeredRank::kSegments; segment++) {
      const std::uint32_t links = HammeredRank::links_to(segment);
      if (rank_.state_of(segment, number) == ERAR_FINAL) continue;
      if (links == kRanks - 1)
        rank_.write_frame(spare_, ERAR_REDUCE_SCATTER, links, segment, number);
      else
        rank_.write_frame(spare_, ERAR_ALL_GATHER, links + kRanks, segment, number);
      rank_.receive(0, spare_);
    }
    ASSERT_TRUE(rank_.slot(number).done);
  }

  void deal(std::uint32_t number, std::uint32_t next) {
    for (unsigned cpu = 1; cpu < GetParam().cpus; cpu++) {
      for (Delivery& delivery : shares_[cpu]->late) write_late(delivery.frame, number);
      shares_[cpu]->early.clear();
      shares_[cpu]->closed_amid = false;
    }
    unsigned cpu = 0;
    for (std::uint32_t segment = HammeredRank::kPerBlock; segment < HammeredRank::kSegments;
         segment++) {
      if (segment % HammeredRank::kPerBlock >= HammeredRank::kWindow) continue;
      Share& share = *shares_[1 + cpu++ % (GetParam().cpus - 1)];
      rank_.write_frame(share.early.emplace_back().frame, ERAR_REDUCE_SCATTER,
                        HammeredRank::links_to(segment), segment, next);
    }
  }

  // Of any segment and kind; half of them are answered at the turn, which reads the sum. Of this
  // rank's own block there can be frames of what it has started only.
  void write_late(HammerFrame& frame, std::uint32_t number) {
    std::uint32_t segment = random_() % 2
                                ? HammeredRank::kPerBlock + random_() % HammeredRank::kPerBlock
                                : random_() % HammeredRank::kSegments;
    const std::uint32_t links = HammeredRank::links_to(segment);
    if (links == 0) segment %= HammeredRank::kWindow;
    const bool gathers = links == 0 || (links != kRanks - 1 && random_() % 2);
    if (gathers)
      rank_.write_frame(frame, random_() % 4 ? ERAR_ALL_GATHER : ERAR_REPAIR, links + kRanks,
                        segment, number);
    else
      rank_.write_frame(frame, random_() % 4 ? ERAR_REDUCE_SCATTER : ERAR_REQUEST, links, segment,
                        number);
  }

  void take_all(unsigned cpu, std::uint32_t number) {
    Share& mine = *shares_[cpu];
    bool open = is_open(number);
    for (Delivery& delivery : mine.late) {
      delivery.verdict = rank_.receive(cpu, delivery.frame);
      const bool open_after = is_open(number);
      mine.closed_amid |= open && !open_after;
      open = open_after;
    }
    for (Delivery& delivery : mine.early) delivery.verdict = rank_.receive(cpu, delivery.frame);
  }

  [[nodiscard]] bool is_open(std::uint32_t number) const {
    return __atomic_load_n(&rank_.slot(number).phase, __ATOMIC_SEQ_CST) ==
           erar_phase_of(number, ERAR_SLOT_OPEN);
  }

  std::string fault_of_shares(std::uint32_t number) {
    for (std::uint32_t segment = 0; segment < HammeredRank::kSegments; segment++)
      if (std::string fault = rank_.fault_of_share(segment, number); !fault.empty()) return fault;
    return {};
  }

  void kick_all(std::uint32_t number) {
    for (std::uint32_t i = 0; i < frames_due_; i++) {
      ASSERT_EQ(rank_.kick(0, number, spare_), Verdict::kForward);
      judge_frame(spare_, number);
    }
  }

  void judge_frame(const HammerFrame& frame, std::uint32_t number) {
    ASSERT_EQ(rank_.fault_of(frame), "");
    ASSERT_EQ(ERAR_BE32(frame.header().operation), number);
    taken_[ERAR_BE32(frame.header().segment)]++;
  }

  void judge(const Share& share, std::uint32_t number, std::uint32_t next) {
    closed_amid_ += share.closed_amid;
    for (const Delivery& delivery : share.late) {
      if (delivery.verdict != Verdict::kForward) continue;
      ASSERT_EQ(rank_.fault_of(delivery.frame), "");
      ASSERT_EQ(ERAR_BE32(delivery.frame.header().operation), number);
    }
    for (const Delivery& delivery : share.early)
      if (delivery.verdict == Verdict::kForward) judge_frame(delivery.frame, next);
    early_ += share.early.size();
  }

  // The early frames and the first of this rank's own block; what k left behind is nothing to k+8.
  void expect_taken_once(std::uint32_t number) {
    std::uint32_t turned = 0;
    for (std::uint32_t segment = 0; segment < HammeredRank::kSegments; segment++) {
      const bool is_taken = segment % HammeredRank::kPerBlock < HammeredRank::kWindow;
      ASSERT_EQ(taken_[segment], is_taken ? 1U : 0U) << "segment " << segment;
      const bool turns = is_taken && HammeredRank::links_to(segment) == kRanks - 1;
      turned += turns;
      ASSERT_EQ(turns ? rank_.fault_of_sum(segment, number) : rank_.fault_of_share(segment, number),
                "");
      ASSERT_EQ(rank_.state_of(segment, number), turns ? ERAR_FINAL : ERAR_OWN);
    }
    ASSERT_EQ(rank_.slot(number).finals, turned);
    ASSERT_EQ(rank_.slot(number).done, 0U);
    ASSERT_EQ(rank_.counted(ERAR_DROP_CHECKSUM), 0U);
    ASSERT_EQ(rank_.counted(ERAR_DROP_INTERNAL), 0U);
    parked_ += rank_.counted(ERAR_COUNT_PARKED);
    stale_ += rank_.counted(ERAR_DROP_STALE);
  }

  std::mt19937_64 random_;
  std::vector<std::unique_ptr<Share>> shares_;
  HammerFrame spare_;
  std::uint32_t frames_due_ = 0;
  std::array<unsigned, HammeredRank::kSegments> taken_{};
};

TEST_P(Closing, LeavesTheMemoryToTheNextOperation) {
  std::uint64_t rounds = 0;
  for (const Stint stint(kLength); stint.goes_on(); rounds++) {
    SCOPED_TRACE(rounds);
    turn_over(static_cast<std::uint32_t>(ERAR_FIRST_OPERATION + rounds * ERAR_SLOTS));
    if (HasFatalFailure()) return;
  }
  std::cout << rounds << " rounds, " << closed_amid_ << " times closed amid a step, " << stale_
            << " late frames refused, " << parked_ << " of " << early_ << " early ones parked\n";
  if (!crew_.has_cpu_each()) return;
  EXPECT_GT(closed_amid_, 0U);
  EXPECT_GT(parked_, 0U);
  EXPECT_LT(parked_, early_);
}

std::string name_of(const testing::TestParamInfo<Case>& tested) { return tested.param.name; }

INSTANTIATE_TEST_SUITE_P(Operations, Closing,
                         testing::Values(Case{"complete_on_2", 2, true},
                                         Case{"complete_on_4", 4, true},
                                         Case{"under_way_on_2", 2, false},
                                         Case{"under_way_on_4", 4, false}),
                         name_of);

}  // namespace
}  // namespace erar::tests
