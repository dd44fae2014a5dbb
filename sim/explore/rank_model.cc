// SPDX-License-Identifier: BSD-2-Clause
// RankModel: memory that is written from a few bytes, and told in a few bytes again.
#include "sim/explore/rank_model.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "core/protocol/packet.h"
#include "core/session/operation_slot.h"
#include "core/session/ring_config.h"
#include "core/session/ring_watch.h"
#include "sim/explore/interrupted_step.h"
#include "sim/explore/payload.h"

namespace erar::sim {
namespace {

constexpr std::uint64_t kPatience_ns = 1'000'000'000'000'000;

erar_config config_of(const Scenario& scenario, unsigned rank) {
  RingEndpoint endpoint;
  endpoint.rank = rank;
  endpoint.ranks = scenario.ranks;
  endpoint.mtu = scenario.segment_bytes() + ERAR_HEADER_BYTES - ERAR_LINK_HEADER_BYTES;
  const auto made = make_ring_config(
      endpoint, std::min(scenario.areas, scenario.operations) * scenario.segments, 1, 0x5eed);
  erar_config config = *made;
  config.window = scenario.window;
  return config;
}

// The checksum of a frame with these headers, and a payload whose words sum to payload_sum.
std::uint64_t checksum_of(const erar_frame& header, std::uint64_t payload_sum) {
  erar_packet packet{};
  packet.type = header.type;
  packet.hop = header.hop;
  packet.block = ERAR_BE16(header.block);
  packet.segment = ERAR_BE32(header.segment);
  packet.operation = ERAR_BE32(header.operation);
  packet.payload_bytes = ERAR_BE16(header.payload_bytes);
  packet.checksum = payload_sum;
  return erar_wire_checksum(&packet);
}

std::string word_text(std::uint64_t word) {
  std::string text = "tag " + std::to_string(word >> 32) + ", ranks";
  for (unsigned rank = 0; rank < Scenario::kMaxRanks; rank++)
    text += " " + std::to_string(word >> (8 * rank) & 0xff);
  return text;
}

}  // namespace

RankModel::RankModel(const Scenario& scenario, unsigned rank)
    : scenario_(scenario), rank_(rank), memory_(config_of(scenario, rank)) {}

unsigned RankModel::operation_of(std::uint32_t number) const {
  unsigned operation = 0;
  while (operation < scenario_.operations && scenario_.number(operation) != number) operation++;
  return operation;
}

std::uint64_t RankModel::expected_word(const RingFrame& frame) const {
  if (frame.type == ERAR_REQUEST) return 0;
  const unsigned count = frame.type == ERAR_REDUCE_SCATTER ? unsigned{frame.hop} : scenario_.ranks;
  return partial_word(frame.operation, frame.segment, scenario_.block_of(frame.segment), count,
                      scenario_.ranks);
}

// The frame that may lie in the place: a block's first segments are in places of their own.
RingFrame RankModel::early_frame(unsigned operation, unsigned place) const {
  const unsigned block = place / scenario_.window;
  unsigned segment = scenario_.block_begin(block);
  while (segment % scenario_.window != place % scenario_.window) segment++;
  RingFrame frame;
  frame.type = ERAR_REDUCE_SCATTER;
  frame.hop = static_cast<std::uint8_t>(erar_links_from(block, rank_, scenario_.ranks));
  frame.operation = static_cast<std::uint8_t>(operation);
  frame.segment = static_cast<std::uint8_t>(segment);
  return frame;
}

void RankModel::load_slot(const RankState& state, unsigned slot) {
  const SlotState& from = state.slots[slot];
  erar_operation& to = memory_.memory().operations[slot];
  std::memset(&to, 0, offsetof(erar_operation, unpark));
  to.kicks = from.kicks;
  to.own_next = from.own_next;
  to.finals = from.finals;
  to.done = from.done;
  to.open = from.open;
  to.unpark_count = from.unparks;
  to.number = slot;
  kicks_due_[slot] = from.kicks_due;
  if (from.operation == 0) return;
  const unsigned operation = from.operation - 1U;
  to.number = scenario_.number(operation);
  to.first_segment = area_of(scenario_, operation) * scenario_.segments;
  to.segments = scenario_.segments;
  to.last_bytes = scenario_.payload_bytes(scenario_.segments - 1);
  to.own_begin = scenario_.block_begin(rank_);
  to.own_count = scenario_.block_begin(rank_ + 1) - to.own_begin;
  to.check = 1;
  to.combine = scenario_.combine();
}

void RankModel::load_parked(const RankState& state, unsigned slot) {
  NativeMemory& memory = memory_.memory();
  erar_operation& operation = memory.operations[slot];
  const unsigned places = scenario_.ranks * scenario_.window;
  unsigned unparked = operation.kicks;
  for (unsigned place = 0; place < places; place++) {
    const std::size_t at = std::size_t{slot} * ERAR_PARK_PLACES + place;
    const std::uint8_t tag = state.parked[slot * places + place];
    memory.parking[at] = {};
    if (tag == 0) continue;
    const RingFrame frame = early_frame((tag & ~RankState::kClaimed) - 1U, place);
    const unsigned bytes = scenario_.payload_bytes(frame.segment);
    const std::uint64_t word = expected_word(frame);
    memory.parking[at].checksum = payload_checksum(bytes, word);
    memory.parking[at].block = scenario_.block_of(frame.segment);
    memory.parking[at].segment = frame.segment;
    write_payload(memory.parked_payloads + at * scenario_.segment_bytes(), bytes, word);
    const bool claimed = (tag & RankState::kClaimed) != 0;
    if (claimed) operation.unpark[unparked++] = static_cast<__u16>(place);
    memory.parking[at].tag = erar_park_tag(scenario_.number(frame.operation), claimed ? 0 : bytes,
                                           claimed ? ERAR_PARK_TAKEN : 0);
  }
}

void RankModel::load_arena(const RankState& state) {
  for (unsigned index = 0; index < memory_.config().arena_segments; index++) {
    const int owner = area_owner(scenario_, state, index / scenario_.segments);
    const std::uint8_t code = state.segments[index];
    const unsigned operation = (code >> 2) - 1U;
    memory_.memory().states[index] =
        code == 0
            ? 0
            : erar_state_of(scenario_.number(operation), static_cast<erar_segment_state>(code & 3));
    const unsigned segment = index % scenario_.segments;
    std::uint64_t word = 0;
    if (owner >= 0) {
      const bool has_it = code == ((owner + 1) << 2 | ERAR_FINAL);
      word = partial_word(static_cast<unsigned>(owner), segment, rank_,
                          has_it ? scenario_.ranks : 1, scenario_.ranks);
    }
    write_payload(memory_.segment(index), scenario_.payload_bytes(segment), word);
  }
}

void RankModel::load(const RankState& state) {
  filled_ = state.filled;
  opened_ = state.opened;
  for (unsigned slot = 0; slot < scenario_.slots(); slot++) {
    load_slot(state, slot);
    load_parked(state, slot);
  }
  load_arena(state);
}

void RankModel::save_slot(RankState& state, unsigned slot) const {
  const erar_operation& from = memory_.operation(slot);
  SlotState& to = state.slots[slot];
  const unsigned operation = operation_of(from.number);
  to = {};
  if (operation == scenario_.operations) return;
  to.operation = static_cast<std::uint8_t>(operation + 1);
  to.open = static_cast<std::uint8_t>(from.open);
  to.own_next = static_cast<std::uint8_t>(from.own_next);
  to.finals = static_cast<std::uint8_t>(from.finals);
  to.done = static_cast<std::uint8_t>(from.done);
  // When no kick is to come, nobody looks at what was for kicks.
  if (from.kicks >= kicks_due_[slot]) return;
  to.kicks = static_cast<std::uint8_t>(from.kicks);
  to.kicks_due = kicks_due_[slot];
  to.unparks = static_cast<std::uint8_t>(from.unpark_count);
}

std::string RankModel::save_parked(RankState& state, unsigned slot) {
  NativeMemory& memory = memory_.memory();
  const erar_operation& operation = memory.operations[slot];
  const SlotState& saved = state.slots[slot];
  const unsigned places = scenario_.ranks * scenario_.window;
  std::uint8_t* parked = state.parked.data() + std::size_t{slot} * places;
  for (unsigned place = 0; place < places; place++) {
    const __u64 tag = memory.parking[std::size_t{slot} * ERAR_PARK_PLACES + place].tag;
    parked[place] = 0;
    if (tag == 0) continue;
    const unsigned cpu = erar_park_tag_cpu(tag);
    if (cpu == ERAR_PARK_FILLING) return "a frame is being parked by nobody";
    if (cpu != ERAR_PARK_TAKEN && operation_of(erar_park_tag_operation(tag)) < saved.operation)
      return "a frame is left parked that nobody will resume";
    parked[place] = static_cast<std::uint8_t>((operation_of(erar_park_tag_operation(tag)) + 1) |
                                              (cpu == ERAR_PARK_TAKEN ? RankState::kClaimed : 0));
  }
  unsigned claimed = 0;
  for (unsigned place = 0; place < places; place++)
    claimed += (parked[place] & RankState::kClaimed) != 0;
  unsigned due = 0;
  for (unsigned kick = saved.kicks; kick < saved.unparks; kick++, due++)
    if (parked[operation.unpark[kick]] != (saved.operation | RankState::kClaimed))
      return "another frame is where one waits for its kick";
  if (claimed != due) return "a frame waits for a kick that does not come";
  for (unsigned place = 0; place < places; place++) {
    if (parked[place] == 0) continue;
    const std::size_t at = std::size_t{slot} * ERAR_PARK_PLACES + place;
    const RingFrame frame = early_frame((parked[place] & ~RankState::kClaimed) - 1U, place);
    std::uint64_t word = 0;
    if (!read_payload(memory.parked_payloads + at * scenario_.segment_bytes(),
                      scenario_.payload_bytes(frame.segment), word) ||
        word != expected_word(frame) || memory.parking[at].segment != frame.segment ||
        memory.parking[at].block != scenario_.block_of(frame.segment))
      return "a parked frame is not the one that the place is for: " + word_text(word);
  }
  return {};
}

std::string RankModel::save_arena(RankState& state) {
  for (unsigned index = 0; index < memory_.config().arena_segments; index++) {
    const unsigned segment = index % scenario_.segments;
    const int owner = area_owner(scenario_, state, index / scenario_.segments);
    const __u64 now = memory_.memory().states[index];
    const unsigned operation = operation_of(static_cast<std::uint32_t>(now >> 2));
    std::uint8_t& code = state.segments[index];
    code = now == 0 ? 0 : static_cast<std::uint8_t>((operation + 1) << 2 | (now & 3));
    if (now != 0 && (operation == scenario_.operations || (now & 3) != ERAR_FINAL))
      return "a segment's state says neither own nor final";
    if (owner < 0) continue;
    const bool has_it = code == ((owner + 1) << 2 | ERAR_FINAL);
    std::uint64_t word = 0;
    const bool whole = read_payload(memory_.segment(index), scenario_.payload_bytes(segment), word);
    if (!whole || word != partial_word(static_cast<unsigned>(owner), segment, rank_,
                                       has_it ? scenario_.ranks : 1, scenario_.ranks))
      return (has_it ? "a final segment is not the sum: " : "a share that is not final changed: ") +
             word_text(word);
  }
  return {};
}

std::string RankModel::save(RankState& state) {
  state.filled = filled_;
  state.opened = opened_;
  for (unsigned slot = 0; slot < scenario_.slots(); slot++) {
    save_slot(state, slot);
    if (std::string error = save_parked(state, slot); !error.empty()) return error;
  }
  return save_arena(state);
}

// As the predecessor sends it.
void RankModel::write_frame(const RingFrame& frame) {
  const unsigned bytes = scenario_.payload_bytes(frame.segment);
  const std::uint64_t word = frame.wrong ? frame.word : expected_word(frame);
  erar_frame header{};
  std::memcpy(&header, memory_.config().link, sizeof(memory_.config().link));
  header.ip_total_length = ERAR_BE16(bytes + ERAR_IP_OVERHEAD_BYTES);
  header.udp_length = ERAR_BE16(bytes + ERAR_UDP_OVERHEAD_BYTES);
  header.type = frame.type;
  header.hop = frame.hop;
  header.block = ERAR_BE16(scenario_.block_of(frame.segment));
  header.job = ERAR_BE16(memory_.config().job);
  header.segment = ERAR_BE32(std::uint32_t{frame.segment});
  header.operation = ERAR_BE32(scenario_.number(frame.operation));
  header.token = ERAR_BE32(memory_.config().token);
  header.payload_bytes = ERAR_BE16(bytes);
  header.magic = ERAR_BE16(ERAR_MAGIC);
  header.checksum = checksum_of(header, payload_checksum(bytes, word));
  frame_.resize(ERAR_HEADER_BYTES + bytes);
  std::memcpy(frame_.data(), &header, sizeof(header));
  write_payload(frame_.data() + ERAR_HEADER_BYTES, bytes, word);
}

std::string RankModel::take_frame(std::vector<RingFrame>& sent) const {
  erar_frame header{};
  std::memcpy(&header, frame_.data(), sizeof(header));
  RingFrame frame;
  frame.type = header.type;
  frame.hop = header.hop;
  frame.segment = static_cast<std::uint8_t>(ERAR_BE32(header.segment));
  frame.operation = static_cast<std::uint8_t>(operation_of(ERAR_BE32(header.operation)));
  if (frame.segment >= scenario_.segments || frame.operation >= scenario_.operations ||
      ERAR_BE16(header.block) != scenario_.block_of(frame.segment))
    return "a frame is of no segment";
  const unsigned bytes = scenario_.payload_bytes(frame.segment);
  if (ERAR_BE16(header.payload_bytes) != bytes || frame_.size() != ERAR_HEADER_BYTES + bytes)
    return "a frame is not as long as its segment";
  if (frame.type == ERAR_REQUEST) {
    if (header.checksum != checksum_of(header, 0)) return "a request's checksum is wrong";
  } else {
    const bool whole = read_payload(frame_.data() + ERAR_HEADER_BYTES, bytes, frame.word);
    if (!whole || header.checksum != checksum_of(header, payload_checksum(bytes, frame.word)))
      return "a frame's payload is torn or its checksum wrong: " + word_text(frame.word);
    frame.wrong = frame.word != expected_word(frame);
    if (!frame.wrong) frame.word = 0;
  }
  sent.push_back(frame);
  return {};
}

std::string RankModel::deliver(const RingFrame& frame, std::vector<RingFrame>& sent) {
  write_frame(frame);
  return memory_.receive(frame_) == Verdict::kForward ? take_frame(sent) : std::string();
}

// Returns whether the step got as far as the point.
bool RankModel::deliver_amid(const RingFrame& outer, bool outer_is_resend, unsigned point,
                             const RingFrame* inner, std::vector<RingFrame>& sent,
                             std::string& error) {
  Frame inner_bytes;
  if (inner != nullptr) {
    write_frame(*inner);
    inner_bytes = frame_;
  }
  NativeMemory other = memory_.memory();
  other.mark = &other_mark_;
  NativeFrame inner_frame{inner_bytes.data(), inner_bytes.size()};
  Verdict inner_verdict = Verdict::kDrop;
  Interruption interruption{point, [&] {
                              if (inner == nullptr)
                                open();
                              else
                                inner_verdict = native_step(other, inner_frame, false);
                            }};
  write_frame(outer);
  frame_.resize(ERAR_HEADER_BYTES + scenario_.segment_bytes());
  NativeFrame frame{frame_.data(), ERAR_HEADER_BYTES + scenario_.payload_bytes(outer.segment)};
  const std::uint32_t number = scenario_.number(outer.operation);
  const Verdict verdict = outer_is_resend ? interrupted_resend(memory_.memory(), frame, number,
                                                               scenario_.block_of(outer.segment),
                                                               outer.segment, interruption)
                                          : interrupted_step(memory_.memory(), frame, interruption);
  if (!interruption.happened()) return false;
  if (verdict == Verdict::kForward) {
    frame_.resize(frame.size);
    error = take_frame(sent);
  }
  if (inner_verdict == Verdict::kForward && error.empty()) {
    frame_ = inner_bytes;
    frame_.resize(inner_frame.size);
    error = take_frame(sent);
  }
  return true;
}

void RankModel::fill() {
  const unsigned operation = filled_++;
  const unsigned area = area_of(scenario_, operation);
  if (operation >= scenario_.areas && scenario_.close_before_reuse)
    memory_.close(scenario_.number(operation - scenario_.areas));
  for (unsigned segment = 0; segment < scenario_.segments; segment++)
    write_payload(memory_.segment(area * scenario_.segments + segment),
                  scenario_.payload_bytes(segment), share_word(operation, segment, rank_));
}

void RankModel::open() {
  const unsigned operation = opened_++;
  erar_start start{};
  start.number = scenario_.number(operation);
  start.first_segment = area_of(scenario_, operation) * scenario_.segments;
  start.segments = scenario_.segments;
  start.last_bytes = scenario_.payload_bytes(scenario_.segments - 1);
  start.check = 1;
  start.combine = scenario_.combine();
  kicks_due_[slot_of(scenario_, operation)] = static_cast<std::uint8_t>(memory_.start(start));
}

std::string RankModel::kick(unsigned slot, std::vector<RingFrame>& sent) {
  return memory_.kick(memory_.operation(slot).number, frame_) == Verdict::kForward
             ? take_frame(sent)
             : std::string();
}

std::string RankModel::list_resends(std::vector<RingFrame>& sent) {
  NativeMemory& memory = memory_.memory();
  RingWatch watch(memory, kPatience_ns);
  bool any = false;
  for (unsigned slot = 0; slot < scenario_.slots(); slot++) {
    const erar_operation& operation = memory.operations[slot];
    if (operation.open != ERAR_SLOT_OPEN || operation.done != 0) continue;
    watch.opened(operation.number, 1);
    any = true;
  }
  if (!any) return {};
  std::string error;
  watch.begin(1);
  // The first look finds what is missing, the second finds it overdue.
  for (const std::uint64_t now_ns : {std::uint64_t{1}, kPatience_ns / 100})
    (void)watch.look({}, now_ns, kPatience_ns, [&](std::span<const std::uint8_t> frame) {
      frame_.assign(frame.begin(), frame.end());
      if (error.empty()) error = take_frame(sent);
    });
  return error;
}

}  // namespace erar::sim
