// The eRAR backend: owns device and arena, numbers operations, runs a pipeline per call.
#include "bpf/host/erar_backend.h"

#include <array>
#include <cstring>

#include "bpf/host/arena.h"
#include "bpf/host/device.h"
#include "bpf/host/pipeline.h"

namespace erar {
namespace {

class ErarBackend final : public Backend {
 public:
  ErarBackend(std::unique_ptr<Device> device, unsigned ranks, std::size_t group_bytes)
      : device_(std::move(device)),
        arena_(device_->arena(), device_->segment_bytes()),
        ranks_(ranks),
        group_bytes_(group_bytes) {}

  Result<void> reserve_staging();
  Result<std::span<std::byte>> allocate(std::size_t bytes) override;
  Result<void> allreduce(const void* input, void* output, std::size_t count,
                         const Reduction& reduction) override;
  std::vector<std::pair<std::string, std::uint64_t>> counters() override;

 private:
  std::unique_ptr<Device> device_;
  Arena arena_;
  std::array<StagingArea, kPipelineDepth> areas_{};
  unsigned ranks_;
  std::size_t group_bytes_;
  std::uint32_t next_operation_ = ERAR_FIRST_OPERATION;
  std::optional<Error> broken_;
};

std::size_t staging_exponent_bytes(std::size_t data_bytes) {
  return numeric::exponent_count(data_bytes / sizeof(float)) * sizeof(numeric::Exponent);
}

Result<void> ErarBackend::reserve_staging() {
  const std::size_t data_bytes = GroupPlan::max_group_bytes(group_bytes_, device_->segment_bytes());
  for (StagingArea& area : areas_) {
    auto data = arena_.allocate(data_bytes);
    if (!data) return data.error();
    auto exponents = arena_.allocate(staging_exponent_bytes(data_bytes));
    if (!exponents) return exponents.error();
    area = StagingArea{*data, *exponents};
  }
  return {};
}

Result<std::span<std::byte>> ErarBackend::allocate(std::size_t bytes) {
  auto range = arena_.allocate(bytes);
  if (!range) return range.error();
  return arena_.memory(*range);
}

Result<void> ErarBackend::allreduce(const void* input, void* output, std::size_t count,
                                    const Reduction& reduction) {
  if (broken_) return *broken_;
  const DataType type = reduction.type;
  if (reduction.op != ReduceOp::kSum || (type != DataType::kInt32 && type != DataType::kFloat32))
    return refusal("not there yet");
  if (count == 0) return {};
  PipelineRequest request;
  request.input = static_cast<const std::byte*>(input);
  request.output = static_cast<std::byte*>(output);
  request.count = count;
  request.type = type;
  request.ranks = ranks_;
  request.group_bytes = group_bytes_;
  if (input == output) request.in_place = arena_.find(output, count * size_of(type));

  Pipeline pipeline(*device_, arena_, areas_.data(), request, next_operation_);
  const auto result = pipeline.run();
  next_operation_ = pipeline.next_operation();
  // After a time-out the ranks no longer agree on what is under way.
  if (!result && result.error().code != 0) broken_ = result.error();
  return result;
}

std::vector<std::pair<std::string, std::uint64_t>> ErarBackend::counters() {
  std::vector<std::pair<std::string, std::uint64_t>> named;
  const auto values = device_->counters();
  if (!values) return named;
  for (unsigned i = 0; i < values->size(); i++)
    named.emplace_back(Device::counter_name(i), (*values)[i]);
  return named;
}

// A group of one: every result is the rank's own input, and there is nothing to load.
class SoloBackend final : public Backend {
 public:
  Result<std::span<std::byte>> allocate(std::size_t bytes) override {
    buffers_.emplace_back(new (std::align_val_t{64}) std::byte[bytes]());
    return std::span<std::byte>(buffers_.back().get(), bytes);
  }
  Result<void> allreduce(const void* input, void* output, std::size_t count,
                         const Reduction& reduction) override {
    const DataType type = reduction.type;
    if (input != output && count != 0) std::memcpy(output, input, count * size_of(type));
    return {};
  }

 private:
  struct Free {
    void operator()(std::byte* bytes) const { operator delete[](bytes, std::align_val_t{64}); }
  };
  std::vector<std::unique_ptr<std::byte[], Free>> buffers_;
};

}  // namespace

Result<std::unique_ptr<Backend>> open_erar_backend(const RingEndpoint& endpoint,
                                                   const ErarOptions& options) {
  if (endpoint.ranks == 1) return std::unique_ptr<Backend>(new SoloBackend());
  const std::size_t segment_bytes = erar_segment_bytes(endpoint.mtu);
  if (segment_bytes == 0)
    return refusal("MTU " + std::to_string(endpoint.mtu) + ": too small for one chunk of payload");
  const std::size_t data_bytes = GroupPlan::max_group_bytes(options.group_bytes, segment_bytes);
  const std::size_t segments =
      kPipelineDepth * (segments_for(data_bytes, segment_bytes) +
                        segments_for(staging_exponent_bytes(data_bytes), segment_bytes)) +
      segments_for(options.registered_bytes, segment_bytes);
  if (segments * segment_bytes > std::size_t{1} << 32)
    return refusal("registered memory of " + std::to_string(options.registered_bytes) +
                   " bytes: an arena holds 4 GiB at most");

  DeviceOptions device_options;
  device_options.arena_segments = static_cast<std::uint32_t>(segments);
  device_options.generic_mode = options.generic_mode;
  device_options.job = static_cast<std::uint16_t>(options.job);
  device_options.token = options.token;
  device_options.timeout_ns = options.timeout_ns;
  device_options.spin_ns = options.spin_ns;
  auto device = Device::open(endpoint, device_options);
  if (!device) return device.error();
  auto backend =
      std::make_unique<ErarBackend>(std::move(*device), endpoint.ranks, options.group_bytes);
  if (auto reserved = backend->reserve_staging(); !reserved) return reserved.error();
  return std::unique_ptr<Backend>(std::move(backend));
}

}  // namespace erar
