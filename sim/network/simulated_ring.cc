// SPDX-License-Identifier: BSD-2-Clause
// SimulatedRing: one queue of events.
#include "sim/network/simulated_ring.h"

#include <algorithm>
#include <utility>

#include "sim/ring/memory_ring.h"

namespace erar::sim {

SimulatedRing::SimulatedRing(const SimulatedRingOptions& options)
    : options_(options), queued_(options.ranks), random_(options.seed) {
  renew(options.token);
}

void SimulatedRing::renew(std::uint32_t token) {
  options_.token = token;
  processes_ = std::vector<Process>(options_.ranks);
  watches_.clear();
  ranks_.clear();
  for (unsigned rank = 0; rank < options_.ranks; rank++) {
    ranks_.push_back(std::make_unique<MemoryRank>(memory_ring_config(
        rank, options_.ranks, options_.mtu, options_.arena_segments, token, options_.window)));
    watches_.push_back(std::make_unique<RingWatch>(ranks_[rank]->memory(), options_.timeout_ns));
  }
}

void SimulatedRing::spawn(unsigned rank, std::uint64_t at_ns, std::function<void()> body) {
  processes_[rank].fiber = std::make_unique<Fiber>(std::move(body));
  wake_at(rank, at_ns);
}

void SimulatedRing::pause(unsigned rank, std::uint64_t from_ns, std::uint64_t until_ns) {
  processes_[rank].paused_from_ns = from_ns;
  processes_[rank].paused_until_ns = until_ns;
}

void SimulatedRing::kill(unsigned rank, std::uint64_t at_ns) {
  processes_[rank].killed_at_ns = at_ns;
  wake_at(rank, at_ns);
}

void SimulatedRing::wake_at(unsigned rank, std::uint64_t at_ns) {
  Process& process = processes_[rank];
  if (at_ns >= process.paused_from_ns && at_ns < process.paused_until_ns)
    at_ns = process.paused_until_ns;
  process.wake = ++wakes_;
  events_.push({at_ns, ++made_, rank, process.wake, nullptr});
}

void SimulatedRing::send(unsigned from_rank, Frame frame) {
  const unsigned to = (from_rank + 1) % ranks();
  const LinkFaults& faults = options_.faults;
  if (lose_if_ && lose_if_(to, frame)) return;
  if (chance(faults.loss)) return;
  if (chance(faults.duplicate) || (duplicate_if_ && duplicate_if_(to, frame)))
    put_on_link(to, frame);
  put_on_link(to, std::move(frame));
}

void SimulatedRing::put_on_link(unsigned to_rank, Frame frame) {
  const LinkFaults& faults = options_.faults;
  if (options_.queue_frames != 0 && queued_[to_rank] >= options_.queue_frames) return;
  queued_[to_rank]++;
  if (chance(faults.corrupt_payload) && frame.size() > ERAR_HEADER_BYTES)
    frame[ERAR_HEADER_BYTES + random_() % (frame.size() - ERAR_HEADER_BYTES)] ^=
        static_cast<std::uint8_t>(1U << random_() % 8);
  if (chance(faults.corrupt_header))
    frame[random_() % ERAR_HEADER_BYTES] ^= static_cast<std::uint8_t>(1 + random_() % 255);
  if (chance(faults.truncate)) frame.resize(random_() % (frame.size() + 1));
  std::uint64_t at_ns = now_ns_ + faults.latency_ns + up_to(faults.jitter_ns);
  if (chance(faults.reorder)) at_ns += up_to(faults.hold_ns);
  events_.push({at_ns, ++made_, to_rank, 0, std::make_shared<Frame>(std::move(frame))});
}

bool SimulatedRing::any_done(unsigned rank) const {
  const auto& waits_for = processes_[rank].waits_for;
  return std::any_of(waits_for.begin(), waits_for.end(),
                     [&](std::uint32_t number) { return ranks_[rank]->done(number); });
}

void SimulatedRing::deliver(unsigned rank, Frame& frame) {
  Process& process = processes_[rank];
  queued_[rank]--;
  if (now_ns_ >= process.killed_at_ns) return;
  if (on_delivery_) on_delivery_(rank, frame);
  if (ranks_[rank]->receive(frame) == Verdict::kForward) send(rank, frame);
  if (process.blocked && any_done(rank)) {
    process.blocked = false;
    wake_at(rank, now_ns_ + up_to(options_.wake_ns));
  }
}

void SimulatedRing::run_process(unsigned rank) {
  Process& process = processes_[rank];
  process.blocked = false;
  process.killed = process.killed || now_ns_ >= process.killed_at_ns;
  if (process.fiber && !process.fiber->finished()) process.fiber->resume();
}

bool SimulatedRing::block(unsigned rank, std::span<const std::uint32_t> operations,
                          std::uint64_t until_ns) {
  Process& process = processes_[rank];
  if (process.killed) return false;
  process.waits_for.assign(operations.begin(), operations.end());
  process.blocked = !any_done(rank);
  wake_at(rank, process.blocked ? until_ns : now_ns_);
  if (process.killed_at_ns > now_ns_ && process.killed_at_ns < until_ns)
    wake_at(rank, process.killed_at_ns);
  process.fiber->step_aside();
  return !process.killed;
}

bool SimulatedRing::sleep(unsigned rank, std::uint64_t ns) {
  Process& process = processes_[rank];
  if (process.killed) return false;
  wake_at(rank, std::min(now_ns_ + ns, std::max(process.killed_at_ns, now_ns_)));
  process.fiber->step_aside();
  return !process.killed;
}

std::string SimulatedRing::describe_blocked() const {
  std::string text = "no end at " + std::to_string(now_ns_ / 1'000'000) + " ms:";
  for (unsigned rank = 0; rank < ranks(); rank++) {
    const Process& process = processes_[rank];
    if (!process.fiber || process.fiber->finished()) continue;
    text += " rank " + std::to_string(rank) + " waits for";
    for (const std::uint32_t number : process.waits_for) {
      const erar_operation& operation = ranks_[rank]->operation(number);
      text += " " + std::to_string(number) + " (" + std::to_string(operation.finals) + " of " +
              std::to_string(operation.segments) + ")";
    }
    text += ";";
  }
  return text;
}

// A fiber that is not run to its end would leave behind what its stack owns.
void SimulatedRing::end_processes() {
  for (Process& process : processes_) {
    process.killed = true;
    while (process.fiber && process.fiber->started() && !process.fiber->finished())
      process.fiber->resume();
    process.fiber.reset();
  }
}

std::optional<std::string> SimulatedRing::run(std::uint64_t until_ns) {
  const auto running = [this] {
    return std::any_of(processes_.begin(), processes_.end(), [](const Process& process) {
      return process.fiber && !process.fiber->finished();
    });
  };
  while (running()) {
    if (events_.empty() || events_.top().at_ns > until_ns) {
      std::string blocked = describe_blocked();
      end_processes();
      return blocked;
    }
    const Event event = events_.top();
    events_.pop();
    now_ns_ = std::max(now_ns_, event.at_ns);
    if (event.frame) {
      deliver(event.rank, *event.frame);
    } else if (event.wake == processes_[event.rank].wake) {
      run_process(event.rank);
    }
  }
  return std::nullopt;
}

}  // namespace erar::sim
