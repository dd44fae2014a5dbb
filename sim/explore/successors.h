// SPDX-License-Identifier: BSD-2-Clause
// Successors: everything that can happen next in a state of the ring.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/explore/rank_model.h"
#include "sim/explore/ring_state.h"
#include "sim/explore/scenario.h"

namespace erar::sim {

enum class ActionKind {
  kDeliver,
  kLose,           // takes one of the losses
  kDuplicate,      // delivered, and a copy stays under way; takes one of the duplicates
  kFill,           // a process takes memory for its next operation, ending what was there
  kOpen,           // and opens the operation
  kKick,           // and injects a kick
  kResend,         // of a segment that no frame is about any more
  kEarlyResend,    // of one that is still under way; takes one of the early resends
  kTwoSteps,       // a delivery, and another one amid
  kStepAndOpen,    // a delivery, and the process opens its next operation amid
  kResendAndStep,  // a resend that is free, and a delivery amid
};

struct Action {
  ActionKind kind = ActionKind::kDeliver;
  unsigned rank = 0;   // where it happens
  RingFrame frame;     // that is delivered, lost, or sent again
  RingFrame amid{};    // that is delivered while another CPU is in the step of `frame`
  unsigned point = 0;  // how far that step was

  [[nodiscard]] bool is_race() const {
    return kind == ActionKind::kTwoSteps || kind == ActionKind::kStepAndOpen ||
           kind == ActionKind::kResendAndStep;
  }
  // Links, processes and timers may do these at any time; an end must be reached without
  // the others.
  [[nodiscard]] bool is_fault() const {
    return kind == ActionKind::kLose || kind == ActionKind::kDuplicate ||
           kind == ActionKind::kEarlyResend || is_race();
  }
};

std::string text_of(const Scenario& scenario, const Action& action);

struct Successor {
  Action action;
  RingState state;
  std::string error;  // what is wrong with it, as far as one rank's memory and the frame tell
};

// Ranks start as if operations of numbers below ERAR_FIRST_OPERATION were long over.
class Successors {
 public:
  explicit Successors(const Scenario& scenario);
  [[nodiscard]] RingState initial() const;
  void list(const RingState& from, std::vector<Successor>& found);

 private:
  void list_frame(const RingState& from, const RingFrame& frame, std::vector<Successor>& found);
  void list_process(const RingState& from, unsigned rank, std::vector<Successor>& found);
  void list_resends(const RingState& from, unsigned rank, std::vector<Successor>& found);
  void list_races(const RingState& from, unsigned rank, std::vector<Successor>& found);
  void race(const RingState& from, const Action& action, std::vector<Successor>& found);
  void kick_all(unsigned rank, unsigned slot, unsigned kicks, Successor& successor);
  // Reads the rank again and puts what it sent on its link.
  void finish(unsigned rank, Successor& successor);

  Scenario scenario_;
  std::vector<std::unique_ptr<RankModel>> ranks_;
  std::vector<RingFrame> sent_;
};

}  // namespace erar::sim
