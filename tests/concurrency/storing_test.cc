// Frames about the same segment of one operation on several CPUs of a rank at once: its sum is
// stored once, and what leaves holds a whole share, a whole sum, or nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <iostream>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "core/session/operation_slot.h"
#include "tests/concurrency/crew.h"
#include "tests/concurrency/hammered_rank.h"

namespace erar::tests {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kLength = std::chrono::milliseconds(150);  // of each pair of frames

enum class Kind { kReduce, kGather, kRequest, kRepair, kResend };

// What even and odd members deliver at once. kResend: what a process sends for an overdue segment.
struct Meeting {
  const char* name;
  Kind even;
  Kind odd;
  unsigned cpus;
  bool meets_storing;  // a frame is dropped while another is being stored, often enough to expect
};

void PrintTo(const Meeting& meeting, std::ostream* out) { *out << meeting.name; }

// A frame of that kind can be about this segment, at this rank.
bool can_be(Kind kind, std::uint32_t links) {
  constexpr std::uint32_t kTurn = HammeredRank::kRanks - 1;
  switch (kind) {
    case Kind::kReduce:
    case Kind::kRequest:
      return links >= 1;
    case Kind::kGather:
    case Kind::kRepair:
    case Kind::kResend:
      return links < kTurn;
  }
  return false;
}

// One member's steps in a round, segment by segment.
struct Step {
  HammerFrame frame;
  Verdict verdict = Verdict::kDrop;
  bool taken = false;
  bool met_storing = false;
  Clock::time_point begun, ended;
};

class Storing : public testing::TestWithParam<Meeting> {
 protected:
  Storing() : rank_(GetParam().cpus), crew_(GetParam().cpus) {
    for (unsigned cpu = 0; cpu < GetParam().cpus; cpu++)
      steps_.push_back(std::make_unique<Steps>());
  }

  // The whole of one operation.
  void run(std::uint32_t operation) {
    close_operation(rank_.on_cpu(0), operation - 1);
    rank_.reset_counts();
    rank_.fill(operation);
    own_started_.fill(0);
    const std::uint32_t kicks = open_operation(rank_.on_cpu(0), HammeredRank::start_of(operation));
    for (std::uint32_t i = 0; i < kicks; i++) {
      const Verdict verdict = rank_.kick(0, operation, spare_);
      judge(spare_, verdict, false);
    }
    // Blocks whose frames end here come first, since they start this rank's own segments.
    for (const std::uint32_t links : {2U, 3U, 1U, 0U}) meet(operation, links);
    expect_complete(operation);
  }

  std::uint64_t overlaps_ = 0;
  std::uint64_t met_storing_ = 0;
  std::uint64_t answered_ = 0;
  HammeredRank rank_;
  Crew crew_;

 private:
  using Steps = std::array<Step, HammeredRank::kSegments>;

  static Kind kind_on(unsigned cpu) { return cpu % 2 == 0 ? GetParam().even : GetParam().odd; }

  void meet(std::uint32_t operation, std::uint32_t links) {
    const Meeting& meeting = GetParam();
    const std::uint32_t block = (HammeredRank::kRanks - links) % HammeredRank::kRanks;
    const std::uint32_t begin = block * HammeredRank::kPerBlock;
    const std::uint32_t end = begin + HammeredRank::kPerBlock;
    if (can_be(meeting.even, links) && can_be(meeting.odd, links)) {
      for (std::uint32_t segment = begin; segment < end; segment++)
        for (unsigned cpu = 0; cpu < meeting.cpus; cpu++)
          prepare(kind_on(cpu), segment, operation, (*steps_[cpu])[segment].frame);
      // Members that share a CPU meet where one is preempted: they go through the block as they
      // like.
      const std::uint32_t stride = crew_.has_cpu_each() ? 1 : HammeredRank::kPerBlock;
      for (std::uint32_t first = begin; first < end; first += stride) {
        crew_.at_once([&](unsigned cpu) {
          for (std::uint32_t i = 0; i < stride; i++) take(cpu, first + i, operation);
        });
      }
      for (std::uint32_t segment = begin; segment < end; segment++) look_back(segment);
    }
    for (std::uint32_t segment = begin; segment < end; segment++) {
      if (rank_.state_of(segment, operation) == ERAR_FINAL) continue;
      prepare(links == HammeredRank::kRanks - 1 ? Kind::kReduce : Kind::kGather, segment, operation,
              spare_);
      const Verdict verdict = rank_.receive(0, spare_);
      judge(spare_, verdict, false);
    }
  }

  void prepare(Kind kind, std::uint32_t segment, std::uint32_t operation, HammerFrame& frame) {
    const std::uint32_t links = HammeredRank::links_to(segment);
    constexpr std::uint32_t kRanks = HammeredRank::kRanks;
    switch (kind) {
      case Kind::kReduce:
        return rank_.write_frame(frame, ERAR_REDUCE_SCATTER, links, segment, operation);
      case Kind::kGather:
        return rank_.write_frame(frame, ERAR_ALL_GATHER, links + kRanks, segment, operation);
      case Kind::kRequest:
        return rank_.write_frame(frame, ERAR_REQUEST, links, segment, operation);
      case Kind::kRepair:
        return rank_.write_frame(frame, ERAR_REPAIR, links + kRanks, segment, operation);
      case Kind::kResend:
        return;  // the process makes it on the spot
    }
  }

