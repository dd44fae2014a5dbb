// RingTransfer: one allreduce after the other over a RingLink; the loop around sender and receiver.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "core/result.h"
#include "emu/baseline/reduce_kernel.h"
#include "emu/baseline/ring_link.h"
#include "emu/baseline/ring_plan.h"
#include "emu/baseline/ring_receiver.h"
#include "emu/baseline/ring_sender.h"

namespace erar {

// After an error the link is shut down, so that the neighbours fail as well instead of waiting, and
// every further run() reports that first error again.
class RingTransfer {
 public:
  RingTransfer(RingLink link, unsigned rank, unsigned ranks, std::uint64_t timeout_ns);
  RingTransfer(const RingTransfer&) = delete;
  RingTransfer& operator=(const RingTransfer&) = delete;
  ~RingTransfer() = default;

  // The plan's buffers are the caller's again when this returns.
  Result<void> run(const RingPlan& plan, const OperationHeader& header, const Reducer& reducer);

  [[nodiscard]] const RingSender& sender() const { return sender_; }
  [[nodiscard]] const RingReceiver& receiver() const { return receiver_; }
  [[nodiscard]] std::uint64_t poll_calls() const { return poll_calls_; }

 private:
  // Of large operations: the predecessor must know when its pages are no longer needed.
  enum class Receipt { kNone, kDue, kDone };

  Result<void> move_all();
  Result<bool> move_some();
  Result<bool> give_receipt();
  Result<bool> take_receipt();
  Result<void> wait(std::uint64_t idle_since_ns);
  [[nodiscard]] Error stalled() const;
  [[nodiscard]] Error explain(Error error);
  [[nodiscard]] bool done() const;

  RingLink link_;
  std::string before_;  // the neighbours' names
  std::string after_;
  std::uint64_t timeout_ns_;
  RingSender sender_;
  RingReceiver receiver_;
  Receipt given_ = Receipt::kNone;
  Receipt taken_ = Receipt::kNone;
  std::optional<Error> failure_;
  std::uint64_t poll_calls_ = 0;
};

}  // namespace erar
