// Pipeline: stages of a group and the order in which they are taken.
#include "core/collective/pipeline.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <string>

#include "core/clock.h"
#include "core/collective/range_operation.h"
#include "core/protocol/lanes.h"

namespace erar {

namespace {

// Results of this size do not stay in the cache until somebody reads them: they are stored past it.
constexpr std::size_t kLargeResultBytes = 2U << 20;
constexpr std::size_t kSignatureBytes = sizeof(CallSignature);
constexpr erar_combine kAddWords{ERAR_ADD_WORDS, 0, 0, 0, 0};

// Integers need no whole blocks, but groups must hold whole elements.
std::size_t granule_of(const LaneFormat& format) {
  return format.has_scales ? numeric::kExponentBlock : 1;
}

}  // namespace

Pipeline::Pipeline(RingDevice& device, const Arena& arena, const Staging& staging,
                   Retention& retention, Codec& codec, const PipelineRequest& request,
                   std::uint32_t first_operation)
    : device_(device),
      arena_(arena),
      staging_(staging),
      retention_(retention),
      codec_(codec),
      request_(request),
      first_operation_(first_operation),
      opening_(staging.openings[retention.take_opening(first_operation)]) {
  const LaneFormat& format = codec.format();
  // What needs no conversion has nothing to overlap with the ring: one operation.
  const std::size_t target_bytes =
      request.whole ? request.count * format.lane_bytes : request.group_bytes;
  plan_ = GroupPlan::of(request.count, format.lane_bytes, granule_of(format), target_bytes,
                        device.config().segment_bytes);
  if (plan_.groups == 0) return;
  if (format.has_scales) {
    records_in_opening_ = codec.record_bytes(group_count(0)) <= opening_room(staging);
  } else if (request.count * format.lane_bytes <= opening_room(staging)) {
    data_in_opening_ = true;
    plan_.groups = 0;
  }
}

std::uint32_t Pipeline::record_operation(std::size_t group) const {
  if (opening_has_records(group)) return first_operation_;
  const std::uint32_t base = first_operation_ + (records_in_opening_ ? 0 : 1);
  return base + 2 * static_cast<std::uint32_t>(group);
}

std::uint32_t Pipeline::data_operation(std::size_t group) const {
  const auto index = static_cast<std::uint32_t>(group);
  if (!has_scales()) return first_operation_ + 1 + index;
  return first_operation_ + (records_in_opening_ ? 0 : 1) + 2 * index + 1;
}

std::uint32_t Pipeline::next_operation() const {
  if (plan_.groups == 0) return first_operation_ + 1;
  return data_operation(plan_.groups - 1) + (must_close() ? 2 : 1);
}

std::size_t Pipeline::group_first(std::size_t group) const { return group * plan_.group_elements; }

std::size_t Pipeline::group_count(std::size_t group) const {
  return std::min(plan_.group_elements, request_.count - group_first(group));
}

CodecPart Pipeline::part(std::size_t group) const {
  CodecPart made;
  made.first = group_first(group);
  made.count = group_count(group);
  made.input = request_.input + made.first * codec_.format().element_bytes;
  made.lanes = arena_.segment(data_range(group).first_segment);
  return made;
}

ArenaRange Pipeline::data_range(std::size_t group) const {
  const std::size_t segment_bytes = device_.config().segment_bytes;
  const std::size_t lane_bytes = codec_.format().lane_bytes;
  ArenaRange range;
  range.bytes = group_count(group) * lane_bytes;
  range.segments = static_cast<std::uint32_t>(segments_for(range.bytes, segment_bytes));
  range.first_segment =
      request_.in_place
          ? request_.in_place->first_segment +
                static_cast<std::uint32_t>(group_first(group) * lane_bytes / segment_bytes)
          : area(group).data.first_segment;
  return range;
}

ArenaRange Pipeline::record_range(std::size_t group) const {
  if (opening_has_records(group)) return opening_;
  ArenaRange range = area(group).records;
  range.bytes = codec_.record_bytes(group_count(group));
  range.segments =
      static_cast<std::uint32_t>(segments_for(range.bytes, device_.config().segment_bytes));
  return range;
}

std::byte* Pipeline::records(std::size_t group) const {
  return arena_.segment(record_range(group).first_segment) +
         (opening_has_records(group) ? kSignatureBytes : 0);
}

Result<void> Pipeline::start(std::uint32_t number, const ArenaRange& range,
                             const erar_combine& combine, bool check) {
  assert(retention_.may_open(number));
  if (!agreed_) opened_.push_back(number);
  return start_range(device_, number, range, combine, check);
}

// The call's first operation. The rest of its segment is zero where nothing is put. It is checked
// even where the caller wants no checksums, since ranks may differ in that as well.
Result<void> Pipeline::open_call() {
  std::byte* opening = this->opening();
  std::memcpy(opening, request_.signature.data(), kSignatureBytes);
  erar_combine combine{ERAR_ADD_WORDS, 1, 0, 0, 0};
  if (data_in_opening_) {
    CodecPart whole;
    whole.count = request_.count;
    whole.input = request_.input;
    whole.lanes = opening + kSignatureBytes;
    const std::size_t bytes = whole.count * codec_.format().lane_bytes;
    codec_.encode(whole, nullptr, nullptr);
    std::memset(whole.lanes + bytes, 0, opening_room(staging_) - bytes);
    combine = codec_.format().combine;
    combine.word_chunks = 1;
  } else if (records_in_opening_) {
    const std::size_t bytes = codec_.record_bytes(group_count(0));
    std::memset(opening + kSignatureBytes + bytes, 0, opening_room(staging_) - bytes);
    combine = codec_.format().record_combine;
    combine.word_chunks = combine.loop == ERAR_ADD_WORDS ? 0 : 1;
  } else {
    std::memset(opening + kSignatureBytes, 0, opening_room(staging_));
  }
  opened_call_ = true;
  return start(first_operation_, opening_, combine, true);
}

// The signatures' sum is here: all make the same call, or none goes on. Every rank has left the
// calls before.
void Pipeline::take_opening() {
  retention_.settle(first_operation_);
  CallSignature sum;
  std::memcpy(sum.data(), opening(), kSignatureBytes);
  disagreed_ = !all_equal(request_.signature, sum, device_.config().ranks);
  agreed_ = !disagreed_;
  if (!agreed_ || !data_in_opening_) return;
  CodecPart whole;
  whole.count = request_.count;
  whole.lanes = opening() + kSignatureBytes;
  keep_output(0, request_.count);
  if (!codec_.decode(whole, nullptr, request_.output, false)) not_finite_ = true;
}

Result<void> Pipeline::start_records(std::size_t group) {
  area_of(group) = retention_.take_area();
  const CodecPart of = part(group);
  std::byte* found = records(group);
  codec_.announce(of, found);
  own_records_[group % kPipelineDepth].assign(found, found + codec_.record_bytes(of.count));
  if (opening_has_records(group)) return open_call();
  const ArenaRange range = record_range(group);
  clear_padding(arena_, range);
  retention_.serve(area_of(group), record_operation(group));
  return start(record_operation(group), range, codec_.format().record_combine, request_.checksum);
}

void Pipeline::note_group(std::size_t group) {
  not_finite_ = true;
  not_finite_groups_.push_back({group_first(group), group_count(group)});
}

// This rank's share goes into the arena. Registered integers are there already.
void Pipeline::prepare(std::size_t group) {
  bool& skipped = skipped_[group % kPipelineDepth];
  skipped = false;
  if (has_scales()) {
    if (!codec_.all_finite(group_count(group), records(group))) {
      note_group(group);
      skipped = request_.refuse_not_finite;
    }
    if (skipped) return;
    codec_.encode(part(group), own_records_[group % kPipelineDepth].data(), records(group));
  } else {
    area_of(group) = retention_.take_area();
    codec_.encode(part(group), nullptr, nullptr);
  }
  // What pads a caller's buffer to a whole chunk must not be another operation's leavings.
  if (!request_.in_place) clear_padding(arena_, data_range(group));
}

Result<void> Pipeline::start_data(std::size_t group) {
  const std::uint32_t number = data_operation(group);
  retention_.serve(area_of(group), number);
  retention_.begin_turn(area_of(group));
  if (!skipped_[group % kPipelineDepth])
    return start(number, data_range(group), codec_.format().combine, request_.checksum);
  // A group that is not run is a turn all the same, of one chunk.
  ArenaRange chunk = area(group).data;
  std::memset(arena_.segment(chunk.first_segment), 0, ERAR_CHUNK_BYTES);
  chunk.bytes = ERAR_CHUNK_BYTES;
  chunk.segments = 1;
  return start(number, chunk, kAddWords, request_.checksum);
}

Result<void> Pipeline::start_closing() {
  ArenaRange chunk = staging_.exchanges[retention_.take_exchange(next_operation() - 1)];
  std::memset(arena_.segment(chunk.first_segment), 0, ERAR_CHUNK_BYTES);
  chunk.bytes = ERAR_CHUNK_BYTES;
  chunk.segments = 1;
  retention_.begin_turn();
  closing_ = Closing::kUnderWay;
  return start(next_operation() - 1, chunk, kAddWords, request_.checksum);
}

void Pipeline::keep_output(std::size_t first, std::size_t count) {
  if (request_.undo == nullptr || request_.in_place) return;
  const std::size_t bytes = codec_.format().element_bytes;
  request_.undo->keep(request_.output + first * bytes, count * bytes, request_.count * bytes);
}

void Pipeline::finish(std::size_t group) {
  retention_.release(area_of(group));
  // Lanes in the caller's memory are overwritten by what they mean: nobody may be sent them any
  // more.
  if (request_.in_place) device_.close(data_operation(group));
  if (skipped_[group % kPipelineDepth]) return;
  const std::size_t bytes = request_.count * codec_.format().element_bytes;
  std::byte* output = request_.output + group_first(group) * codec_.format().element_bytes;
  // The only group of integers, or one whose scales say that all is well, ends the call.
  if (plan_.groups > 1 || not_finite_ || (request_.is_float && !has_scales()))
    keep_output(group_first(group), group_count(group));
  const std::byte* agreed = has_scales() ? records(group) : nullptr;
  if (!codec_.decode(part(group), agreed, output, bytes >= kLargeResultBytes)) not_finite_ = true;
}

// Every rank has opened the group's operation, so each has completed what that had to wait for.
void Pipeline::complete(std::size_t group) {
  retention_.end_turn();
  if (group == 0) return;
  retention_.settle(has_scales() ? record_operation(group) : data_operation(group));
}

bool Pipeline::may_announce() const {
  return has_scales() && announced_ < plan_.groups && announced_ - prepared_ < 2 &&
         announced_ - finished_ < kPipelineDepth &&
         (opening_has_records(announced_) || retention_.may_open(record_operation(announced_)));
}

// The first group's data may overtake the opening; a second's tells that all ranks have agreed.
bool Pipeline::may_start() const {
  return started_ < prepared_ && started_ - completed_ < kDataInFlight &&
         (started_ == 0 || agreed_) && retention_.may_open(data_operation(started_));
}

bool Pipeline::may_prepare() const {
  if (prepared_ == plan_.groups || prepared_ - finished_ >= kPipelineDepth) return false;
  if (!has_scales()) return opened_call_;
  if (announced_ <= prepared_) return false;
  return opening_has_records(prepared_) ? agreed_ : device_.done(record_operation(prepared_));
}

bool Pipeline::may_complete() const {
  return completed_ < started_ && device_.done(data_operation(completed_));
}

bool Pipeline::may_finish() const {
  if (!agreed_ || finished_ == completed_) return false;
  if (!request_.in_place || finished_ + 1 < completed_) return true;
  return closing_ == Closing::kDone;
}

// Takes one stage of one group if any can be taken; the ring's first, to keep it busy, then later
// ones, because they free areas. Records go one group ahead, so that their way round overlaps with
// quantising.
Result<bool> Pipeline::advance() {
  Result<void> step;
  if (opened_call_ && !agreed_ && device_.done(first_operation_)) {
    take_opening();
  } else if (may_complete()) {
    complete(completed_++);
  } else if (closing_ == Closing::kUnderWay && device_.done(next_operation() - 1)) {
    closing_ = Closing::kDone;
    retention_.end_turn();
  } else if (may_start()) {
    step = start_data(started_++);
  } else if (may_finish()) {
    finish(finished_++);
  } else if (must_close() && completed_ == plan_.groups && closing_ == Closing::kNotYet) {
    step = start_closing();
  } else if (!opened_call_ && !records_in_opening_) {
    step = open_call();
  } else if (may_announce()) {
    step = start_records(announced_++);
  } else if (may_prepare()) {
    prepare(prepared_++);
  } else {
    return false;
  }
  if (!step) return step.error();
  return true;
}

Result<void> Pipeline::wait() {
  std::array<std::uint32_t, 3> operations{};
  std::size_t count = 0;
  if (!agreed_) operations[count++] = first_operation_;
  if (completed_ < started_) operations[count++] = data_operation(completed_);
  if (closing_ == Closing::kUnderWay) operations[count++] = next_operation() - 1;
  if (has_scales() && prepared_ < announced_ && prepared_ - finished_ < kPipelineDepth &&
      !opening_has_records(prepared_))
    operations[count++] = record_operation(prepared_);
  const std::uint64_t since_ns = monotonic_ns();
  auto woken = device_.wait_any({operations.data(), count}, device_.timeout_ns());
  if (has_scales() && plan_.groups > 0 && started_ == 0) agreement_ns_ += monotonic_ns() - since_ns;
  return woken;
}

Result<PipelineEnd> Pipeline::run() {
  while (!agreed_ || finished_ < plan_.groups || (must_close() && closing_ != Closing::kDone)) {
    auto advanced = advance();
    if (!advanced) return advanced.error();
    if (disagreed_) return PipelineEnd::kDisagreed;
    if (*advanced) continue;
    if (auto woken = wait(); !woken) return woken.error();
  }
  return PipelineEnd::kReduced;
}

}  // namespace erar
