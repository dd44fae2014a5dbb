// RingAllreduce: runs a pipeline per call, and what has to be said to the other ranks after it.
#include "core/collective/ring_allreduce.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <limits>
#include <string>

#include "core/collective/offender_text.h"
#include "core/collective/range_operation.h"
#include "core/numeric/float_elements.h"
#include "core/protocol/lanes.h"

namespace erar {
namespace {

// How long a rank stays after the good-bye when the links lose frames.
constexpr std::uint64_t kLinger_ns = 20'000'000;
constexpr erar_combine kAddWords{ERAR_ADD_WORDS, 0, 0, 0, 0};
constexpr erar_combine kMaxWords{ERAR_MAX_LANES, 0, 63, ERAR_HIGH_OF_LANES64, 0};
constexpr erar_combine kMaxBytes{ERAR_MAX_LANES, 0, 7, ERAR_HIGH_OF_LANES8, 0};
// Sizes in bytes, of lanes too, must fit their type.
constexpr std::size_t kMostElements = std::numeric_limits<std::size_t>::max() / 64;

Result<void> check_call(std::size_t count, const Reduction& reduction) {
  if (count > kMostElements)
    return refusal("allreduce of " + std::to_string(count) +
                   " elements: more than memory can hold");
  return check_reduction(reduction);
}

// First by index, then by rank, as one word whose complement's maximum the ring finds; 0: none.
std::uint64_t offender_word(const std::optional<numeric::Offender>& own, unsigned rank) {
  if (!own) return 0;
  return ~(std::uint64_t{own->index} << 8 | rank << 2 | static_cast<unsigned>(own->kind));
}

Error offender_error(const Reduction& reduction, std::uint64_t word) {
  word = ~word;
  return refuse_offender(
      reduction, word >> 2 & 63,
      {static_cast<std::size_t>(word >> 8), static_cast<numeric::Offender::Kind>(word & 3)});
}

}  // namespace

std::size_t RingAllreduce::arena_segments(std::size_t group_bytes, std::size_t registered_bytes,
                                          std::size_t segment_bytes) {
  return Staging::segments(group_bytes, segment_bytes) +
         segments_for(registered_bytes, segment_bytes);
}

RingAllreduce::RingAllreduce(RingDevice& device, const RingAllreduceOptions& options)
    : device_(device),
      options_(options),
      arena_(device.arena(), device.config().segment_bytes),
      retention_(device) {}

// The good-bye is an operation: when it is done here, all ranks have returned from the last call.
// Nobody misses its sums, so a rank that does not get them only waits in vain for a while.
RingAllreduce::~RingAllreduce() {
  if (broken_ || options_.goodbye_ns == 0 || next_operation_ == ERAR_FIRST_OPERATION) return;
  const ArenaRange range = take_exchange(ERAR_CHUNK_BYTES);
  std::memset(arena_.segment(range.first_segment), 0, ERAR_CHUNK_BYTES);
  const std::uint64_t patience_ns = std::min(options_.goodbye_ns, device_.timeout_ns());
  if (!exchange(range, kAddWords, patience_ns) || !device_.saw_losses()) return;
  // Others may have lost a frame of the good-bye itself.
  const std::uint32_t never = next_operation_;
  if (start_nothing(device_, never)) (void)device_.wait_any({&never, 1}, kLinger_ns);
}

Result<std::unique_ptr<RingAllreduce>> RingAllreduce::open(RingDevice& device,
                                                           const RingAllreduceOptions& options) {
  std::unique_ptr<RingAllreduce> made(new RingAllreduce(device, options));
  auto staging = Staging::reserve(made->arena_, options.group_bytes, device.config().segment_bytes);
  if (!staging) return staging.error();
  made->staging_ = *staging;
  return made;
}

Result<std::span<std::byte>> RingAllreduce::allocate(std::size_t bytes) {
  auto range = arena_.allocate(bytes);
  if (!range) return range.error();
  return arena_.memory(*range);
}

Result<void> RingAllreduce::allreduce(const void* input, void* output, std::size_t count,
                                      const Reduction& reduction) {
  if (broken_) return *broken_;
  undo_.clear();
  auto reduced = reduce(static_cast<const std::byte*>(input), static_cast<std::byte*>(output),
                        count, reduction);
  if (!reduced) undo_.restore(static_cast<std::byte*>(output));
  // After a time-out the ranks no longer agree on what is under way.
  if (!reduced && reduced.error().code != 0) broken_ = reduced.error();
  return reduced;
}

Result<void> RingAllreduce::reduce(const std::byte* input, std::byte* output, std::size_t count,
                                   const Reduction& reduction) {
  const auto possible = check_call(count, reduction);
  // A call that is refused meets the others' all the same, or they would wait for it.
  const Reduction run = possible ? reduction : Reduction{DataType::kInt32};
  Feedback feedback;
  if (run.compressed) feedback.before = residual_of(input, count, run);
  const auto codec = make_codec(run, device_.config().ranks, run.compressed ? &feedback : nullptr);
  CallRecord record = CallRecord::of(count, reduction, options_.group_bytes,
                                     device_.config().segment_bytes, options_.checksum);
  PipelineRequest request;
  request.input = input;
  request.output = output;
  request.count = possible ? count : 0;
  request.is_float = is_float(run.type);
  request.refuse_not_finite = reduction.not_finite == NotFinite::kRefuse;
  request.checksum = options_.checksum;
  request.group_bytes = options_.group_bytes;
  // Out of place the caller still has the input; keeping the output, too, takes a quarter of the
  // time.
  if (input == output) request.undo = &undo_;
  if (input == output && codec->format().fits_in_place())
    request.in_place = arena_.find(output, request.count * size_of(run.type));
  // A call small enough for the opening is cut alike wherever its buffer lies.
  request.whole = request.in_place && codec->format().is_identity &&
                  request.count * size_of(run.type) > Pipeline::opening_room(staging_);
  record.whole = request.whole ? 1 : 0;
  request.signature = signature_of(record);

  Pipeline pipeline(device_, arena_, staging_, retention_, *codec, request, next_operation_);
  const auto end = pipeline.run();
  agreement_ns_ = pipeline.agreement_ns();
  if (!end) {
    close_all(pipeline.next_operation());
    return end.error();
  }
  if (*end == PipelineEnd::kDisagreed) return explain(record, pipeline.opened());
  next_operation_ = pipeline.next_operation();
  if (!possible) return possible;
  if (pipeline.not_finite() && request.refuse_not_finite)
    return name_offender(reduction, codec->offender());
  if (run.compressed && count != 0) keep_residual(input, run.type, std::move(feedback.after));
  for (const Pipeline::ElementRange& group : pipeline.not_finite_groups()) {
    auto spread = spread_nan(*codec, group, reduction, output);
    if (!spread) return spread;
  }
  return {};
}

// Another buffer, count or type starts without a residual.
std::span<const float> RingAllreduce::residual_of(const void* buffer, std::size_t count,
                                                  const Reduction& reduction) const {
  const auto found = residuals_.find(buffer);
  if (found == residuals_.end() || found->second.type != reduction.type ||
      found->second.values.size() != count)
    return {};
  return found->second.values;
}

// Only of calls that have succeeded: what was refused was not sent, and leaves what is to be sent.
void RingAllreduce::keep_residual(const void* buffer, DataType type, std::vector<float> values) {
  residuals_[buffer] = {type, ++residual_clock_, std::move(values)};
  if (residuals_.size() <= kMostResiduals) return;
  residuals_.erase(
      std::min_element(residuals_.begin(), residuals_.end(),
                       [](const auto& a, const auto& b) { return a.second.used < b.second.used; }));
}

// The ring writes nothing into the arena any more, and reads nothing.
void RingAllreduce::close_all(std::uint32_t end) {
  for (std::uint32_t number = next_operation_ - ERAR_SLOTS; number != end; number++)
    device_.close(number);
}

// For the operation that comes next.
ArenaRange RingAllreduce::take_exchange(std::size_t bytes) {
  ArenaRange range = staging_.exchanges[retention_.take_exchange(next_operation_)];
  range.bytes = bytes;
  range.segments = static_cast<std::uint32_t>(segments_for(bytes, device_.config().segment_bytes));
  return range;
}

// One more operation, from start to end, over a range that holds this rank's share: a turn.
Result<void> RingAllreduce::exchange(const ArenaRange& range, const erar_combine& combine) {
  auto done = exchange(range, combine, device_.timeout_ns());
  if (!done) close_all(next_operation_);
  return done;
}

Result<void> RingAllreduce::exchange(const ArenaRange& range, const erar_combine& combine,
                                     std::uint64_t patience_ns) {
  const std::uint32_t number = next_operation_++;
  assert(retention_.may_open(number));
  retention_.begin_turn();
  if (auto started = start_range(device_, number, range, combine, true); !started) return started;
  while (!device_.done(number))
    if (auto woken = device_.wait_any({&number, 1}, patience_ns); !woken) return woken;
  retention_.end_turn();
  retention_.settle(number);
  return {};
}

// The calls differ, as every rank knows: the opening is done on all, no other operation can be.
// Everything that was opened is given up, the calls are gathered (each rank's record in a place of
// its own, zero elsewhere, so that the sum is all of them), and all ranks say the same.
//
// A rank may be here while another has not seen the opening's end, and may have to send it that: so
// the opening stays. Which other operations were opened differs between ranks; the gathering is the
// first that none can have opened, in the last slot before the opening's comes again. What was
// there before was an earlier call's, which all ranks have left. The gathering is done when all are
// here.
Result<void> RingAllreduce::explain(const CallRecord& own,
                                    const std::vector<std::uint32_t>& opened) {
  const std::uint32_t opening = next_operation_;
  const unsigned ranks = device_.config().ranks;
  for (const std::uint32_t number : opened)
    if (number != opening) device_.close(number);
  next_operation_ = opening + ERAR_SLOTS - 1;
  for (std::uint32_t number = opening + 1; number < next_operation_; number++) {
    if (std::find(opened.begin(), opened.end(), number) != opened.end()) continue;
    if (auto passed = start_nothing(device_, number); !passed) return passed;
  }
  const ArenaRange range = take_exchange(ranks * sizeof(CallRecord));
  std::byte* place = arena_.segment(range.first_segment);
  std::memset(place, 0, range.bytes);
  std::memcpy(place + device_.config().rank * sizeof(CallRecord), &own, sizeof(own));
  if (auto gathered = exchange(range, kAddWords); !gathered) return gathered;
  std::vector<CallRecord> records(ranks);
  std::memcpy(records.data(), place, range.bytes);
  retention_.forget_all();
  return refusal("allreduce: " + describe_disagreement(records));
}

Result<void> RingAllreduce::name_offender(const Reduction& reduction,
                                          const std::optional<numeric::Offender>& own) {
  const ArenaRange range = take_exchange(ERAR_CHUNK_BYTES);
  std::byte* place = arena_.segment(range.first_segment);
  std::uint64_t word = offender_word(own, device_.config().rank);
  std::memset(place, 0, range.bytes);
  std::memcpy(place, &word, sizeof(word));
  if (auto found = exchange(range, kMaxWords); !found) return found;
  std::memcpy(&word, place, sizeof(word));
  return offender_error(reduction, word);
}

// The sums of a group are there, with zero for what was not finite: the ranks' marks, a byte for
// each element, say where the result must be NaN.
Result<void> RingAllreduce::spread_nan(const Codec& codec, const Pipeline::ElementRange& group,
                                       const Reduction& reduction, std::byte* output) {
  const unsigned area = retention_.take_area();
  ArenaRange range = staging_.areas[area].data;
  range.bytes = group.count;
  range.segments =
      static_cast<std::uint32_t>(segments_for(group.count, device_.config().segment_bytes));
  const std::span<std::uint8_t> marks{
      reinterpret_cast<std::uint8_t*>(arena_.segment(range.first_segment)), group.count};
  CodecPart part;
  part.first = group.first;
  part.count = group.count;
  codec.mark_not_finite(part, marks);
  clear_padding(arena_, range);
  retention_.serve(area, next_operation_);
  if (auto spread = exchange(range, kMaxBytes); !spread) return spread;
  retention_.end_with_turn(area);
  numeric::set_nan(reduction.type, marks.data(), group.count,
                   output + group.first * size_of(reduction.type));
  return {};
}

}  // namespace erar
