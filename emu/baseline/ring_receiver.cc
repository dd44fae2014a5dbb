// Receiving from the predecessor: header, then data to be reduced by way of a stage, then data in
// place.
#include "emu/baseline/ring_receiver.h"

#include <fmt/format.h>

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace erar {
namespace {

// Small enough that what the kernel copied into it is still in the core's cache when it is reduced.
constexpr std::size_t kStageBytes = 256 << 10;
constexpr std::size_t kReceiveBytes = 1 << 20;

// What the header asks for; of the rarer options only those in which the two differ.
std::string text_of(const OperationHeader& header, const OperationHeader& other) {
  std::string text = header.op < kReduceOps.size()
                         ? std::string(name_of(static_cast<ReduceOp>(header.op)))
                         : "operation " + std::to_string(header.op);
  text += " of " + std::to_string(header.count) + " ";
  text += header.type < kDataTypes.size() ? std::string(name_of(static_cast<DataType>(header.type)))
                                          : "elements of type " + std::to_string(header.type);
  if (header.pre_scale != other.pre_scale) {
    text += fmt::format(" times {}", header.pre_scale);
  }
  if (header.not_finite != other.not_finite) {
    const bool refuse = header.not_finite == static_cast<std::uint16_t>(NotFinite::kRefuse);
    text += refuse ? " refusing NaN" : " propagating NaN";
  }
  if (header.compressed != other.compressed) {
    text += header.compressed != 0 ? " compressed" : " uncompressed";
  }
  return text + " as allreduce number " + std::to_string(header.sequence);
}

}  // namespace

RingReceiver::RingReceiver(const UniqueFd& socket, std::string peer)
    : socket_(socket), peer_(std::move(peer)), stage_(kStageBytes) {}

void RingReceiver::start(const RingPlan& plan, const OperationHeader& header,
                         const Reducer& reducer) {
  plan_ = &plan;
  expected_ = header;
  reducer_ = reducer;
  element_bytes_ = size_of(reducer.type);
  total_ = sizeof header_ + plan.reduce_bytes + plan.receive_bytes;
  received_ = header_received_ = unreduced_ = 0;
  reduce_at_ = receive_at_ = {};
}

// Never more than this operation's bytes: the predecessor may be in the next one already.
std::size_t RingReceiver::collect(std::array<iovec, kMaxParts>& parts) {
  std::size_t used = 0;
  if (header_received_ < sizeof header_) {
    auto* header = reinterpret_cast<char*>(&header_);
    parts[used++] = {header + header_received_, sizeof header_ - header_received_};
  }
  const std::size_t data = received_ - header_received_;
  if (data < plan_->reduce_bytes) {
    const Landing landing = landing_place();
    parts[used++] = {landing.data + unreduced_, landing.bytes - unreduced_};
    return used;
  }
  std::size_t left = std::min(plan_->reduce_bytes + plan_->receive_bytes - data, kReceiveBytes);
  for (SegmentCursor at = receive_at_; left > 0 && used < kMaxParts; at = {at.segment + 1, 0}) {
    const auto segment = plan_->receive[at.segment].subspan(at.offset);
    const std::size_t bytes = std::min(segment.size(), left);
    parts[used++] = {segment.data(), bytes};
    left -= bytes;
  }
  return used;
}

Result<bool> RingReceiver::try_receive() {
  ++calls_;
  std::array<iovec, kMaxParts> parts;
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = collect(parts);
  const ssize_t done = ::recvmsg(socket_.get(), &message, 0);
  if (done < 0) {
    if (errno != EAGAIN && errno != EINTR) return errno_error("receive from", peer_);
    return false;
  }
  if (done == 0) return Error{ECONNRESET, "receive from", peer_ + ", which closed the connection"};
  if (auto taken = take(static_cast<std::size_t>(done)); !taken) return taken.error();
  return true;
}

Result<void> RingReceiver::take(std::size_t bytes) {
  bytes_received_ += bytes;
  received_ += bytes;
  if (header_received_ < sizeof header_) {
    const std::size_t of_header = std::min(bytes, sizeof header_ - header_received_);
    header_received_ += of_header;
    bytes -= of_header;
    if (header_received_ < sizeof header_) return {};
    if (auto checked = check_header(); !checked) return checked;
  }
  const std::size_t before = received_ - header_received_ - bytes;
  if (before < plan_->reduce_bytes) {
    unreduced_ += bytes;
    reduce_arrived();
  } else {
    receive_at_.advance(plan_->receive, bytes);
  }
  return {};
}

// Where bytes to be reduced arrive: out of place right where their result belongs, which saves a
// walk through the cache; in place, where our own operand still is there, on the stage. The first
// unreduced_ bytes are those of an element that the socket split.
RingReceiver::Landing RingReceiver::landing_place() {
  const ReduceSegment& segment = plan_->reduce[reduce_at_.segment];
  const std::size_t left = segment.bytes - reduce_at_.offset;
  if (segment.own != segment.result) {
    return {segment.result + reduce_at_.offset, std::min(left, kStageBytes)};
  }
  return {stage_.data(), std::min(left, stage_.size())};
}

void RingReceiver::reduce_arrived() {
  const Landing landing = landing_place();
  const ReduceSegment& segment = plan_->reduce[reduce_at_.segment];
  const std::size_t whole = unreduced_ - unreduced_ % element_bytes_;
  std::byte* const result = segment.result + reduce_at_.offset;
  const std::size_t count = whole / element_bytes_;
  reducer_.combine(result, segment.own + reduce_at_.offset, landing.data, count);
  if (segment.last && reducer_.divisor > 1) divide(reducer_.type, result, count, reducer_.divisor);
  reduce_at_.advance(plan_->reduce, whole);
  unreduced_ -= whole;
  if (landing.data == stage_.data() && whole > 0) {
    std::memmove(stage_.data(), stage_.data() + whole, unreduced_);
  }
}

Result<void> RingReceiver::check_header() const {
  if (header_ == expected_) return {};
  if (header_.magic != expected_.magic) return Error{EPROTO, "no allreduce header from", peer_};
  return Error{EPROTO, peer_ + " calls " + text_of(header_, expected_) + ",",
               "this rank " + text_of(expected_, header_)};
}

}  // namespace erar
