// RingWatch: lists of missing segments, and what is done about those that are overdue.
#include "core/session/ring_watch.h"

#include <algorithm>
#include <string>

#include "core/mix64.h"

namespace erar {
namespace {

// A process that waits shows it so many times within the time-out.
constexpr std::uint64_t kSignsOfLife = 16;
// Segments of a block that are asked for at least, where there is no sign that their sums exist.
constexpr std::uint32_t kLeastAllowance = 2;
// Frames that a look sends at most.
constexpr unsigned kBurst = 24;

}  // namespace

RingWatch::RingWatch(NativeMemory& memory, std::uint64_t timeout_ns)
    : memory_(memory),
      timer_(std::max<std::uint64_t>(timeout_ns / 8, 1)),
      roll_call_(memory),
      frame_words_((ERAR_HEADER_BYTES + memory.config->segment_bytes) / 8 + 1),
      jitter_(memory.config->rank) {}

// Ranks that wait for each other would otherwise send at the same moments, and lose the same frames
// to a full queue each time.
std::uint64_t RingWatch::due_after(unsigned tries) {
  const std::uint64_t wait_ns = timer_.overdue_ns(tries);
  jitter_ = mix64(jitter_ + 1);
  return wait_ns + jitter_ % (wait_ns / 4 + 1);
}

void RingWatch::opened(std::uint32_t operation, std::uint64_t now_ns) {
  retire_done(now_ns);
  Watched& watched = watched_[operation % ERAR_SLOTS];
  const erar_operation& opened = slot(operation);
  watched.number = operation;
  watched.active = opened.segments != 0;
  watched.lost = false;
  watched.opened_ns = now_ns;
  watched.missing.clear();
  watched.blocks.clear();
  for (std::uint32_t block = 0; watched.active && block < memory_.config->ranks; block++) {
    const std::uint32_t begin = erar_block_begin(opened.segments, memory_.config->ranks, block);
    watched.blocks.push_back({begin, begin, kLeastAllowance});
  }
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
                           std::vector<Missing>& found) {
  const erar_config& config = *memory_.config;
  const erar_operation& operation = slot(watched.number);
  const __u64 final = erar_state_of(watched.number, ERAR_FINAL);
  const __u64* states = memory_.states + operation.first_segment;
  std::uint32_t end = erar_block_begin(operation.segments, config.ranks, block + 1);
  if (block == config.rank) {
    const std::uint32_t started = __atomic_load_n(&operation.own_next, __ATOMIC_RELAXED);
    end = std::min(end, operation.own_begin + started);
  }
  std::uint32_t& first = watched.blocks[block].first_missing;
  while (first < end && __atomic_load_n(&states[first], __ATOMIC_ACQUIRE) == final) first++;
  auto known = std::lower_bound(
      watched.missing.begin(), watched.missing.end(), first,
      [](const Missing& missing, std::uint32_t segment) { return missing.segment < segment; });
  const std::size_t listed_before = found.size();
  std::size_t passed_to = found.size();
  for (std::uint32_t segment = first; segment < end; segment++) {
    if (__atomic_load_n(&states[segment], __ATOMIC_ACQUIRE) == final) {
      passed_to = found.size();
      continue;
    }
    if (found.size() - listed_before == config.window) break;
    while (known != watched.missing.end() && known->segment < segment) ++known;
    const bool was_missing = known != watched.missing.end() && known->segment == segment;
    found.push_back(was_missing ? *known
                                : Missing{segment, block, now_ns + due_after(0), 0, false});
  }
  for (std::size_t i = listed_before; i < passed_to; i++) found[i].passed = true;
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

// All own segments that are due. Others' that have been passed; where there is no sign that a sum
// exists the block's first few only, twice as many each time that this has helped, half as many
// when not.
void RingWatch::list_overdue(Watched& watched, std::uint64_t now_ns) {
  overdue_.clear();
  std::uint32_t block = UINT32_MAX;
  std::uint32_t unsure = 0;
  for (Missing& missing : watched.missing) {
    if (missing.block != block) unsure = 0;
    block = missing.block;
    const bool own = block == memory_.config->rank;
    if (!own && !missing.passed && unsure++ >= watched.blocks[block].allowance) continue;
    if (now_ns >= missing.due_ns) overdue_.push_back(&missing);
  }
}

// Own segments first, since others' sums cannot come before they do, then those that were tried
// least often; a few at a time, or what is sent again would itself fill the queues that lost
// frames.
void RingWatch::resend(Watched& watched, std::uint64_t now_ns, unsigned& budget, const Send& send) {
  list_overdue(watched, now_ns);
  std::stable_sort(overdue_.begin(), overdue_.end(), [this](const Missing* a, const Missing* b) {
    const bool a_asks = a->block != memory_.config->rank;
    const bool b_asks = b->block != memory_.config->rank;
    return a_asks != b_asks ? b_asks : a->tries < b->tries;
  });
  for (Missing* missing : overdue_) {
    if (budget == 0) return;
    budget--;
    if (missing->tries++ == 0) memory_.counters[ERAR_COUNT_LOST]++;
    missing->due_ns = now_ns + due_after(missing->tries);
    watched.lost = true;
    Block& block = watched.blocks[missing->block];
    if (block.asked_at != block.first_missing)
      block.allowance = std::min(2 * block.allowance, memory_.config->window);
    else if (missing->tries > 1)
      block.allowance = std::max(block.allowance / 2, kLeastAllowance);
    block.asked_at = block.first_missing;
    NativeFrame frame{reinterpret_cast<std::uint8_t*>(frame_words_.data()), 0};
    if (native_resend(memory_, frame, watched.number, missing->block, missing->segment) ==
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
  unsigned budget = kBurst;
  for (Watched& watched : watched_) {
    if (!watched.active) continue;
    list_missing(watched, now_ns);
    resend(watched, now_ns, budget, send);
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
  return Error{ETIMEDOUT, "operation",
               std::to_string(waited.front()) + " stopped at " + std::to_string(operation.finals) +
                   " of " + std::to_string(operation.segments) +
                   " segments: " + roll_call_.verdict(progress_ns_, now_ns, patience_ns / 2)};
}

}  // namespace erar
