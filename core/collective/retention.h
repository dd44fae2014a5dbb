// Retention: which memory and slots may serve another operation, since no rank needs the sums any
// more.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/protocol/operation.h"
#include "core/session/ring_device.h"

namespace erar {

// A rank that has an operation's sums may have to send them again to one that lost a frame, so it
// keeps them until every rank is known to have them. Turns tell: operations of which each rank
// opens one only when it has completed the one before. Where a turn is done, every rank has opened
// it; so the turn before is complete everywhere, with all that was opened before that.
class Retention {
 public:
  // One more than a pipeline has in work: the last that left it is complete here, but perhaps not
  // on another rank.
  static constexpr unsigned kAreas = 4;

  explicit Retention(RingDevice& device) : device_(device) {}

  // The first area that nobody needs; the operations that it served are closed.
  unsigned take_area();
  // An operation will use the area.
  void serve(unsigned area, std::uint32_t operation);
  // The area's last operation is the turn that begins now.
  void begin_turn(unsigned area) { uses_[area].turn = ++begun_; }
  // A turn in memory of its own.
  void begin_turn() { ++begun_; }
  // The turn that was begun last is complete here.
  void end_turn() { ended_ = begun_; }
  // The area served that turn, and its sums have been read.
  void end_with_turn(unsigned area) {
    uses_[area].turn = ended_;
    release(area);
  }
  // Its sums have been read.
  void release(unsigned area) { uses_[area].in_work = false; }

  // Of a call's opening, and of a small operation that is a turn of its own, there are two memories
  // in turns: while one is under way, all ranks are done with what the other served before.
  unsigned take_opening(std::uint32_t operation) { return take_other(opening_, operation); }
  unsigned take_exchange(std::uint32_t operation) { return take_other(exchange_, operation); }

  // Every rank has completed all operations before this one.
  void settle(std::uint32_t operation) { settled_ = operation; }
  // Whether no rank needs what is in the operation's slot.
  [[nodiscard]] bool may_open(std::uint32_t operation) const {
    return static_cast<std::int32_t>(operation - ERAR_SLOTS - settled_) < 0;
  }

  // All ranks have met and are done with everything.
  void forget_all();

 private:
  struct Use {
    bool in_work = false;
    std::uint64_t turn = 0;
    std::vector<std::uint32_t> operations;
  };
  struct Pair {
    unsigned next = 0;
    std::array<std::uint32_t, 2> operations{};
  };
  unsigned take_other(Pair& pair, std::uint32_t operation);

  RingDevice& device_;
  Pair opening_;
  Pair exchange_;
  std::array<Use, kAreas> uses_;
  std::uint64_t begun_ = 0;
  std::uint64_t ended_ = 0;
  std::uint32_t settled_ = ERAR_FIRST_OPERATION;
};

}  // namespace erar
