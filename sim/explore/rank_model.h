// SPDX-License-Identifier: BSD-2-Clause
// RankModel: a rank in memory that can be put into any state, does one thing, and is read again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/explore/ring_state.h"
#include "sim/explore/scenario.h"
#include "sim/ring/memory_rank.h"

namespace erar::sim {

// Does nothing of the protocol itself: steps are native_step(), the process's part is
// open_operation(), close_operation() and RingWatch.
class RankModel {
 public:
  RankModel(const Scenario& scenario, unsigned rank);

  void load(const RankState& state);
  // Error: why this is no state that the protocol should come to.
  std::string save(RankState& state);

  // Frames that leave are appended to `sent`. Errors: a frame that no rank should send.
  std::string deliver(const RingFrame& frame, std::vector<RingFrame>& sent);
  // A delivery, or a resend, in the middle of which another frame is delivered, or the process
  // opens its next operation (no frame).
  bool deliver_amid(const RingFrame& outer, bool outer_is_resend, unsigned point,
                    const RingFrame* inner, std::vector<RingFrame>& sent, std::string& error);
  // The process takes memory for its next operation and writes its share there; opens it; injects
  // one of the kicks that are due.
  void fill();
  void open();
  std::string kick(unsigned slot, std::vector<RingFrame>& sent);
  // What RingWatch sends when everything that is missing is overdue.
  std::string list_resends(std::vector<RingFrame>& sent);

 private:
  [[nodiscard]] unsigned operation_of(std::uint32_t number) const;
  [[nodiscard]] std::uint64_t expected_word(const RingFrame& frame) const;
  [[nodiscard]] RingFrame early_frame(unsigned operation, unsigned place) const;
  void load_slot(const RankState& state, unsigned slot);
  void load_parked(const RankState& state, unsigned slot);
  void load_arena(const RankState& state);
  void save_slot(RankState& state, unsigned slot) const;
  std::string save_parked(RankState& state, unsigned slot);
  std::string save_arena(RankState& state);
  void write_frame(const RingFrame& frame);
  std::string take_frame(std::vector<RingFrame>& sent) const;

  Scenario scenario_;
  unsigned rank_;
  std::uint8_t filled_ = 0;
  std::uint8_t opened_ = 0;
  std::array<std::uint8_t, Scenario::kMaxOperations> kicks_due_{};
  MemoryRank memory_;
  Frame frame_;
  erar_mark other_mark_{};
};

}  // namespace erar::sim
