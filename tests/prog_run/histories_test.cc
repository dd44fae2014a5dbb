// The loaded XDP program and the native step through the same random histories.
//
// A history is the fuzzer's kind (tests/fuzz/history.h): operations opened and closed, kicks,
// frames right and changed, with a checksum made right again or not. After each step both must have
// done the same: verdict, frame that leaves, counters, slots, states, parking places, signs of
// life, arena. ERAR_PROG_RUN_FRAMES says how many frames at least, ERAR_PROG_RUN_SEED replays one
// history.
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "bpf/host/device.h"
#include "core/session/operation_slot.h"
#include "sim/ring/memory_rank.h"
#include "tests/fuzz/frame_maker.h"
#include "tests/fuzz/history.h"
#include "tests/prog_run/program.h"

namespace erar {
namespace {

using fuzz::Bytes;
using fuzz::Reader;

struct Place {
  unsigned rank;
  unsigned ranks;
  unsigned mtu;
};
// A history's seed says which, modulo their number. Loading the program takes as long as hundreds
// of frames.
constexpr Place kPlaces[] = {{1, 4, 1500}, {0, 2, 250}, {2, 3, 122}, {63, 64, 186}, {3, 5, 3498}};
constexpr unsigned kStepsOfAHistory = 150;
// What a test run of the kernel takes: an Ethernet header at least, one page less headroom and
// skb_shared_info at most.
constexpr std::size_t kSmallestFrame = 14;
constexpr std::size_t kLargestFrame = 3500;

std::uint64_t number_of(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// A rank twice: in the program's maps and in ordinary memory.
class Twins {
 public:
  Twins(Device& device, NativeMemory& maps)
      : device_(device), maps_(maps), config_(device.config()), native_(device.config()) {}

  // From the state after loading on. Empty, or what became different.
  std::string run(std::uint64_t seed) {
    reset();
    std::mt19937_64 random(seed);
    for (unsigned i = 0; i < kStepsOfAHistory; i++) {
      const unsigned next = i == 0 ? unsigned{fuzz::kOpen} : command(random() % 100);
      Bytes bytes(256);
      for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random() >> 32);
      if (random() % 4 != 0) aim(next, bytes);
      Reader reader(bytes.data(), bytes.size());
      std::string what = step(next, reader);
      if (what.empty()) what = different_memory();
      if (!what.empty()) return "step " + std::to_string(i) + ": " + what;
    }
    for (std::size_t i = 0; i < counted_.size(); i++)
      counted_[i] += native_.counter(static_cast<erar_counter>(i));
    return same(maps_.parked_payloads, native_.memory().parked_payloads, parked_bytes())
               ? ""
               : "parked payloads";
  }

  [[nodiscard]] std::uint64_t frames() const { return frames_; }
  // Over all histories.
  [[nodiscard]] const std::array<std::uint64_t, ERAR_COUNTERS>& counted() const { return counted_; }

 private:
  static unsigned command(std::uint64_t percent) {
    return percent < 4    ? fuzz::kOpen
           : percent < 6  ? fuzz::kClose
           : percent < 20 ? fuzz::kKick
           : percent < 65 ? fuzz::kMadeFrame
           : percent < 88 ? fuzz::kSumFrame
           : percent < 90 ? fuzz::kRawFrame
                          : fuzz::kAgainFrame;
  }

  // At the operation that was opened last: most frames would come to closed slots else.
  void aim(unsigned command, Bytes& bytes) const {
    if (command == fuzz::kKick) bytes[0] = static_cast<std::uint8_t>(opened_ % ERAR_SLOTS);
    if (command != fuzz::kMadeFrame && command != fuzz::kSumFrame) return;
    bytes[0] &= 0x7f;
    bytes[1] = static_cast<std::uint8_t>(opened_ % ERAR_SLOTS);
  }

  void reset() {
    for (NativeMemory* memory : {&maps_, &native_.memory()}) {
      std::memset(memory->arena, 0, arena_bytes());
      std::memset(memory->states, 0, config_.arena_segments * sizeof(__u64));
      std::memset(memory->parked_payloads, 0, parked_bytes());
      std::memset(memory->parking, 0, kParkingBytes);
      std::memset(memory->heard, 0, ERAR_MAX_RANKS * sizeof(__u64));
      for (std::uint32_t i = 0; i < ERAR_SLOTS; i++) {
        memory->operations[i] = {};
        memory->operations[i].number = i;
      }
    }
    std::memset(native_.memory().counters, 0, ERAR_COUNTERS * sizeof(std::uint64_t));
    before_ = device_counters();
    received_.clear();
  }

  std::string step(unsigned command, Reader& reader) {
    fuzz::FrameMaker maker(native_.memory(), reader);
    switch (command) {
      case fuzz::kOpen:
        return open(maker.start());
      case fuzz::kClose:
        close(native_.operation(reader.below(ERAR_SLOTS)).number);
        return "";
      case fuzz::kKick: {
        // Now and then of an operation that is not open.
        const std::uint32_t number = native_.operation(reader.below(ERAR_SLOTS)).number;
        return kick(reader.below(16) == 0 ? number + ERAR_SLOTS : number);
      }
      case fuzz::kMadeFrame:
        return receive(maker.changed(maker.made_frame()));
      case fuzz::kSumFrame:
        return receive(maker.changed(maker.sum_frame()));
      case fuzz::kRawFrame:
        return receive(maker.raw_frame());
      default:
        if (received_.empty()) return "";
        return receive(maker.changed(received_[reader.two() % received_.size()]));
    }
  }

  std::string open(const erar_start& start) {
    // The process closes what uses the memory before it writes there, as Retention does.
    for (std::uint32_t i = 0; i < ERAR_SLOTS; i++) {
      const erar_operation& other = native_.operation(i);
      if (other.first_segment < start.first_segment + start.segments &&
          start.first_segment < other.first_segment + other.segments)
        close(other.number);
    }
    for (std::uint32_t i = start.first_segment; i < start.first_segment + start.segments; i++)
      for (NativeMemory* memory : {&maps_, &native_.memory()})
        fuzz::fill(memory->arena + std::size_t{i} * config_.segment_bytes, config_.segment_bytes,
                   start.number * 100 + i);
    opened_ = start.number;
    return open_operation(maps_, start) == native_.start(start) ? "" : "number of kicks";
  }

  void close(std::uint32_t number) {
    close_operation(maps_, number);
    native_.close(number);
  }

  std::string kick(std::uint32_t number) {
    Bytes frame(std::size_t{ERAR_HEADER_BYTES} + config_.segment_bytes);
    erar_write_kick(reinterpret_cast<erar_frame*>(frame.data()), &config_, number);
    Bytes native = frame;
    const Verdict verdict = native_.kick(number, native);
    return different_outcome(run_program(device_.program_fd(), frame, true), verdict, native);
  }

  std::string receive(Bytes frame) {
    if (frame.size() < kSmallestFrame) return "";
    frame.resize(std::min(frame.size(), kLargestFrame));
    received_.push_back(frame);
    Bytes native = frame;
    const Verdict verdict = native_.receive(native);
    return different_outcome(run_program(device_.program_fd(), frame, false), verdict, native);
  }

  std::string different_outcome(const RunOutcome& outcome, Verdict verdict, const Bytes& frame) {
    frames_++;
    if (outcome.action != action_of(verdict))
      return "the program returns " + std::to_string(outcome.action) + ", the native step " +
             std::to_string(action_of(verdict));
    if (verdict != Verdict::kDrop && outcome.frame != frame) return "the frame that leaves";
    const auto now = device_counters();
    for (unsigned i = 0; i < ERAR_COUNTERS; i++) {
      const std::uint64_t expected = native_.counter(static_cast<erar_counter>(i));
      if (now[i] - before_[i] != expected)
        return std::string("counter ") + Device::counter_name(i) + ": " +
               std::to_string(now[i] - before_[i]) + ", of the native step " +
               std::to_string(expected);
    }
    return "";
  }

  [[nodiscard]] std::string different_memory() {
    const NativeMemory& native = native_.memory();
    if (!same(maps_.operations, native.operations, ERAR_SLOTS * sizeof(erar_operation)))
      return "operation slots";
    if (!same(maps_.states, native.states, config_.arena_segments * sizeof(__u64)))
      return "segment states";
    if (!same(maps_.parking, native.parking, kParkingBytes)) return "parking places";
    if (!same(maps_.heard, native.heard, ERAR_MAX_RANKS * sizeof(__u64))) return "signs of life";
    if (!same(maps_.arena, native.arena, arena_bytes())) return "arena";
    for (unsigned cpu = 0; cpu < maps_.mark_count; cpu++)
      if (maps_.marks[cpu].operation != 0) return "a mark stays";
    return "";
  }

  static bool same(const void* a, const void* b, std::size_t bytes) {
    return std::memcmp(a, b, bytes) == 0;
  }

  std::vector<std::uint64_t> device_counters() {
    const auto all = device_.counters();
    return all ? *all : std::vector<std::uint64_t>(ERAR_COUNTERS, ~0ULL);
  }

  static constexpr std::size_t kParkingBytes =
      std::size_t{ERAR_SLOTS} * ERAR_PARK_PLACES * sizeof(erar_parked);
  [[nodiscard]] std::size_t arena_bytes() const {
    return std::size_t{config_.arena_segments} * config_.segment_bytes;
  }
  [[nodiscard]] std::size_t parked_bytes() const {
    return std::size_t{ERAR_SLOTS} * ERAR_PARK_PLACES * config_.segment_bytes;
  }

  Device& device_;
  NativeMemory& maps_;
  erar_config config_;
  sim::MemoryRank native_;
  std::vector<std::uint64_t> before_;  // the device's counters at the history's start
  std::vector<Bytes> received_;
  std::uint32_t opened_ = 0;
  std::uint64_t frames_ = 0;
  std::array<std::uint64_t, ERAR_COUNTERS> counted_{};
};

class ProgRunHistories : public testing::Test {
 protected:
  // A parked frame's tag names the CPU, and the native step says 0.
  void SetUp() override {
    cpu_set_t first;
    CPU_ZERO(&first);
    CPU_SET(0, &first);
    ASSERT_EQ(sched_getaffinity(0, sizeof(before_), &before_), 0);
    ASSERT_EQ(sched_setaffinity(0, sizeof(first), &first), 0) << "this test runs on CPU 0";
  }
  void TearDown() override { sched_setaffinity(0, sizeof(before_), &before_); }

