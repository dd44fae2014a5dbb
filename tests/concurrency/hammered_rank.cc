// HammeredRank: views of one memory, and shares whose sums are known.
#include "tests/concurrency/hammered_rank.h"

#include <cstring>

#include "core/mix64.h"
#include "core/protocol/lanes.h"
#include "core/protocol/packet.h"
#include "sim/ring/memory_ring.h"

namespace erar::tests {
namespace {

constexpr unsigned kMtu = 3498;
constexpr std::uint32_t kBytes = ERAR_MAX_SEGMENT_BYTES;
constexpr std::uint32_t kWords = kBytes / 8;
constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15ULL;

// The shares of `ranks` ranks from the segment's origin on, added up.
struct Sum {
  std::uint64_t first = 0;
  std::uint64_t step = 0;

  Sum(std::uint32_t from, unsigned ranks, std::uint32_t segment, std::uint32_t operation) {
    for (unsigned i = 0; i < ranks; i++) {
      const std::uint64_t rank = (from + i) % HammeredRank::kRanks;
      first += mix64(std::uint64_t{operation} << 32 | rank << 16 | segment);
      step += kStep;
    }
  }
  void write(std::uint8_t* to) const {
    auto* words = reinterpret_cast<std::uint64_t*>(to);
    for (std::uint32_t i = 0; i < kWords; i++) words[i] = first + i * step;
  }
  // The first word that is another, or kWords.
  [[nodiscard]] std::uint32_t differs(const std::uint8_t* at) const {
    const auto* words = reinterpret_cast<const std::uint64_t*>(at);
    std::uint64_t other = 0;
    for (std::uint32_t i = 0; i < kWords; i++) other |= words[i] ^ (first + i * step);
    if (other == 0) return kWords;
    std::uint32_t i = 0;
    while (words[i] == first + i * step) i++;
    return i;
  }
};

erar_packet packet_of(const erar_frame& header) {
  return {header.type,
          header.hop,
          ERAR_BE16(header.block),
          ERAR_BE32(header.segment),
          ERAR_BE32(header.operation),
          ERAR_BE16(header.payload_bytes),
          0};
}

std::uint64_t checksum_of(const HammerFrame& frame) {
  erar_packet packet = packet_of(frame.header());
  const std::uint8_t* payload = frame.bytes.data() + ERAR_HEADER_BYTES;
  // Of a request's payload nothing is said.
  if (packet.type != ERAR_REQUEST)
    packet.checksum =
        erar_sum_words(payload, frame.bytes.data() + frame.size, ERAR_MAX_CHUNKS, ERAR_MAX_CHUNKS);
  return erar_wire_checksum(&packet);
}

std::string text_of(const char* what, const erar_packet& packet) {
  return std::string(what) + ": type " + std::to_string(packet.type) + " hop " +
         std::to_string(packet.hop) + " segment " + std::to_string(packet.segment) + " operation " +
         std::to_string(packet.operation);
}

}  // namespace

HammeredRank::HammeredRank(unsigned cpus)
    : rank_(sim::memory_ring_config(0, kRanks, kMtu, kSegments, 0x5eed, kWindow)),
      marks_(cpus),
      cpus_(cpus),
      views_(cpus, rank_.memory()) {
  for (unsigned cpu = 0; cpu < cpus; cpu++) {
    views_[cpu].mark = &marks_[cpu];
    views_[cpu].counters = cpus_[cpu].counters.data();
    views_[cpu].completions = &cpus_[cpu].completions;
    views_[cpu].marks = marks_.data();
    views_[cpu].mark_count = cpus;
  }
}

std::uint64_t HammeredRank::counted(erar_counter counter) const {
  std::uint64_t sum = 0;
  for (const Cpu& cpu : cpus_) sum += cpu.counters[counter];
  return sum;
}

std::uint64_t HammeredRank::completions() const {
  std::uint64_t sum = 0;
  for (const Cpu& cpu : cpus_) sum += cpu.completions;
  return sum;
}

void HammeredRank::reset_counts() {
  for (Cpu& cpu : cpus_) cpu = {};
}

erar_start HammeredRank::start_of(std::uint32_t operation) {
  erar_start start{};
  start.number = operation;
  start.segments = kSegments;
  start.last_bytes = kBytes;
  start.check = 1;
  if (operation / ERAR_SLOTS % 2 == 0) {
    start.combine.loop = ERAR_ADD_LANES;
    start.combine.lane_shift = 63;
    start.combine.lane_high = ERAR_HIGH_OF_LANES64;
  }
  return start;
}

void HammeredRank::fill(std::uint32_t operation) {
  for (std::uint32_t segment = 0; segment < kSegments; segment++)
    Sum(0, 1, segment, operation).write(rank_.segment(segment));
}

void HammeredRank::write_frame(HammerFrame& frame, erar_type type, std::uint32_t hop,
                               std::uint32_t segment, std::uint32_t operation) {
  auto* header = reinterpret_cast<erar_frame*>(frame.bytes.data());
  frame.size = ERAR_HEADER_BYTES + kBytes;
  erar_write_kick(header, &rank_.config(), operation);
  header->type = static_cast<__u8>(type);
  header->hop = static_cast<__u8>(hop);
  header->block = ERAR_BE16(static_cast<__u16>(block_of(segment)));
  header->segment = ERAR_BE32(segment);
  header->payload_bytes = ERAR_BE16(kBytes);
  const unsigned ranks = type == ERAR_REDUCE_SCATTER ? hop : kRanks;
  Sum(block_of(segment), ranks, segment, operation).write(frame.bytes.data() + ERAR_HEADER_BYTES);
  header->checksum = checksum_of(frame);
}

Verdict HammeredRank::receive(unsigned cpu, HammerFrame& frame) {
  NativeFrame native{frame.bytes.data(), frame.size};
  const Verdict verdict = native_step(views_[cpu], native, false);
  frame.size = native.size;
  return verdict;
}

Verdict HammeredRank::kick(unsigned cpu, std::uint32_t operation, HammerFrame& frame) {
  NativeFrame native{frame.bytes.data(), frame.bytes.size()};
  const Verdict verdict = native_kick(views_[cpu], native, operation);
  frame.size = native.size;
  return verdict;
}

Verdict HammeredRank::resend(unsigned cpu, std::uint32_t operation, std::uint32_t segment,
                             HammerFrame& frame) {
  NativeFrame native{frame.bytes.data(), frame.bytes.size()};
  const Verdict verdict = native_resend(views_[cpu], native, operation, block_of(segment), segment);
  frame.size = native.size;
  return verdict;
}

erar_segment_state HammeredRank::state_of(std::uint32_t segment, std::uint32_t operation) const {
  const __u64 state = __atomic_load_n(&views_[0].states[segment], __ATOMIC_ACQUIRE);
  return state >> 2 == operation ? static_cast<erar_segment_state>(state & 3) : ERAR_OWN;
}

std::string HammeredRank::fault_of(const HammerFrame& frame) const {
  const erar_frame& header = frame.header();
  const erar_packet packet = packet_of(header);
  if (frame.size != ERAR_HEADER_BYTES + kBytes || packet.payload_bytes != kBytes)
    return text_of("wrong length", packet);
  if (packet.segment >= kSegments || packet.block != block_of(packet.segment))
    return text_of("wrong place", packet);
  const std::uint32_t hop = links_to(packet.segment) + 1;
  const bool reduces = packet.type == ERAR_REDUCE_SCATTER || packet.type == ERAR_REQUEST;
  if (packet.hop != (reduces ? hop : hop + kRanks) &&
      !(packet.hop == kRanks && hop == kRanks && !reduces))
    return text_of("wrong hop", packet);
  if (header.checksum != checksum_of(frame)) return text_of("wrong checksum", packet);
  if (packet.type == ERAR_REQUEST) return {};
  const Sum sum(packet.block, packet.type == ERAR_REDUCE_SCATTER ? packet.hop : kRanks,
                packet.segment, packet.operation);
  const std::uint32_t word = sum.differs(frame.bytes.data() + ERAR_HEADER_BYTES);
  if (word == kWords) return {};
  return text_of("wrong payload", packet) + " from word " + std::to_string(word);
}

std::string HammeredRank::fault_of_memory(std::uint32_t segment, std::uint32_t operation,
                                          unsigned ranks) {
  const std::uint32_t word = Sum(0, ranks, segment, operation).differs(rank_.segment(segment));
  if (word == kWords) return {};
  return "memory of segment " + std::to_string(segment) + " operation " +
         std::to_string(operation) + " from word " + std::to_string(word);
}

std::string HammeredRank::fault_of_share(std::uint32_t segment, std::uint32_t operation) {
  return fault_of_memory(segment, operation, 1);
}

std::string HammeredRank::fault_of_sum(std::uint32_t segment, std::uint32_t operation) {
  return fault_of_memory(segment, operation, kRanks);
}

}  // namespace erar::tests
