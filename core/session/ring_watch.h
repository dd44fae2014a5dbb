// RingWatch: what a rank's process does while it waits: has lost segments sent again, shows that it
// is there, and gives up when nothing moves.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/result.h"
#include "core/session/native_step.h"
#include "core/session/resend_timer.h"
#include "core/session/roll_call.h"

namespace erar {

// Knows no clock and sends nothing itself: its user says what time it is and takes the frames, so
// that a simulation can drive it as a device does. Times are of one clock, and not 0.
class RingWatch {
 public:
  // A frame for the successor; valid during the call. Whether it arrives is of no consequence.
  using Send = std::function<void(std::span<const std::uint8_t> frame)>;

  // timeout_ns: what users wait at most without progress, the device's default.
  RingWatch(NativeMemory& memory, std::uint64_t timeout_ns);

  // To be told of every operation that is opened.
  void opened(std::uint32_t operation, std::uint64_t now_ns);
  // The process begins to wait.
  void begin(std::uint64_t now_ns) { progress_ns_ = now_ns; }
  // It ends waiting, because something is done.
  void end(std::uint64_t now_ns) { retire_done(now_ns); }
  // One look at all operations under way. Error: none of `waited` made progress for patience_ns.
  Result<void> look(std::span<const std::uint32_t> waited, std::uint64_t now_ns,
                    std::uint64_t patience_ns, const Send& send);
  // How long after a look the next is due.
  [[nodiscard]] std::uint64_t interval_ns() const { return timer_.overdue_ns(0) / 2; }

 private:
  // A segment that may be under way and whose sum is not here.
  struct Missing {
    std::uint32_t segment = 0;
    std::uint32_t block = 0;
    std::uint64_t due_ns = 0;  // when it counts as lost
    unsigned tries = 0;
    bool passed = false;  // a later segment of the block is here
  };
  // Of a block, what is known about it.
  struct Block {
    std::uint32_t first_missing = 0;  // what is before it is final
    std::uint32_t asked_at = 0;       // first_missing when segments were asked for last
    std::uint32_t allowance = 0;      // how many may be asked for without a sign that they exist
  };
  struct Watched {
    std::uint32_t number = 0;
    bool active = false;
    bool lost = false;  // something was overdue
    std::uint64_t opened_ns = 0;
    std::vector<Block> blocks;
    std::vector<Missing> missing;  // by segment
  };
  [[nodiscard]] erar_operation& slot(std::uint32_t operation) const {
    return memory_.operations[operation % ERAR_SLOTS];
  }
  void retire_done(std::uint64_t now_ns);
  void list_missing(Watched& watched, std::uint64_t now_ns);
  void list_block(Watched& watched, std::uint32_t block, std::uint64_t now_ns,
                  std::vector<Missing>& found);
  void list_overdue(Watched& watched, std::uint64_t now_ns);
  std::uint64_t due_after(unsigned tries);
  void resend(Watched& watched, std::uint64_t now_ns, unsigned& budget, const Send& send);
  [[nodiscard]] std::uint64_t stored(std::span<const std::uint32_t> operations) const;
  [[nodiscard]] Error gave_up(std::span<const std::uint32_t> waited, std::uint64_t now_ns,
                              std::uint64_t patience_ns) const;

  NativeMemory& memory_;
  ResendTimer timer_;
  RollCall roll_call_;
  std::array<Watched, ERAR_SLOTS> watched_;
  std::vector<Missing> scratch_;
  std::vector<Missing*> overdue_;
  std::vector<std::uint64_t> frame_words_;  // a whole segment's frame
  std::uint64_t jitter_ = 0;
  std::uint64_t progress_ns_ = 0;
  std::uint64_t stored_ = 0;
  std::uint64_t shown_ns_ = 0;
};

}  // namespace erar
