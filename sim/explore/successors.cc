// SPDX-License-Identifier: BSD-2-Clause
// Successors: deliveries, faults, processes and timers, one at a time.
//
// A step is one action: nothing else happens on its rank meanwhile, but in scenarios with two CPUs,
// where another step may run at any of its calls of hooks (list_races()).
//
// Timers: RingWatch says what a rank would send again if all were overdue. Such a frame is free
// when no frame about the segment is under way on any link; that is when only a resend can help.
// One that comes earlier is a fault with a budget, for each adds a frame, and without a budget
// there were no end of states. Rings that are alike but for who is rank 0 are visited once, where
// the scenario says that this is so.
#include "sim/explore/successors.h"

#include <utility>

namespace erar::sim {

Successors::Successors(const Scenario& scenario) : scenario_(scenario) {
  ranks_.reserve(scenario.ranks);
  for (unsigned rank = 0; rank < scenario.ranks; rank++)
    ranks_.push_back(std::make_unique<RankModel>(scenario, rank));
}

RingState Successors::initial() const {
  RingState state;
  state.losses = static_cast<std::uint8_t>(scenario_.losses);
  state.duplicates = static_cast<std::uint8_t>(scenario_.duplicates);
  state.early_resends = static_cast<std::uint8_t>(scenario_.early_resends);
  return state;
}

void Successors::finish(unsigned rank, Successor& successor) {
  if (successor.error.empty()) successor.error = ranks_[rank]->save(successor.state.ranks[rank]);
  for (const RingFrame& frame : sent_) successor.state.add(frame);
  sent_.clear();
}

void Successors::list_frame(const RingState& from, const RingFrame& frame,
                            std::vector<Successor>& found) {
  const unsigned rank =
      erar_receiver(scenario_.block_of(frame.segment), frame.hop, scenario_.ranks);
  RankModel& model = *ranks_[rank];
  Successor& delivered =
      found.emplace_back(Successor{{ActionKind::kDeliver, rank, frame}, from, {}});
  delivered.state.remove(frame);
  model.load(from.ranks[rank]);
  delivered.error = model.deliver(frame, sent_);
  finish(rank, delivered);
  if (from.duplicates != 0) {
    Successor doubled = delivered;
    doubled.action.kind = ActionKind::kDuplicate;
    doubled.state.add(frame);
    doubled.state.duplicates--;
    found.push_back(std::move(doubled));
  }
  if (from.losses != 0) {
    Successor& lost = found.emplace_back(Successor{{ActionKind::kLose, rank, frame}, from, {}});
    lost.state.remove(frame);
    lost.state.losses--;
  }
}

void Successors::kick_all(unsigned rank, unsigned slot, unsigned kicks, Successor& successor) {
  for (unsigned i = 0; i < kicks && successor.error.empty(); i++)
    successor.error = ranks_[rank]->kick(slot, sent_);
}

void Successors::list_process(const RingState& from, unsigned rank, std::vector<Successor>& found) {
  const RankState& state = from.ranks[rank];
  RankModel& model = *ranks_[rank];
  for (unsigned slot = 0; slot < scenario_.slots(); slot++) {
    if (state.slots[slot].kicks_due == 0) continue;
    Successor& kicked = found.emplace_back(Successor{{ActionKind::kKick, rank, {}}, from, {}});
    model.load(state);
    kick_all(rank, slot, 1, kicked);
    finish(rank, kicked);
    return;  // the process does one thing after the other
  }
  const bool opens = state.opened < state.filled;
  if (!opens && (state.filled == scenario_.operations ||
                 (state.filled != 0 && !is_complete(scenario_, state, state.filled - 1U))))
    return;
  Successor& begun = found.emplace_back(
      Successor{{opens ? ActionKind::kOpen : ActionKind::kFill, rank, {}}, from, {}});
  model.load(state);
  if (!opens) model.fill();
  // Fresh memory is nothing that a frame could meet, so filling it is no action of its own.
  if (opens || state.filled < scenario_.areas) {
    begun.action.kind = ActionKind::kOpen;
    model.open();
    finish(rank, begun);
    const unsigned slot = slot_of(scenario_, state.opened);
    if (!scenario_.split_kicks && begun.error.empty()) {
      kick_all(rank, slot, begun.state.ranks[rank].slots[slot].kicks_due, begun);
      finish(rank, begun);
    }
    return;
  }
  finish(rank, begun);
}

void Successors::list_resends(const RingState& from, unsigned rank, std::vector<Successor>& found) {
  std::vector<RingFrame> resends;
  ranks_[rank]->load(from.ranks[rank]);
  const std::string error = ranks_[rank]->list_resends(resends);
  for (const RingFrame& frame : resends) {
    const bool early = from.is_under_way(frame.operation, frame.segment);
    if (early && from.early_resends == 0) continue;
    const ActionKind kind = early ? ActionKind::kEarlyResend : ActionKind::kResend;
    Successor& resent = found.emplace_back(Successor{{kind, rank, frame}, from, error});
    resent.state.add(frame);
    if (early) resent.state.early_resends--;
  }
}

void Successors::race(const RingState& from, const Action& action, std::vector<Successor>& found) {
  RankModel& model = *ranks_[action.rank];
  const bool is_resend = action.kind == ActionKind::kResendAndStep;
  const bool opens = action.kind == ActionKind::kStepAndOpen;
  for (unsigned point = 0;; point++) {
    Successor next{action, from, {}};
    next.action.point = point;
    model.load(from.ranks[action.rank]);
    if (opens && from.ranks[action.rank].filled == from.ranks[action.rank].opened) model.fill();
    const bool happened = model.deliver_amid(action.frame, is_resend, point,
                                             opens ? nullptr : &action.amid, sent_, next.error);
    if (!happened) return;
    if (!is_resend) next.state.remove(action.frame);
    if (!opens) next.state.remove(action.amid);
    finish(action.rank, next);
    found.push_back(std::move(next));
  }
}

void Successors::list_races(const RingState& from, unsigned rank, std::vector<Successor>& found) {
  std::vector<RingFrame> here;
  for (const RingFrame& frame : from.frames)
    if (erar_receiver(scenario_.block_of(frame.segment), frame.hop, scenario_.ranks) == rank)
      here.push_back(frame);
  for (std::size_t i = 0; i < here.size(); i++)
    for (std::size_t j = 0; j < here.size(); j++)
      if (i != j && (j == 0 || j - 1 == i || here[j] != here[j - 1]))
        race(from, {ActionKind::kTwoSteps, rank, here[i], here[j], 0}, found);
  // Only where opening is all that there is to do: memory is closed while nobody is in a step
  // there.
  const RankState& state = from.ranks[rank];
  const bool can_open = state.opened < state.filled ||
                        (state.filled < scenario_.operations && state.filled < scenario_.areas &&
                         (state.filled == 0 || is_complete(scenario_, state, state.filled - 1U)));
  bool kicks = false;
  for (unsigned slot = 0; slot < scenario_.slots(); slot++)
    kicks = kicks || state.slots[slot].kicks_due != 0;
  for (std::size_t i = 0; can_open && !kicks && i < here.size(); i++)
    race(from, {ActionKind::kStepAndOpen, rank, here[i], {}, 0}, found);
  std::vector<RingFrame> resends;
  ranks_[rank]->load(state);
  (void)ranks_[rank]->list_resends(resends);
  for (const RingFrame& resend : resends) {
    if (from.early_resends == 0 && from.is_under_way(resend.operation, resend.segment)) continue;
    const std::size_t before = found.size();
    for (const RingFrame& frame : here)
      race(from, {ActionKind::kResendAndStep, rank, resend, frame, 0}, found);
    for (std::size_t i = before; i < found.size(); i++)
      if (from.is_under_way(resend.operation, resend.segment)) found[i].state.early_resends--;
  }
}

void Successors::list(const RingState& from, std::vector<Successor>& found) {
  found.clear();
  for (std::size_t i = 0; i < from.frames.size(); i++)
    if (i == 0 || from.frames[i] != from.frames[i - 1]) list_frame(from, from.frames[i], found);
  for (unsigned rank = 0; rank < scenario_.ranks; rank++) {
    list_process(from, rank, found);
    list_resends(from, rank, found);
    if (scenario_.two_cpus) list_races(from, rank, found);
  }
}

namespace {

std::string text_of(const Scenario& scenario, const RingFrame& frame) {
  static constexpr const char* kTypes[] = {"?",       "kick",   "reduce-scatter", "all-gather",
                                           "request", "repair", "alive",          "?"};
  return std::string(kTypes[frame.type & 7]) + " of operation " + std::to_string(frame.operation) +
         " segment " + std::to_string(frame.segment) + " (block " +
         std::to_string(scenario.block_of(frame.segment)) + ") hop " + std::to_string(frame.hop) +
         (frame.wrong ? " with a WRONG payload" : "");
}

}  // namespace

std::string text_of(const Scenario& scenario, const Action& action) {
  const std::string rank = "rank " + std::to_string(action.rank);
  const std::string what = text_of(scenario, action.frame);
  const std::string amid = "; amid that, at point " + std::to_string(action.point) + ", ";
  switch (action.kind) {
    case ActionKind::kDeliver:
      return rank + " receives " + what;
    case ActionKind::kLose:
      return "the link to " + rank + " loses " + what;
    case ActionKind::kDuplicate:
      return rank + " receives a copy of " + what;
    case ActionKind::kFill:
      return rank + " takes memory for its next operation";
    case ActionKind::kOpen:
      return rank + " opens its next operation";
    case ActionKind::kKick:
      return rank + " injects a kick";
    case ActionKind::kResend:
      return rank + " sends again " + what;
    case ActionKind::kTwoSteps:
      return rank + " receives " + what + amid + text_of(scenario, action.amid);
    case ActionKind::kStepAndOpen:
      return rank + " receives " + what + amid + "it opens its next operation";
    case ActionKind::kResendAndStep:
      return rank + " sends again " + what + amid + "it receives " + text_of(scenario, action.amid);
    case ActionKind::kEarlyResend:
      return rank + " sends too early " + what;
  }
  return {};
}

}  // namespace erar::sim
