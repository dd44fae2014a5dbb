// RingSender: sends a plan's stream to the successor, as far as it is ready.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/result.h"
#include "core/unique_fd.h"
#include "emu/baseline/ring_plan.h"

namespace erar {

class RingSender {
 public:
  // `socket` outlives the sender; `peer` names the successor in errors.
  RingSender(const UniqueFd& socket, std::string peer);

  // zero_copy: the plan's buffers stay as they are until the successor has received them.
  void start(const RingPlan& plan, const OperationHeader& header, bool zero_copy);

  // So many bytes of what was received are final here and may be passed on.
  void set_received(std::size_t bytes);

  // One call into the kernel. False if the socket takes nothing now.
  Result<bool> try_send();

  [[nodiscard]] bool done() const { return sent_ == total_; }
  [[nodiscard]] bool pending() const { return ready_ > sent_; }
  [[nodiscard]] bool can_send() const { return pending() && !blocked_; }
  void unblock() { blocked_ = false; }

  [[nodiscard]] std::uint64_t bytes_sent() const { return bytes_sent_; }
  [[nodiscard]] std::uint64_t calls() const { return calls_; }

 private:
  static constexpr std::size_t kMaxParts = 8;

  std::size_t collect(std::array<iovec, kMaxParts>& parts) const;
  void take(std::size_t bytes);
  Result<bool> try_copy();
  Result<bool> try_splice();
  void fill_pipe();
  bool open_pipe();

  const UniqueFd& socket_;
  std::string peer_;
  UniqueFd pipe_in_;
  UniqueFd pipe_out_;
  bool pipe_refused_ = false;

  const RingPlan* plan_ = nullptr;
  OperationHeader header_;
  // Positions in the stream, whose first bytes are the header. taken_ runs ahead of sent_ by what
  // is in the pipe.
  std::size_t total_ = 0;
  std::size_t ready_ = 0;
  std::size_t taken_ = 0;
  std::size_t sent_ = 0;
  SegmentCursor at_;  // of taken_
  bool zero_copy_ = false;
  bool blocked_ = false;

  std::uint64_t bytes_sent_ = 0;
  std::uint64_t calls_ = 0;
};

// While one lives, writing to a closed connection by splice(), which has no MSG_NOSIGNAL, is an
// error and no SIGPIPE.
class SigpipeGuard {
 public:
  SigpipeGuard();
  ~SigpipeGuard();
  SigpipeGuard(const SigpipeGuard&) = delete;
  SigpipeGuard& operator=(const SigpipeGuard&) = delete;

 private:
  bool was_blocked_ = false;
  bool was_pending_ = false;
};

}  // namespace erar
