// Pipeline: stages of a group and the order in which they are taken.
#include "bpf/host/pipeline.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace erar {

using numeric::Exponent;

namespace {

// Results of this size do not stay in the cache until somebody reads them: they are stored past it.
constexpr std::size_t kLargeResultBytes = 2U << 20;

}  // namespace

Pipeline::Pipeline(Device& device, const Arena& arena, const StagingArea* areas,
                   const PipelineRequest& request, std::uint32_t first_operation)
    : device_(device),
      arena_(arena),
      areas_(areas),
      request_(request),
      first_operation_(first_operation),
      bytes_(request.count * size_of(request.type)) {
  // Integers in registered memory have nothing to overlap with the ring: one operation.
  const bool whole = request.in_place.has_value() && !is_float();
  plan_ = GroupPlan::of(bytes_, whole ? bytes_ : request.group_bytes, device.segment_bytes());
}

std::uint32_t Pipeline::next_operation() const { return data_operation(plan_.groups - 1) + 1; }

std::uint32_t Pipeline::exponent_operation(std::size_t group) const {
  return first_operation_ + 2 * static_cast<std::uint32_t>(group);
}

std::uint32_t Pipeline::data_operation(std::size_t group) const {
  const auto index = static_cast<std::uint32_t>(group);
  return first_operation_ + (is_float() ? 2 * index + 1 : index);
}

std::size_t Pipeline::group_offset(std::size_t group) const { return group * plan_.group_bytes; }

std::size_t Pipeline::group_bytes(std::size_t group) const {
  return std::min(plan_.group_bytes, bytes_ - group_offset(group));
}

ArenaRange Pipeline::data_range(std::size_t group) const {
  const std::size_t segment_bytes = device_.segment_bytes();
  ArenaRange range;
  range.bytes = group_bytes(group);
  range.segments = static_cast<std::uint32_t>(segments_for(range.bytes, segment_bytes));
  range.first_segment = request_.in_place
                            ? request_.in_place->first_segment +
                                  static_cast<std::uint32_t>(group_offset(group) / segment_bytes)
                            : areas_[group % kPipelineDepth].data.first_segment;
  return range;
}

std::span<Exponent> Pipeline::exponents(std::size_t group) const {
  const ArenaRange& range = areas_[group % kPipelineDepth].exponents;
  auto* first = reinterpret_cast<Exponent*>(arena_.segment(range.first_segment));
  return {first, numeric::exponent_count(group_bytes(group) / sizeof(float))};
}

Result<void> Pipeline::start(std::uint32_t number, const ArenaRange& range, std::uint32_t combine) {
  const std::size_t segment_bytes = device_.segment_bytes();
  const std::size_t last = range.bytes - (range.segments - 1) * segment_bytes;
  erar_start start{};
  start.number = number;
  start.first_segment = range.first_segment;
  start.segments = range.segments;
  start.last_bytes = static_cast<std::uint32_t>((last + ERAR_CHUNK_BYTES - 1) / ERAR_CHUNK_BYTES *
                                                ERAR_CHUNK_BYTES);
  start.combine = combine;
  return device_.start(start);
}

std::span<const float> Pipeline::values(std::size_t group) const {
  return {reinterpret_cast<const float*>(request_.input + group_offset(group)),
          group_bytes(group) / sizeof(float)};
}

std::uint32_t* Pipeline::lanes(std::size_t group) const {
  return reinterpret_cast<std::uint32_t*>(arena_.segment(data_range(group).first_segment));
}

Result<void> Pipeline::start_exponents(std::size_t group) {
  const auto found = exponents(group);
  if (request_.in_place) {
    numeric::block_exponents(values(group), found);
  } else {
    numeric::quantise_by_own_exponents(values(group), found, request_.ranks, lanes(group));
    own_exponents_[group % kPipelineDepth].assign(found.begin(), found.end());
  }
  ArenaRange range = areas_[group % kPipelineDepth].exponents;
  range.bytes = found.size_bytes();
  range.segments = static_cast<std::uint32_t>(segments_for(range.bytes, device_.segment_bytes()));
  return start(exponent_operation(group), range, ERAR_MAX_LANES16);
}