  void take(unsigned cpu, std::uint32_t segment, std::uint32_t operation) {
    Step& mine = (*steps_[cpu])[segment];
    mine.begun = Clock::now();
    mine.verdict = kind_on(cpu) == Kind::kResend ? rank_.resend(cpu, operation, segment, mine.frame)
                                                 : rank_.receive(cpu, mine.frame);
    mine.met_storing = rank_.state_of(segment, operation) == ERAR_STORING;
    mine.ended = Clock::now();
  }

  void look_back(std::uint32_t segment) {
    auto last_begin = Clock::time_point::min();
    auto first_end = Clock::time_point::max();
    for (unsigned cpu = 0; cpu < GetParam().cpus; cpu++) {
      Step& step = (*steps_[cpu])[segment];
      judge(step.frame, step.verdict, kind_on(cpu) == Kind::kResend);
      met_storing_ += step.met_storing;
      last_begin = std::max(last_begin, step.begun);
      first_end = std::min(first_end, step.ended);
    }
    overlaps_ += last_begin < first_end;
  }

  void judge(const HammerFrame& frame, Verdict verdict, bool resent) {
    ASSERT_NE(verdict, Verdict::kPass);
    if (verdict != Verdict::kForward) return;
    ASSERT_EQ(rank_.fault_of(frame), "");
    const erar_frame& header = frame.header();
    const std::uint32_t segment = ERAR_BE32(header.segment);
    if (header.type == ERAR_REDUCE_SCATTER && HammeredRank::links_to(segment) == 0 && !resent)
      own_started_[segment]++;
  }

  void expect_complete(std::uint32_t operation) {
    const erar_operation& slot = rank_.slot(operation);
    ASSERT_EQ(rank_.counted(ERAR_COUNT_STORED), HammeredRank::kSegments);
    ASSERT_EQ(slot.finals, HammeredRank::kSegments);
    ASSERT_EQ(slot.done, 1U);
    ASSERT_EQ(rank_.completions(), 1U);
    ASSERT_EQ(rank_.counted(ERAR_DROP_CHECKSUM), 0U);
    ASSERT_EQ(rank_.counted(ERAR_DROP_INTERNAL), 0U);
    for (std::uint32_t segment = 0; segment < HammeredRank::kSegments; segment++) {
      ASSERT_EQ(rank_.fault_of_sum(segment, operation), "");
      // Each frame that ended here, and not its duplicate, started one.
      ASSERT_EQ(own_started_[segment], segment < HammeredRank::kPerBlock ? 1U : 0U) << segment;
    }
    answered_ += rank_.counted(ERAR_COUNT_ANSWERED);
  }

  std::vector<std::unique_ptr<Steps>> steps_;
  HammerFrame spare_;
  std::array<unsigned, HammeredRank::kSegments> own_started_{};
};

TEST_P(Storing, HappensOnceAndLeavesNoHalfFrames) {
  std::uint64_t operations = 0;
  for (const Stint stint(kLength); stint.goes_on(); operations++) {
    SCOPED_TRACE(operations);
    run(static_cast<std::uint32_t>(ERAR_FIRST_OPERATION + operations));
    if (HasFatalFailure()) return;
  }
  std::cout << operations << " operations, " << overlaps_ << " times all steps at once, "
            << met_storing_ << " met a sum being stored, " << answered_ << " answers\n";
  if (!crew_.has_cpu_each()) return;
  EXPECT_GT(overlaps_, 0U);
  if (GetParam().meets_storing) {
    EXPECT_GT(met_storing_, 0U);
  }
}

std::vector<Meeting> meetings() {
  std::vector<Meeting> all;
  for (const unsigned cpus : {2U, 4U}) {
    all.push_back({"all_gather_twice", Kind::kGather, Kind::kGather, cpus, true});
    all.push_back({"reduce_scatter_and_all_gather", Kind::kReduce, Kind::kGather, cpus, true});
    all.push_back({"reduce_scatter_twice", Kind::kReduce, Kind::kReduce, cpus, true});
    all.push_back({"request_and_all_gather", Kind::kRequest, Kind::kGather, cpus, false});
    all.push_back({"request_and_reduce_scatter", Kind::kRequest, Kind::kReduce, cpus, false});
    all.push_back({"repair_and_all_gather", Kind::kRepair, Kind::kGather, cpus, true});
    all.push_back({"resend_and_all_gather", Kind::kResend, Kind::kGather, cpus, true});
  }
  return all;
}

std::string name_of(const testing::TestParamInfo<Meeting>& tested) {
  return std::string(tested.param.name) + "_on_" + std::to_string(tested.param.cpus);
}

INSTANTIATE_TEST_SUITE_P(Meetings, Storing, testing::ValuesIn(meetings()), name_of);

}  // namespace
}  // namespace erar::tests
