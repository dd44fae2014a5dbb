// The packet step under libFuzzer: a history of operations and frames at one rank, every step
// judged.
//
// The bytes say ranks, rank, MTU and window, then commands. Before each step the judge says what
// must happen; all memory that has nothing to do with that is poisoned, so even reading it is a
// report.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "core/protocol/start.h"
#include "core/session/operation_slot.h"
#include "core/session/ring_config.h"
#include "tests/fuzz/frame_maker.h"
#include "tests/fuzz/history.h"
#include "tests/fuzz/judge.h"

namespace erar::fuzz {
namespace {

constexpr std::size_t kMostSteps = 200;

// How many steps were judged, said at the end: libFuzzer counts histories.
std::uint64_t steps_judged = 0;
void say_steps() {
  std::fprintf(stderr, "%llu steps judged\n", static_cast<unsigned long long>(steps_judged));
}

[[noreturn]] void wrong(const char* what, const char* where) {
  std::fprintf(stderr, "step_fuzzer: %s: %s\n", where, what);
  std::abort();
}

erar_config config_of(std::uint32_t rank, std::uint32_t ranks, std::uint32_t mtu,
                      std::uint32_t window) {
  RingEndpoint endpoint;
  endpoint.rank = rank;
  endpoint.ranks = ranks;
  endpoint.mtu = mtu;
  endpoint.window = window;
  endpoint.source_mac = {2, 0, 0, 0, 1, static_cast<std::uint8_t>(rank)};
  endpoint.next_mac = {2, 0, 0, 0, 2, static_cast<std::uint8_t>(rank)};
  endpoint.source_ipv4 = 0x0a4e0001U + (rank << 8);
  endpoint.next_ipv4 = 0x0a4e0002U + (rank << 8);
  return *make_ring_config(endpoint, kArenaSegments, kJob, kToken);
}

// What the harness looks at before a step, to be compared afterwards.
struct Before {
  GuardedRank::Snapshot snapshot;
  GuardedRank::Counters counters;
  Bytes share, next, parked_payload;
  erar_parked parked{};
};

class History {
 public:
  History(GuardedRank& rank, GuardedRank& successor, ParkedHeaders& parked, Reader& reader)
      : rank_(rank),
        successor_(successor),
        config_(rank.config()),
        parked_(parked),
        reader_(reader),
        maker_(rank.memory(), reader) {}

  void run() {
    for (std::size_t steps = 0; steps < kMostSteps && !reader_.at_end(); steps++) {
      rank_.guard();
      switch (reader_.below(kCommands)) {
        case kOpen:
          open();
          break;
        case kClose:
          close(rank_.operation(reader_.below(ERAR_SLOTS)).number);
          break;
        case kKick:
          kick();
          break;
        case kResend:
          resend();
          break;
        case kAlive:
          alive();
          break;
        case kMadeFrame:
          receive(maker_.changed(maker_.made_frame()));
          break;
        case kSumFrame:
          receive(maker_.changed(maker_.sum_frame()));
          break;
        case kRawFrame:
          receive(maker_.raw_frame());
          break;
        default:
          receive(maker_.changed(again_frame()));
          break;
      }
    }
  }

 private:
  // The process closes what uses the memory before it writes there, as Retention does.
  void open() {
    const erar_start start = maker_.start();
    const erar_operation& slot = rank_.operation(start.number);
    for (std::uint32_t i = 0; i < ERAR_SLOTS; i++) {
      const erar_operation& other = rank_.operation(i);
      if (other.first_segment < start.first_segment + start.segments &&
          start.first_segment < other.first_segment + other.segments)
        close(other.number);
    }
    for (std::uint32_t i = 0; i < start.segments; i++) {
      const std::uint32_t index = start.first_segment + i;
      rank_.allow_segment(index);
      fill(rank_.segment(index), config_.segment_bytes, start.number * 100 + i);
    }
    rank_.guard();
    rank_.allow_tags_of(start.number % ERAR_SLOTS);
    const std::uint32_t kicks = open_operation(rank_.memory(), start);
    const std::uint32_t own = slot.own_count < config_.window ? slot.own_count : config_.window;
    if (kicks != slot.unpark_count + own) wrong("number of kicks", "open");
  }

  void close(std::uint32_t number) { close_operation(rank_.memory(), number); }

  void kick() {
    const std::uint32_t slot = reader_.below(2 * ERAR_SLOTS);
    const std::uint32_t number =
        rank_.operation(slot).number + (slot < ERAR_SLOTS ? 0 : ERAR_SLOTS);
    kicked_ = number;
    run_step("kick", judge_kick(rank_, number, parked_), 72U + config_.segment_bytes, nullptr,
             [&](NativeFrame& frame) { return native_kick(rank_.memory(), frame, number); });
  }