void Pipeline::prepare_floats(std::size_t group) {
  const auto agreed = exponents(group);
  const auto bad = std::find(agreed.begin(), agreed.end(), numeric::kNotFinite);
  skipped_[group % kPipelineDepth] = bad != agreed.end();
  if (bad != agreed.end()) {
    const auto block = static_cast<std::size_t>(bad - agreed.begin());
    if (!not_finite_)
      not_finite_ = group_offset(group) / sizeof(float) + block * numeric::kExponentBlock;
  } else if (request_.in_place) {
    numeric::quantise(values(group), agreed, request_.ranks, lanes(group));
  } else {
    numeric::requantise_where_raised(values(group), own_exponents_[group % kPipelineDepth], agreed,
                                     request_.ranks, lanes(group));
  }
}

// This rank's share goes into the arena. Registered integers are there already.
void Pipeline::prepare(std::size_t group) {
  std::byte* share = arena_.segment(data_range(group).first_segment);
  const std::byte* input = request_.input + group_offset(group);
  const std::size_t bytes = group_bytes(group);

  if (is_float())
    prepare_floats(group);
  else if (share != input)
    std::memcpy(share, input, bytes);
  // What pads a caller's buffer to a whole chunk must not be another operation's leavings.
  if (!request_.in_place && bytes % ERAR_CHUNK_BYTES != 0)
    std::memset(share + bytes, 0, ERAR_CHUNK_BYTES - bytes % ERAR_CHUNK_BYTES);
}

Result<void> Pipeline::start_data(std::size_t group) {
  if (skipped_[group % kPipelineDepth]) {
    // An operation that is not run still takes its number, as nothing.
    erar_start nothing{};
    nothing.number = data_operation(group);
    return device_.start(nothing);
  }
  return start(data_operation(group), data_range(group),
               is_float() ? ERAR_ADD_WORDS : ERAR_ADD_LANES32);
}

void Pipeline::finish(std::size_t group) {
  const std::byte* sums = arena_.segment(data_range(group).first_segment);
  std::byte* output = request_.output + group_offset(group);
  const std::size_t bytes = group_bytes(group);

  if (is_float()) {
    const auto destination =
        bytes_ >= kLargeResultBytes ? numeric::Destination::kMemory : numeric::Destination::kCache;
    numeric::dequantise(lanes(group), exponents(group), request_.ranks,
                        {reinterpret_cast<float*>(output), bytes / sizeof(float)}, destination);
  } else if (sums != output) {
    std::memcpy(output, sums, bytes);
  }
}

bool Pipeline::may_prepare() const {
  if (prepared_ == plan_.groups || prepared_ - finished_ >= kPipelineDepth) return false;
  if (!is_float()) return true;
  return announced_ > prepared_ && device_.done(exponent_operation(prepared_));
}

// Takes one stage of one group if any can be taken; later stages first, because they free areas and
// keep the ring busy. Exponents go one group ahead, so that their way round overlaps with
// quantising.
Result<bool> Pipeline::advance() {
  Result<void> step;
  const bool skipped = skipped_[finished_ % kPipelineDepth];
  if (finished_ < started_ && (skipped || device_.done(data_operation(finished_)))) {
    if (!skipped) finish(finished_);
    finished_++;
  } else if (started_ < prepared_ && started_ - finished_ < kDataInFlight) {
    step = start_data(started_++);
  } else if (is_float() && announced_ < plan_.groups && announced_ - prepared_ < 2 &&
             announced_ - finished_ < kPipelineDepth) {
    step = start_exponents(announced_++);
  } else if (may_prepare()) {
    prepare(prepared_++);
  } else {
    return false;
  }
  if (!step) return step.error();
  return true;
}

Result<void> Pipeline::wait() {
  std::uint32_t operations[2];
  std::size_t count = 0;
  if (finished_ < started_) operations[count++] = data_operation(finished_);
  if (is_float() && prepared_ < announced_ && prepared_ - finished_ < kPipelineDepth)
    operations[count++] = exponent_operation(prepared_);
  return device_.wait_any({operations, count});
}

Result<void> Pipeline::run() {
  while (finished_ < plan_.groups) {
    auto advanced = advance();
    if (!advanced) return advanced.error();
    if (*advanced) continue;
    if (auto woken = wait(); !woken) return woken;
  }
  if (not_finite_)
    return refusal("float32 allreduce: NaN or infinity among elements " +
                   std::to_string(*not_finite_) + ".." +
                   std::to_string(*not_finite_ + numeric::kExponentBlock - 1) + " of some rank");
  return {};
}

}  // namespace erar