  // Histories of one place: of `only`, or until there are `frames`. Returns how many there were.
  void run_place(std::uint64_t index, std::uint64_t frames, std::optional<std::uint64_t> only) {
    RingEndpoint endpoint = program_endpoint();
    endpoint.rank = kPlaces[index].rank;
    endpoint.ranks = kPlaces[index].ranks;
    endpoint.mtu = kPlaces[index].mtu;
    DeviceOptions options;
    options.arena_segments = fuzz::kArenaSegments;
    options.job = fuzz::kJob;
    options.token = fuzz::kToken;
    auto device = Device::open(endpoint, options);
    ASSERT_TRUE(device) << device.error().message();
    ProgramMaps maps((*device)->config());
    const auto mapped = maps.map((*device)->program_fd());
    ASSERT_TRUE(mapped) << mapped.error().message();
    Twins twins(**device, maps.memory());
    std::uint64_t seed = only.value_or(index);
    do {
      const std::string what = twins.run(seed);
      ASSERT_EQ(what, "") << "rank " << endpoint.rank << " of " << endpoint.ranks << ", MTU "
                          << endpoint.mtu << "; ERAR_PROG_RUN_SEED=" << seed << " replays it";
      seed += std::size(kPlaces);
    } while (!only && twins.frames() < frames);
    frames_ += twins.frames();
    for (std::size_t i = 0; i < counted_.size(); i++) counted_[i] += twins.counted()[i];
  }

