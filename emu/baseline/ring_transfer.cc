// The loop of the TCP ring: send what is ready, receive and reduce, wait only when neither moves.
#include "emu/baseline/ring_transfer.h"

#include <poll.h>
#include <sched.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "core/clock.h"

namespace erar {
namespace {

// From here on data leaves by reference and receipts are exchanged. Below, the receipts cost more
// than the copy. All ranks decide alike: the count is in the header.
constexpr std::size_t kZeroCopyBytes = 2'000'000;

// Waiting begins with giving the CPU away and looking again: a sleep ends only with a wake-up,
// often of an idle virtual CPU, which takes longer than a hop.
constexpr std::uint64_t kYieldNs = 300'000;

std::string rank_name(unsigned rank) { return "rank " + std::to_string(rank); }

}  // namespace

RingTransfer::RingTransfer(RingLink link, unsigned rank, unsigned ranks, std::uint64_t timeout_ns)
    : link_(std::move(link)),
      before_(rank_name((rank + ranks - 1) % ranks)),
      after_(rank_name((rank + 1) % ranks)),
      timeout_ns_(timeout_ns),
      sender_(link_.next, after_),
      receiver_(link_.prev, before_) {}

Result<void> RingTransfer::run(const RingPlan& plan, const OperationHeader& header,
                               const Reducer& reducer) {
  if (failure_) return *failure_;
  const bool zero_copy = header.count * size_of(reducer.type) >= kZeroCopyBytes;
  std::optional<SigpipeGuard> guard;
  if (zero_copy) guard.emplace();
  sender_.start(plan, header, zero_copy);
  receiver_.start(plan, header, reducer);
  given_ = taken_ = zero_copy ? Receipt::kDue : Receipt::kNone;
  auto moved = move_all();
  if (!moved) {
    failure_ = explain(moved.error());
    ::shutdown(link_.prev.get(), SHUT_RDWR);
    ::shutdown(link_.next.get(), SHUT_RDWR);
    return *failure_;
  }
  return {};
}

// What a failed connection hides. The successor may have hung up because of a mismatch that the
// predecessor's header, not read yet, explains. And when a rank dies, those that notice hang up on
// the next, so on round the ring: who comes late finds both neighbours gone and names both, as it
// cannot tell which went first.
Error RingTransfer::explain(Error error) {
  if (error.code == EPROTO || error.code == ETIMEDOUT) return error;
  if (!receiver_.done()) {
    if (auto last = receiver_.try_receive(); !last && last.error().code == EPROTO) {
      return last.error();
    }
  }
  pollfd gone[2] = {{link_.prev.get(), POLLRDHUP, 0}, {link_.next.get(), POLLRDHUP, 0}};
  if (before_ == after_ || ::poll(gone, 2, 0) < 2) return error;
  const std::string& other = error.object.starts_with(before_) ? after_ : before_;
  error.object += " (" + other + " has hung up as well)";
  return error;
}

bool RingTransfer::done() const {
  return sender_.done() && receiver_.done() && given_ != Receipt::kDue && taken_ != Receipt::kDue;
}

Result<void> RingTransfer::move_all() {
  std::uint64_t idle_since_ns = 0;  // 0: not idle
  while (!done()) {
    auto moved = move_some();
    if (!moved) return moved.error();
    if (*moved) {
      idle_since_ns = 0;
      continue;
    }
    const std::uint64_t now_ns = monotonic_ns();
    if (idle_since_ns == 0) idle_since_ns = now_ns;
    // With a full socket only poll() knows when there is room worth a call.
    if (!sender_.pending() && now_ns - idle_since_ns < kYieldNs) {
      ::sched_yield();
    } else if (auto waited = wait(idle_since_ns); !waited) {
      return waited;
    }
  }
  return {};
}

Result<bool> RingTransfer::move_some() {
  bool moved = false;
  const auto note = [&moved](const Result<bool>& step) {
    if (step && *step) moved = true;
    return static_cast<bool>(step);
  };
  if (sender_.can_send()) {
    if (auto sent = sender_.try_send(); !note(sent)) return sent;
  }
  if (!receiver_.done()) {
    if (auto received = receiver_.try_receive(); !note(received)) return received;
    sender_.set_received(receiver_.usable());
  } else if (given_ == Receipt::kDue) {
    if (auto given = give_receipt(); !note(given)) return given;
  }
  if (sender_.done() && taken_ == Receipt::kDue) {
    if (auto taken = take_receipt(); !note(taken)) return taken;
  }
  return moved;
}

// One byte against the stream's direction, where nothing else is under way, so that there is room.
Result<bool> RingTransfer::give_receipt() {
  const char receipt = 1;
  if (::send(link_.prev.get(), &receipt, 1, MSG_NOSIGNAL) != 1) {
    return errno_error("send a receipt to", before_);
  }
  given_ = Receipt::kDone;
  return true;
}

Result<bool> RingTransfer::take_receipt() {
  char receipt = 0;
  const ssize_t got = ::recv(link_.next.get(), &receipt, 1, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (got < 0) return errno_error("receive a receipt from", after_);
  if (got == 0) {
    return Error{ECONNRESET, "receive a receipt from", after_ + ", which closed the connection"};
  }
  taken_ = Receipt::kDone;
  return true;
}

// The successor is watched for hanging up also while there is nothing to send, but no longer than
// something will be: a successor that is done may leave.
Result<void> RingTransfer::wait(std::uint64_t idle_since_ns) {
  const std::uint64_t idle_ns = monotonic_ns() - idle_since_ns;
  if (idle_ns >= timeout_ns_) return stalled();
  pollfd waiting[2] = {{link_.prev.get(), POLLIN, 0}, {link_.next.get(), POLLRDHUP, 0}};
  if (receiver_.done()) waiting[0].fd = -1;
  if (sender_.pending()) waiting[1].events |= POLLOUT;
  if (sender_.done()) {
    waiting[1].events = POLLIN;
    if (taken_ != Receipt::kDue) waiting[1].fd = -1;
  }
  ++poll_calls_;
  const std::uint64_t left_ms = (timeout_ns_ - idle_ns) / 1'000'000 + 1;
  if (::poll(waiting, 2, static_cast<int>(std::min<std::uint64_t>(left_ms, 60'000))) < 0) {
    if (errno != EINTR) return errno_error("poll");
    return {};
  }
  if (!sender_.done() && (waiting[1].revents & (POLLERR | POLLHUP | POLLRDHUP)) != 0) {
    return Error{ECONNRESET, "send to", after_ + ", which closed the connection"};
  }
  if ((waiting[1].revents & POLLOUT) != 0) sender_.unblock();
  return {};
}

// A successor whose socket is full does not read, whatever the others do. Otherwise what is missing
// comes from the predecessor, who may itself be waiting for somebody further up.
Error RingTransfer::stalled() const {
  const std::string limit = "for " + std::to_string(timeout_ns_ / 1'000'000) + " ms";
  if (sender_.pending()) return Error{ETIMEDOUT, after_ + " takes no data", limit};
  if (!receiver_.done()) return Error{ETIMEDOUT, before_ + " sends no data", limit};
  return Error{ETIMEDOUT, after_ + " gives no receipt", limit};
}

}  // namespace erar