  void resend() {
    const erar_operation& slot = rank_.operation(reader_.below(ERAR_SLOTS));
    const std::uint32_t block = reader_.below(config_.ranks);
    const std::uint32_t segment =
        first_of_block(slot.segments, config_.ranks, block) + reader_.below(8);
    if (slot.open != ERAR_SLOT_OPEN) return;
    run_step("resend", judge_resend(rank_, slot.number, block, segment),
             72U + config_.segment_bytes, nullptr, [&](NativeFrame& frame) {
               return native_resend(rank_.memory(), frame, slot.number, block, segment);
             });
  }

  void alive() {
    Expectation expected;
    expected.verdict = Verdict::kForward;
    expected.sent.type = 6;
    expected.sent.hop = 1;
    expected.sent.block = static_cast<std::uint16_t>(config_.rank);
    expected.sent.payload_bytes = 64;
    expected.sent_is_sealed = true;
    run_step("alive", expected, 72U + config_.segment_bytes, nullptr,
             [&](NativeFrame& frame) { return native_alive(rank_.memory(), frame); });
  }

  void receive(Bytes bytes) {
    received_.push_back(bytes);
    run_step("frame", judge_frame(rank_, bytes), bytes.size(), &bytes,
             [&](NativeFrame& frame) { return native_step(rank_.memory(), frame, false); });
  }

  Bytes again_frame() {
    const std::uint32_t back = reader_.byte();
    return received_.empty() ? Bytes() : received_[received_.size() - 1 - back % received_.size()];
  }

  template <class Step>
  void run_step(const char* name, const Expectation& expected, std::size_t frame_bytes,
                const Bytes* bytes, Step step) {
    // An allocation of its own: the step must not look behind the frame.
    const std::unique_ptr<std::uint8_t[]> buffer(new std::uint8_t[frame_bytes]);
    if (bytes != nullptr && frame_bytes != 0)
      std::memcpy(buffer.get(), bytes->data(), frame_bytes);
    else
      std::memset(buffer.get(), 0xee, frame_bytes);
    NativeFrame frame{buffer.get(), frame_bytes};
    look(expected);
    steps_judged++;
    const Verdict verdict = step(frame);
    if (verdict != expected.verdict) wrong("verdict", name);
    if (rank_.mark() != 0) wrong("the mark stays", name);
    compare_counters(name, expected);
    compare_memory(name, expected, bytes);
    if (verdict != Verdict::kForward) return;
    const Bytes sent(frame.data, frame.data + frame.size);
    if (const char* what = wrong_about_sent(rank_, expected, sent)) wrong(what, name);
    meet_successor(sent);
  }

  void look(const Expectation& expected) {
    rank_.take(before_.snapshot);
    before_.counters = rank_.counters();
    if (expected.share_at) before_.share = segment(*expected.share_at);
    if (expected.next_at) before_.next = segment(*expected.next_at);
    if (!expected.place) return;
    before_.parked = rank_.parked(*expected.place);
    const std::uint8_t* payload = rank_.parked_payload(*expected.place);
    before_.parked_payload.assign(payload, payload + config_.segment_bytes);
  }

  Bytes segment(std::uint32_t index) {
    return {rank_.segment(index), rank_.segment(index) + config_.segment_bytes};
  }

  void compare_counters(const char* name, const Expectation& expected) const {
    const GuardedRank::Counters now = rank_.counters();
    for (unsigned i = 0; i < ERAR_COUNTERS; i++) {
      if (now[i] == before_.counters[i] + expected.counts[i]) continue;
      std::fprintf(stderr, "counter %u: %llu, expected %llu\n", i,
                   static_cast<unsigned long long>(now[i] - before_.counters[i]),
                   static_cast<unsigned long long>(expected.counts[i]));
      wrong("counters", name);
    }
  }

  void compare_memory(const char* name, const Expectation& expected, const Bytes* frame) {
    expect_in_slots(expected, frame);
    rank_.take(after_);
    if (std::memcmp(after_.operations.data(), before_.snapshot.operations.data(),
                    sizeof(after_.operations)) != 0)
      wrong("operation slots", name);
    if (after_.states != before_.snapshot.states) wrong("segment states", name);
    if (after_.heard != before_.snapshot.heard) wrong("signs of life", name);
    if (after_.completions != before_.snapshot.completions) wrong("completions", name);
    if (expected.stored_at)
      std::memcpy(before_.share.data(), expected.stored.data(), expected.stored.size());
    if (expected.share_at && segment(*expected.share_at) != before_.share) wrong("segment", name);
    if (expected.next_at && expected.next_at != expected.share_at &&
        segment(*expected.next_at) != before_.next)
      wrong("segment that was started", name);
    if (expected.place) compare_place(name, expected, frame);
  }

