// Pipeline: one allreduce as groups in flight: scales, quantise or copy in, ring, copy out.
//
// The first operation of a call is one segment, the same whatever is called: it carries the ranks'
// signatures, which tell whether all make the same call, and what a small call needs besides: its
// lanes, or the first group's records. Floats out of place are read from cold memory once: a
// group is quantised by the scale that its own values suggest, and only blocks whose agreed scale
// is another are quantised again.
//
// Sums in a caller's registered memory are read, or handed to the caller, when all ranks have them:
// a rank may be asked to send them again. After the last group an operation of one chunk tells.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/collective/arena.h"
#include "core/collective/call_record.h"
#include "core/collective/codec.h"
#include "core/collective/group_plan.h"
#include "core/collective/retention.h"
#include "core/collective/staging.h"
#include "core/collective/undo.h"
#include "core/session/ring_device.h"

namespace erar {

// Data operations on the ring at a time. One: the CPUs that the ring leaves idle quantise
// meanwhile, and the frames of two operations (one ending, one starting) fit a veth queue with the
// default window.
inline constexpr unsigned kDataInFlight = 1;

struct PipelineRequest {
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  std::size_t count = 0;
  std::optional<ArenaRange> in_place;  // input == output == registered memory, lanes fit
  bool whole = false;                  // in place and one group; equal on all ranks
  bool is_float = true;
  bool refuse_not_finite = true;  // groups that hold a NaN or infinity need not be reduced
  bool checksum = true;
  std::size_t group_bytes = 0;
  CallSignature signature{};
  // Takes what the output held where it is overwritten before the call is sure to succeed; not of
  // memory in which the ring itself adds.
  Undo* undo = nullptr;
};

// What a pipeline that ran to its end found out.
enum class PipelineEnd {
  kReduced,    // the output is complete
  kDisagreed,  // the ranks' calls differ: nothing was written to the output (registered memory
               // may have been), and all ranks know
};

class Pipeline {
 public:
  Pipeline(RingDevice& device, const Arena& arena, const Staging& staging, Retention& retention,
           Codec& codec, const PipelineRequest& request, std::uint32_t first_operation);

  // Bytes of lanes or records that a call's first operation has room for.
  [[nodiscard]] static std::size_t opening_room(const Staging& staging) {
    return staging.openings[0].bytes - sizeof(CallSignature);
  }

  // Error: time-out of the ring.
  Result<PipelineEnd> run();

  // After kReduced: the first operation number that is still unused.
  [[nodiscard]] std::uint32_t next_operation() const;
  // After kDisagreed: the operations that were opened.
  [[nodiscard]] const std::vector<std::uint32_t>& opened() const { return opened_; }
  // Some rank had an element that is not finite, as every rank knows alike.
  [[nodiscard]] bool not_finite() const { return not_finite_; }
  // First elements and lengths of the groups that held such, where records told.
  struct ElementRange {
    std::size_t first = 0;
    std::size_t count = 0;
  };
  [[nodiscard]] const std::vector<ElementRange>& not_finite_groups() const {
    return not_finite_groups_;
  }
  // Time spent waiting before the first data was on its way, where scales are agreed on.
  [[nodiscard]] std::uint64_t agreement_ns() const { return agreement_ns_; }

 private:
  [[nodiscard]] bool has_scales() const { return codec_.format().has_scales; }
  [[nodiscard]] std::size_t group_first(std::size_t group) const;
  [[nodiscard]] std::size_t group_count(std::size_t group) const;
  [[nodiscard]] CodecPart part(std::size_t group) const;
  [[nodiscard]] ArenaRange data_range(std::size_t group) const;
  [[nodiscard]] ArenaRange record_range(std::size_t group) const;
  [[nodiscard]] std::byte* records(std::size_t group) const;
  [[nodiscard]] std::uint32_t record_operation(std::size_t group) const;
  [[nodiscard]] std::uint32_t data_operation(std::size_t group) const;
  [[nodiscard]] bool opening_has_records(std::size_t group) const {
    return group == 0 && records_in_opening_;
  }
  [[nodiscard]] std::byte* opening() const { return arena_.segment(opening_.first_segment); }
  // Whether all ranks have to have the sums before they are read.
  [[nodiscard]] bool must_close() const { return request_.in_place && plan_.groups > 0; }
  [[nodiscard]] unsigned& area_of(std::size_t group) { return areas_[group % areas_.size()]; }
  [[nodiscard]] const Staging::Area& area(std::size_t group) const {
    return staging_.areas[areas_[group % areas_.size()]];
  }
  [[nodiscard]] bool may_announce() const;
  [[nodiscard]] bool may_prepare() const;
  [[nodiscard]] bool may_start() const;
  [[nodiscard]] bool may_complete() const;
  [[nodiscard]] bool may_finish() const;

  Result<bool> advance();
  Result<void> wait();
  Result<void> open_call();
  void take_opening();
  void complete(std::size_t group);
  Result<void> start_records(std::size_t group);
  void prepare(std::size_t group);
  Result<void> start_data(std::size_t group);
  Result<void> start_closing();
  void keep_output(std::size_t first, std::size_t count);
  void finish(std::size_t group);
  void note_group(std::size_t group);
  Result<void> start(std::uint32_t number, const ArenaRange& range, const erar_combine& combine,
                     bool check);

  RingDevice& device_;
  const Arena& arena_;
  const Staging& staging_;
  Retention& retention_;
  Codec& codec_;
  PipelineRequest request_;
  GroupPlan plan_;
  std::uint32_t first_operation_;
  bool data_in_opening_ = false;
  bool records_in_opening_ = false;
  ArenaRange opening_;
  std::array<unsigned, Retention::kAreas> areas_{};  // of groups in work
  // This rank's records, by which a group is quantised already, by area.
  std::array<std::vector<std::byte>, kPipelineDepth> own_records_;
  // Groups that have passed each stage; every stage takes groups in order.
  std::size_t announced_ = 0;
  std::size_t prepared_ = 0;
  std::size_t started_ = 0;
  std::size_t completed_ = 0;  // on the ring
  std::size_t finished_ = 0;
  enum class Closing { kNotYet, kUnderWay, kDone };
  Closing closing_ = Closing::kNotYet;
  bool opened_call_ = false;
  bool agreed_ = false;
  bool disagreed_ = false;
  // Groups whose agreed records say that some rank has a NaN or infinity there, by area, when
  // these are refused: no data of theirs is sent. All ranks skip the same groups, and every other
  // group runs to its end.
  std::array<bool, kPipelineDepth> skipped_{};
  bool not_finite_ = false;
  std::vector<ElementRange> not_finite_groups_;
  std::vector<std::uint32_t> opened_;
  std::uint64_t agreement_ns_ = 0;
};

}  // namespace erar
