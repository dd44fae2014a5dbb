// The eRAR backend: a device and the allreduce that runs over it.
#include "bpf/host/erar_backend.h"

#include <array>
#include <cstring>

#include "bpf/host/device.h"
#include "core/collective/ring_allreduce.h"
#include "core/collective/solo_allreduce.h"

namespace erar {
namespace {

class ErarBackend final : public Backend {
 public:
  ErarBackend(std::unique_ptr<Device> device, std::unique_ptr<RingAllreduce> ring)
      : device_(std::move(device)), ring_(std::move(ring)) {}

  Result<std::span<std::byte>> allocate(std::size_t bytes) override {
    return ring_->allocate(bytes);
  }
  Result<void> allreduce(const void* input, void* output, std::size_t count,
                         const Reduction& reduction) override {
    return ring_->allreduce(input, output, count, reduction);
  }
  [[nodiscard]] std::uint64_t agreement_ns() const override { return ring_->agreement_ns(); }
  std::vector<std::pair<std::string, std::uint64_t>> counters() override {
    std::vector<std::pair<std::string, std::uint64_t>> named;
    const auto values = device_->counters();
    if (!values) return named;
    for (unsigned i = 0; i < values->size(); i++)
      named.emplace_back(Device::counter_name(i), (*values)[i]);
    return named;
  }

 private:
  std::unique_ptr<Device> device_;
  std::unique_ptr<RingAllreduce> ring_;
};

// A group of one: every result is the rank's own input, and there is nothing to load.
class SoloBackend final : public Backend {
 public:
  Result<std::span<std::byte>> allocate(std::size_t bytes) override {
    buffers_.emplace_back(new (std::align_val_t{64}) std::byte[bytes]());
    return std::span<std::byte>(buffers_.back().get(), bytes);
  }
  Result<void> allreduce(const void* input, void* output, std::size_t count,
                         const Reduction& reduction) override {
    return solo_allreduce(input, output, count, reduction);
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
  const std::size_t segments = RingAllreduce::arena_segments(
      options.group_bytes, options.registered_bytes, segment_bytes);
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
  RingAllreduceOptions ring_options;
  ring_options.group_bytes = options.group_bytes;
  ring_options.checksum = options.checksum;
  auto ring = RingAllreduce::open(**device, ring_options);
  if (!ring) return ring.error();
  return std::unique_ptr<Backend>(new ErarBackend(std::move(*device), std::move(*ring)));
}

}  // namespace erar