  std::uint64_t frames_ = 0;
  std::array<std::uint64_t, ERAR_COUNTERS> counted_{};

 private:
  cpu_set_t before_{};
};

TEST_F(ProgRunHistories, ProgramAndNativeStepDoTheSame) {
  if (std::getenv("ERAR_PROG_RUN_SEED") != nullptr) {
    const std::uint64_t seed = number_of("ERAR_PROG_RUN_SEED", 0);
    run_place(seed % std::size(kPlaces), 0, seed);
    return;
  }
  const std::uint64_t frames = number_of("ERAR_PROG_RUN_FRAMES", 100'000);
  for (std::size_t i = 0; i < std::size(kPlaces) && !HasFatalFailure(); i++)
    run_place(i, frames / std::size(kPlaces) + 1, std::nullopt);
  if (HasFatalFailure()) return;
  std::printf("%llu frames\n", static_cast<unsigned long long>(frames_));
  for (unsigned i = 0; i < ERAR_COUNTERS; i++) {
    std::printf("%12llu %s\n", static_cast<unsigned long long>(counted_[i]),
                Device::counter_name(i));
    // These are the process's own doing, or of a step that found its memory wrong.
    if (i == ERAR_COUNT_RESENT || i == ERAR_COUNT_REQUESTED || i == ERAR_COUNT_LOST ||
        i == ERAR_DROP_INTERNAL)
      continue;
    EXPECT_GT(counted_[i], 0U) << "no frame came to " << Device::counter_name(i);
  }
}

}  // namespace
}  // namespace erar
