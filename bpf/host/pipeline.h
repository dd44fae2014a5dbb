// Pipeline: one allreduce as groups in flight: exponents, quantise or copy in, ring, copy out.
//
// Floats out of place are read from cold memory once: a group is quantised by its own exponents
// while these are found, and only blocks in which another rank has a larger one are quantised
// again.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "bpf/host/arena.h"
#include "bpf/host/device.h"
#include "bpf/host/group_plan.h"
#include "core/backend.h"

namespace erar {

// How many groups may be between their first and last stage, each with a staging area of its own.
inline constexpr unsigned kPipelineDepth = 3;
// Data operations on the ring at a time. One: the CPUs that the ring leaves idle quantise
// meanwhile, and the frames of two operations (one ending, one starting) always fit a veth queue.
inline constexpr unsigned kDataInFlight = 1;

struct StagingArea {
  ArenaRange data;
  ArenaRange exponents;
};

struct PipelineRequest {
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  std::size_t count = 0;
  DataType type = DataType::kFloat32;
  std::optional<ArenaRange> in_place;  // input == output == registered memory
  unsigned ranks = 1;
  std::size_t group_bytes = 0;
};

class Pipeline {
 public:
  Pipeline(Device& device, const Arena& arena, const StagingArea* areas,
           const PipelineRequest& request, std::uint32_t first_operation);

  // Runs to the end. Errors: time-out of the ring; NaN or infinity in the input, which all ranks
  // report alike and after which the device can be used again.
  Result<void> run();
  // The first operation number that is still unused.
  [[nodiscard]] std::uint32_t next_operation() const;

 private:
  [[nodiscard]] bool is_float() const { return request_.type == DataType::kFloat32; }
  [[nodiscard]] std::size_t group_offset(std::size_t group) const;
  [[nodiscard]] std::size_t group_bytes(std::size_t group) const;
  [[nodiscard]] ArenaRange data_range(std::size_t group) const;
  [[nodiscard]] std::span<numeric::Exponent> exponents(std::size_t group) const;
  [[nodiscard]] std::uint32_t exponent_operation(std::size_t group) const;
  [[nodiscard]] std::uint32_t data_operation(std::size_t group) const;
  [[nodiscard]] bool may_prepare() const;
  [[nodiscard]] std::span<const float> values(std::size_t group) const;
  [[nodiscard]] std::uint32_t* lanes(std::size_t group) const;
  void prepare_floats(std::size_t group);

  Result<bool> advance();
  Result<void> wait();
  Result<void> start_exponents(std::size_t group);
  void prepare(std::size_t group);
  Result<void> start_data(std::size_t group);
  void finish(std::size_t group);
  Result<void> start(std::uint32_t number, const ArenaRange& range, std::uint32_t combine);

  Device& device_;
  const Arena& arena_;
  const StagingArea* areas_;
  PipelineRequest request_;
  GroupPlan plan_;
  std::uint32_t first_operation_;
  std::size_t bytes_;
  // This rank's exponents by which a group is quantised already, by area.
  std::array<std::vector<numeric::Exponent>, kPipelineDepth> own_exponents_;
  // Groups that have passed each stage; every stage takes groups in order.
  std::size_t announced_ = 0;
  std::size_t prepared_ = 0;
  std::size_t started_ = 0;
  std::size_t finished_ = 0;
  // Groups whose agreed exponents say that some rank has a NaN or infinity there, by area: no data
  // of theirs is sent. All ranks skip the same groups, and every other group runs to its end.
  std::array<bool, kPipelineDepth> skipped_{};
  std::optional<std::size_t> not_finite_;  // first exponent block that holds a NaN or infinity
};

}  // namespace erar
