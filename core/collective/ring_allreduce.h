// RingAllreduce: allreduce calls of one rank over a ring device, one after the other.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/collective/arena.h"
#include "core/collective/call_record.h"
#include "core/collective/pipeline.h"
#include "core/collective/retention.h"
#include "core/collective/staging.h"
#include "core/data_type.h"
#include "core/session/ring_device.h"

namespace erar {

struct RingAllreduceOptions {
  std::size_t group_bytes = 1U << 20;  // of lanes; the size in which buffers are pipelined
  bool checksum = true;
  std::uint64_t goodbye_ns =
      1'000'000'000;  // how long a rank that leaves waits for the others; 0: not
};

class RingAllreduce {
 public:
  // Segments that the device's arena must have for `registered_bytes` that allocate() hands out.
  static std::size_t arena_segments(std::size_t group_bytes, std::size_t registered_bytes,
                                    std::size_t segment_bytes);

  // The device outlives it. Error: the arena is smaller than arena_segments() says.
  static Result<std::unique_ptr<RingAllreduce>> open(RingDevice& device,
                                                     const RingAllreduceOptions& options);

  // Says good-bye: until all ranks do, or for a while at most, this rank still answers those that
  // lost a frame of the last call.
  ~RingAllreduce();
  RingAllreduce(const RingAllreduce&) = delete;
  RingAllreduce& operator=(const RingAllreduce&) = delete;

  // As Backend's functions of these names.
  Result<std::span<std::byte>> allocate(std::size_t bytes);
  Result<void> allreduce(const void* input, void* output, std::size_t count,
                         const Reduction& reduction);
  [[nodiscard]] std::uint64_t agreement_ns() const { return agreement_ns_; }

 private:
  RingAllreduce(RingDevice& device, const RingAllreduceOptions& options);
  Result<void> reduce(const std::byte* input, std::byte* output, std::size_t count,
                      const Reduction& reduction);
  [[nodiscard]] std::span<const float> residual_of(const void* buffer, std::size_t count,
                                                   const Reduction& reduction) const;
  void keep_residual(const void* buffer, DataType type, std::vector<float> values);
  Result<void> explain(const CallRecord& own, const std::vector<std::uint32_t>& opened);
  Result<void> name_offender(const Reduction& reduction,
                             const std::optional<numeric::Offender>& own);
  Result<void> spread_nan(const Codec& codec, const Pipeline::ElementRange& group,
                          const Reduction& reduction, std::byte* output);
  Result<void> exchange(const ArenaRange& range, const erar_combine& combine);
  Result<void> exchange(const ArenaRange& range, const erar_combine& combine,
                        std::uint64_t patience_ns);
  ArenaRange take_exchange(std::size_t bytes);
  void close_all(std::uint32_t end);

  RingDevice& device_;
  RingAllreduceOptions options_;
  Arena arena_;
  Staging staging_;
  Retention retention_;
  Undo undo_;
  std::uint32_t next_operation_ = ERAR_FIRST_OPERATION;
  std::optional<Error> broken_;
  std::uint64_t agreement_ns_ = 0;

  // What compressed calls could not send, by buffer: of so many buffers that were used last.
  static constexpr std::size_t kMostResiduals = 256;
  struct Residual {
    DataType type = DataType::kFloat32;
    std::uint64_t used = 0;  // when, in calls
    std::vector<float> values;
  };
  std::uint64_t residual_clock_ = 0;
  std::map<const void*, Residual> residuals_;
};

}  // namespace erar
