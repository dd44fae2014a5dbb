// Sending to the successor: sendmsg for small operations, page references through a pipe for large
// ones.
#include "emu/baseline/ring_sender.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <utility>

namespace erar {
namespace {

constexpr std::size_t kHeaderBytes = sizeof(OperationHeader);
constexpr std::size_t kSendBytes = 1 << 20;
constexpr int kPipeBytes = 1 << 20;
// The pipe is refilled when it holds less than this: a call into the kernel for a few pages only
// costs more than it moves.
constexpr std::size_t kPipeLowBytes = 64 << 10;

bool would_block(int code) { return code == EAGAIN || code == EINTR; }

sigset_t sigpipe_set() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGPIPE);
  return set;
}

}  // namespace

RingSender::RingSender(const UniqueFd& socket, std::string peer)
    : socket_(socket), peer_(std::move(peer)) {}

void RingSender::start(const RingPlan& plan, const OperationHeader& header, bool zero_copy) {
  plan_ = &plan;
  header_ = header;
  total_ = kHeaderBytes + plan.send_bytes;
  ready_ = kHeaderBytes + plan.own_bytes;
  taken_ = sent_ = 0;
  at_ = {};
  at_.advance(plan.send, 0);
  zero_copy_ = zero_copy && open_pipe();
  blocked_ = false;
}

bool RingSender::open_pipe() {
  if (pipe_in_.valid() || pipe_refused_) return !pipe_refused_;
  int ends[2];
  if (::pipe2(ends, O_NONBLOCK | O_CLOEXEC) != 0) {
    pipe_refused_ = true;
    return false;
  }
  pipe_out_ = UniqueFd(ends[0]);
  pipe_in_ = UniqueFd(ends[1]);
  ::fcntl(pipe_in_.get(), F_SETPIPE_SZ, kPipeBytes);  // a smaller one works as well
  return true;
}

void RingSender::set_received(std::size_t bytes) {
  ready_ = std::min(kHeaderBytes + plan_->own_bytes + bytes, total_);
}

// What is ready and not taken yet, up to kSendBytes. With zero_copy_ the header goes alone, by
// copy: it is ours and does not outlive start().
std::size_t RingSender::collect(std::array<iovec, kMaxParts>& parts) const {
  std::size_t used = 0;
  std::size_t left = std::min(ready_ - taken_, kSendBytes);
  if (taken_ < kHeaderBytes) {
    const auto* header = reinterpret_cast<const char*>(&header_);
    parts[used++] = {const_cast<char*>(header) + taken_, kHeaderBytes - taken_};
    left -= kHeaderBytes - taken_;
    if (zero_copy_) return used;
  }
  for (SegmentCursor at = at_; left > 0 && used < kMaxParts; at = {at.segment + 1, 0}) {
    const auto segment = plan_->send[at.segment].subspan(at.offset);
    const std::size_t bytes = std::min(segment.size(), left);
    parts[used++] = {const_cast<std::byte*>(segment.data()), bytes};
    left -= bytes;
  }
  return used;
}

void RingSender::take(std::size_t bytes) {
  const std::size_t of_header = std::min(bytes, kHeaderBytes - std::min(kHeaderBytes, taken_));
  taken_ += bytes;
  at_.advance(plan_->send, bytes - of_header);
}

Result<bool> RingSender::try_send() {
  ++calls_;
  const bool by_pipe = taken_ != sent_ || (zero_copy_ && sent_ >= kHeaderBytes);
  return by_pipe ? try_splice() : try_copy();
}

Result<bool> RingSender::try_copy() {
  std::array<iovec, kMaxParts> parts;
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = collect(parts);
  const int more = zero_copy_ ? MSG_MORE : 0;  // the header waits for its data
  const ssize_t done = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | more);
  if (done < 0) {
    if (!would_block(errno)) return errno_error("send to", peer_);
    blocked_ = true;
    return false;
  }
  const auto bytes = static_cast<std::size_t>(done);
  take(bytes);
  sent_ = taken_;
  bytes_sent_ += bytes;
  return true;
}

// Gives the pipe references to the pages of what is ready. Memory that cannot be referenced (of a
// device, say) is copied from here on.
void RingSender::fill_pipe() {
  std::array<iovec, kMaxParts> parts;
  const std::size_t used = collect(parts);
  const ssize_t done = ::vmsplice(pipe_in_.get(), parts.data(), used, SPLICE_F_NONBLOCK);
  if (done > 0) take(static_cast<std::size_t>(done));
  if (done < 0 && !would_block(errno)) {
    zero_copy_ = false;
    pipe_refused_ = true;
  }
}

Result<bool> RingSender::try_splice() {
  if (zero_copy_ && taken_ - sent_ < kPipeLowBytes && ready_ > taken_) fill_pipe();
  if (taken_ == sent_) return zero_copy_ ? Result<bool>(false) : try_copy();
  const ssize_t done =
      ::splice(pipe_out_.get(), nullptr, socket_.get(), nullptr, taken_ - sent_, SPLICE_F_NONBLOCK);
  if (done < 0) {
    if (!would_block(errno)) return errno_error("send to", peer_);
    blocked_ = true;
    return false;
  }
  sent_ += static_cast<std::size_t>(done);
  bytes_sent_ += static_cast<std::size_t>(done);
  return true;
}

SigpipeGuard::SigpipeGuard() {
  sigset_t pending;
  sigpending(&pending);
  was_pending_ = sigismember(&pending, SIGPIPE) == 1;
  const sigset_t set = sigpipe_set();
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &set, &before);
  was_blocked_ = sigismember(&before, SIGPIPE) == 1;
}

SigpipeGuard::~SigpipeGuard() {
  const sigset_t set = sigpipe_set();
  if (!was_pending_) {
    const timespec at_once{};
    sigtimedwait(&set, nullptr, &at_once);
  }
  if (!was_blocked_) pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace erar