  // Changes what was seen before the step into what must be there now.
  void expect_in_slots(const Expectation& expected, const Bytes* frame) {
    auto& operations = before_.snapshot.operations;
    const std::uint32_t number =
        frame != nullptr && frame->size() >= 72 ? read_header(*frame).operation : kicked_;
    if (expected.counts[ERAR_COUNT_ALIVE] != 0) before_.snapshot.heard[read_header(*frame).block]++;
    if (expected.next_at) operations[expected.sent.operation % ERAR_SLOTS].own_next++;
    if (expected.counts[ERAR_COUNT_KICKS] != 0) operations[number % ERAR_SLOTS].kicks++;
    if (!expected.stored_at) return;
    erar_operation& slot = operations[number % ERAR_SLOTS];
    before_.snapshot.states[*expected.stored_at] = std::uint64_t{slot.number} << 2 | ERAR_FINAL;
    if (++slot.finals == slot.segments) {
      slot.done = 1;
      before_.snapshot.completions++;
    }
  }

  void compare_place(const char* name, const Expectation& expected, const Bytes* frame) {
    if (expected.counts[ERAR_COUNT_UNPARKED] != 0) before_.parked.tag = 0;
    if (expected.parked_bytes) {
      const Header header = parked_[*expected.place] = read_header(*frame);
      before_.parked.tag = std::uint64_t{header.operation} << 32 | header.payload_bytes;
      before_.parked.checksum = header.checksum - right_checksum(header, nullptr);
      before_.parked.block = header.block;
      before_.parked.segment = header.segment;
      std::memcpy(before_.parked_payload.data(), frame->data() + 72, header.payload_bytes);
    }
    const std::uint8_t* payload = rank_.parked_payload(*expected.place);
    if (std::memcmp(payload, before_.parked_payload.data(), config_.segment_bytes) != 0)
      wrong("parked payload", name);
    const erar_parked& parked = rank_.parked(*expected.place);
    if (parked.tag != before_.parked.tag || parked.checksum != before_.parked.checksum ||
        parked.block != before_.parked.block || parked.segment != before_.parked.segment)
      wrong("parking place", name);
  }

  // Where no operation is open: whatever was sent must get past the parser there.
  void meet_successor(const Bytes& sent) {
    successor_.guard();
    const Expectation expected = judge_frame(successor_, sent);
    if (expected.counts[ERAR_COUNT_PACKETS] != 1 || expected.outcome == ERAR_DROP_MISROUTED)
      wrong("would be refused", "successor");
    const GuardedRank::Counters before = successor_.counters();
    Bytes copy = sent;
    NativeFrame frame{copy.data(), copy.size()};
    if (native_step(successor_.memory(), frame, false) != expected.verdict)
      wrong("verdict", "successor");
    for (unsigned i = 0; i < ERAR_COUNTERS; i++)
      if (successor_.counters()[i] != before[i] + expected.counts[i])
        wrong("counters", "successor");
  }

  GuardedRank& rank_;
  GuardedRank& successor_;
  const erar_config& config_;
  ParkedHeaders& parked_;  // read only where something was parked in this history
  Reader& reader_;
  FrameMaker maker_;
  std::vector<Bytes> received_;
  Before before_;
  GuardedRank::Snapshot after_;
  std::uint32_t kicked_ = 0;
};

struct World {
  explicit World(std::uint32_t segment_bytes)
      : rank(segment_bytes, kArenaSegments), successor(segment_bytes, kArenaSegments) {}

  GuardedRank rank;
  GuardedRank successor;
  ParkedHeaders parked;
};

}  // namespace

void run_history(const std::uint8_t* data, std::size_t size) {
  // Made once for each segment size and reset: poisoning megabytes takes longer than a history.
  static std::map<std::uint32_t, std::unique_ptr<World>> worlds;
  static const int registered = std::atexit(say_steps);
  static_cast<void>(registered);
  Reader reader(data, size);
  const std::uint32_t ring = kRanks[reader.below(std::size(kRanks))];
  const std::uint32_t rank = reader.below(ring);
  const std::uint32_t link = reader.byte();
  const std::uint32_t mtu = kMtus[link % std::size(kMtus)];
  const std::uint32_t window = kWindows[link / 64];
  const erar_config config = config_of(rank, ring, mtu, window);
  auto& world = worlds[config.segment_bytes];
  if (!world) world = std::make_unique<World>(config.segment_bytes);
  world->rank.reset(config);
  world->successor.reset(config_of((rank + 1) % ring, ring, mtu, window));
  History(world->rank, world->successor, world->parked, reader).run();
}

}  // namespace erar::fuzz

// Where memory was allocated says nothing here, and keeping it takes time.
extern "C" const char* __asan_default_options() {
  return "malloc_context_size=1:quarantine_size_mb=16";
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  erar::fuzz::run_history(data, size);
  return 0;
}
