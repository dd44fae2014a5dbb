// RingWatch: lists of missing segments, and what is done about those that are overdue.
#include "core/session/ring_watch.h"

#include <algorithm>
#include <string>

namespace erar {
namespace {

// A process that waits shows it so many times within the time-out.
constexpr std::uint64_t kSignsOfLife = 16;

}  // namespace

RingWatch::RingWatch(NativeMemory& memory, std::uint64_t timeout_ns)
    : memory_(memory),
      timer_(std::max<std::uint64_t>(timeout_ns / 8, 1)),
      roll_call_(memory),
      frame_words_((ERAR_HEADER_BYTES + memory.config->segment_bytes) / 8 + 1) {}

void RingWatch::opened(std::uint32_t operation, std::uint64_t now_ns) {
  retire_done(now_ns);
  Watched& watched = watched_[operation % ERAR_SLOTS];
  const erar_operation& opened = slot(operation);
  watched.number = operation;
  watched.active = opened.segments != 0;
  watched.lost = false;
  watched.opened_ns = now_ns;
  watched.missing.clear();
  watched.first_missing.clear();
  for (std::uint32_t block = 0; watched.active && block < memory_.config->ranks; block++)
    watched.first_missing.push_back(
        erar_block_begin(opened.segments, memory_.config->ranks, block));
}

void RingWatch::retire_done(std::uint64_t now_ns) {
  const std::uint64_t window = std::uint64_t{memory_.config->window} * memory_.config->ranks;
  for (Watched& watched : watched_) {
    if (!watched.active) continue;
    const erar_operation& operation = slot(watched.number);
    const bool is_open = operation.number == watched.number && operation.open == ERAR_SLOT_OPEN;
    const bool is_done = __atomic_load_n(&operation.done, __ATOMIC_ACQUIRE) != 0;
    if (is_open && !is_done) continue;
    // One that lost something says nothing about how long a turn takes (RFC 6298 3).
    if (is_open && !watched.lost)
      timer_.observe(now_ns - watched.opened_ns, (operation.segments + window - 1) / window);
    watched.active = false;
  }
}

// Of a block, at most a window of segments is under way, and they are the first that are missing:
// segments start in order.
void RingWatch::list_block(Watched& watched, std::uint32_t block, std::uint64_t now_ns,
                           std::vector<Missing>& found) const {
  const erar_config& config = *memory_.config;
  const erar_operation& operation = slot(watched.number);
  const __u64 final = erar_state_of(watched.number, ERAR_FINAL);
  const __u64* states = memory_.states + operation.first_segment;
  std::uint32_t end = erar_block_begin(operation.segments, config.ranks, block + 1);
  if (block == config.rank) {
    const std::uint32_t started = __atomic_load_n(&operation.own_next, __ATOMIC_RELAXED);
    end = std::min(end, operation.own_begin + started);
  }
  std::uint32_t& first = watched.first_missing[block];
  while (first < end && __atomic_load_n(&states[first], __ATOMIC_ACQUIRE) == final) first++;
  auto known = std::lower_bound(
      watched.missing.begin(), watched.missing.end(), first,
      [](const Missing& missing, std::uint32_t segment) { return missing.segment < segment; });
  std::uint32_t listed = 0;
  for (std::uint32_t segment = first; segment < end && listed < config.window; segment++) {
    if (__atomic_load_n(&states[segment], __ATOMIC_ACQUIRE) == final) continue;
    while (known != watched.missing.end() && known->segment < segment) ++known;
    const bool was_missing = known != watched.missing.end() && known->segment == segment;
    found.push_back(was_missing ? *known : Missing{segment, block, now_ns, 0});
    listed++;
  }
}

void RingWatch::list_missing(Watched& watched, std::uint64_t now_ns) {
  const erar_config& config = *memory_.config;
  scratch_.clear();
  for (std::uint32_t block = 0; block < config.ranks; block++) {
    // Where this rank is a block's turn rank, only the block's origin can help.
    if (erar_links_from(block, config.rank, config.ranks) == erar_turn_hop(config.ranks)) continue;
    list_block(watched, block, now_ns, scratch_);
  }
  std::swap(watched.missing, scratch_);
}

void RingWatch::resend(Watched& watched, std::uint64_t now_ns, const Send& send) {
  for (Missing& missing : watched.missing) {
    if (now_ns - missing.since_ns < timer_.overdue_ns(missing.tries)) continue;
    if (missing.tries++ == 0) memory_.counters[ERAR_COUNT_LOST]++;
    missing.since_ns = now_ns;
    watched.lost = true;
    NativeFrame frame{reinterpret_cast<std::uint8_t*>(frame_words_.data()), 0};
    if (native_resend(memory_, frame, watched.number, missing.block, missing.segment) ==
        Verdict::kForward)
      send({frame.data, frame.size});
  }
}

std::uint64_t RingWatch::stored(std::span<const std::uint32_t> operations) const {
  std::uint64_t stored = 0;
  for (const std::uint32_t operation : operations)
    stored += __atomic_load_n(&slot(operation).finals, __ATOMIC_RELAXED);
  return stored;
}

Result<void> RingWatch::look(std::span<const std::uint32_t> waited, std::uint64_t now_ns,
                             std::uint64_t patience_ns, const Send& send) {
  retire_done(now_ns);
  roll_call_.look(now_ns);
  for (Watched& watched : watched_) {
    if (!watched.active) continue;
    list_missing(watched, now_ns);
    resend(watched, now_ns, send);
  }
  if (const std::uint64_t now = stored(waited); now != stored_) {
    stored_ = now;
    progress_ns_ = now_ns;
  }
  const std::uint64_t stalled_ns = now_ns - progress_ns_;
  if (stalled_ns >= patience_ns) return gave_up(waited, now_ns, patience_ns);
  const std::uint64_t period_ns = patience_ns / kSignsOfLife;
  if (stalled_ns >= period_ns && now_ns - shown_ns_ >= period_ns) {
    shown_ns_ = now_ns;
    NativeFrame frame{reinterpret_cast<std::uint8_t*>(frame_words_.data()), 0};
    if (native_alive(memory_, frame) == Verdict::kForward) send({frame.data, frame.size});
  }
  return {};
}

Error RingWatch::gave_up(std::span<const std::uint32_t> waited, std::uint64_t now_ns,
                         std::uint64_t patience_ns) const {
  const erar_operation& operation = slot(waited.front());
  return Error{ETIMEDOUT, "rank " + std::to_string(memory_.config->rank) + ": operation",
               std::to_string(waited.front()) + " stopped at " + std::to_string(operation.finals) +
                   " of " + std::to_string(operation.segments) +
                   " segments: " + roll_call_.verdict(progress_ns_, now_ns, patience_ns / 2)};
}

}  // namespace erar
