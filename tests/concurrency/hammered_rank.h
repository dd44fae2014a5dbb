// HammeredRank: one rank's memory with the packet step run over it by several threads, each as a
// CPU of its own; frames for it, and the judge of what leaves and of what lies there.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/protocol/start.h"
#include "core/session/native_step.h"
#include "sim/ring/memory_rank.h"

namespace erar::tests {

struct HammerFrame {
  alignas(64) std::array<std::uint8_t, ERAR_MAX_FRAME_BYTES> bytes;
  std::size_t size = 0;

  [[nodiscard]] const erar_frame& header() const {
    return *reinterpret_cast<const erar_frame*>(bytes.data());
  }
};

// Rank 0 of a ring of four, with operations of 16 whole segments, four to a block, that all lie in
// the same memory. Word w of a rank's share is a + w * b, with an a of the rank, operation and
// segment: sums of any ranks are cheap to tell, and no word is the same in another operation.
class HammeredRank {
 public:
  static constexpr unsigned kRanks = 4;
  static constexpr std::uint32_t kSegments = 16;
  static constexpr std::uint32_t kPerBlock = kSegments / kRanks;
  static constexpr std::uint32_t kWindow = 2;

  explicit HammeredRank(unsigned cpus);

  // Each thread has a view of its own: mark and counters are a CPU's.
  [[nodiscard]] NativeMemory& on_cpu(unsigned cpu) { return views_[cpu]; }
  [[nodiscard]] std::uint64_t counted(erar_counter counter) const;  // by all CPUs
  [[nodiscard]] std::uint64_t completions() const;
  void reset_counts();

  // Eight operations are added word by word, the next eight lane by lane: another loop of the step.
  static erar_start start_of(std::uint32_t operation);
  void fill(std::uint32_t operation);  // with this rank's shares
  // A frame that arrives here, as the ranks before this one make it.
  void write_frame(HammerFrame& frame, erar_type type, std::uint32_t hop, std::uint32_t segment,
                   std::uint32_t operation);

  Verdict receive(unsigned cpu, HammerFrame& frame);
  // What the process makes: a kick's frame, and what it sends for a segment that is overdue.
  Verdict kick(unsigned cpu, std::uint32_t operation, HammerFrame& frame);
  Verdict resend(unsigned cpu, std::uint32_t operation, std::uint32_t segment, HammerFrame& frame);

  static std::uint32_t block_of(std::uint32_t segment) { return segment / kPerBlock; }
  // Links from the segment's origin to this rank.
  static std::uint32_t links_to(std::uint32_t segment) {
    return erar_links_from(block_of(segment), 0, kRanks);
  }
  [[nodiscard]] erar_segment_state state_of(std::uint32_t segment, std::uint32_t operation) const;
  [[nodiscard]] const erar_operation& slot(std::uint32_t operation) const {
    return rank_.operation(operation);
  }

  // What is wrong with a frame that leaves, whatever operation it says it is of; empty: nothing.
  [[nodiscard]] std::string fault_of(const HammerFrame& frame) const;
  // What is wrong with the memory of a segment that must be this rank's share, or the sum.
  [[nodiscard]] std::string fault_of_share(std::uint32_t segment, std::uint32_t operation);
  [[nodiscard]] std::string fault_of_sum(std::uint32_t segment, std::uint32_t operation);

 private:
  struct alignas(64) Cpu {
    std::array<std::uint64_t, ERAR_COUNTERS> counters{};
    std::uint64_t completions = 0;
  };
  [[nodiscard]] std::string fault_of_memory(std::uint32_t segment, std::uint32_t operation,
                                            unsigned ranks);

  sim::MemoryRank rank_;
  std::vector<erar_mark> marks_;
  std::vector<Cpu> cpus_;
  std::vector<NativeMemory> views_;
};

}  // namespace erar::tests
