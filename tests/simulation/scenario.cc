// Scenarios: drawing and describing.
#include "tests/simulation/scenario.h"

#include <iterator>
#include <random>

namespace erar::tests {
namespace {

constexpr std::uint64_t kMillisecond_ns = 1'000'000;

double rate(Random& random, double most) {
  // Half of them none, the others spread over three powers of ten.
  constexpr double kParts[] = {0, 0, 0, 0.01, 0.1, 1};
  return most * kParts[random() % std::size(kParts)];
}

SimulatedCall draw_call(Random& random) {
  SimulatedCall call;
  call.reduction.type = kDataTypes[random() % kDataTypes.size()];
  call.reduction.op = kReduceOps[random() % kReduceOps.size()];
  const bool sums = call.reduction.op == ReduceOp::kSum || call.reduction.op == ReduceOp::kAverage;
  if (is_float(call.reduction.type) && call.reduction.type != DataType::kFloat64 && sums)
    call.reduction.compressed = random() % 8 == 0;
  constexpr std::size_t kMost[] = {16, 300, 300, 1500, 6000};
  call.count = random() % (kMost[random() % std::size(kMost)] + 1);
  call.memory = static_cast<Memory>(random() % 3);
  call.inputs = static_cast<Inputs>(random() % kInputKinds);
  return call;
}

}  // namespace

Scenario Scenario::of(std::uint64_t seed) {
  Random random(seed);
  Scenario scenario;
  scenario.seed = seed;
  constexpr unsigned kRanks[] = {2, 2, 3, 3, 4, 4, 4, 5, 6, 8};
  constexpr unsigned kMtus[] = {200, 576, 576, 1500};
  constexpr std::size_t kGroups[] = {1024, 4096, 4096, 1U << 15};
  scenario.ranks = kRanks[random() % std::size(kRanks)];
  scenario.mtu = kMtus[random() % std::size(kMtus)];
  scenario.group_bytes = kGroups[random() % std::size(kGroups)];
  scenario.faults.loss = rate(random, scenario.ranks <= 4 ? 0.15 : 0.05);
  scenario.faults.duplicate = rate(random, 0.2);
  scenario.faults.reorder = rate(random, 0.3);
  scenario.faults.corrupt_payload = rate(random, 0.03);
  scenario.faults.corrupt_header = rate(random, 0.03);
  scenario.faults.truncate = rate(random, 0.03);
  scenario.faults.jitter_ns = random() % 2 == 0 ? 0 : random() % 50'000;
  scenario.faults.hold_ns = 1 + random() % (random() % 4 == 0 ? 20 * kMillisecond_ns : 200'000);
  // Without checksums what is damaged is summed: that is what they are for.
  scenario.checksum = random() % 8 != 0 || scenario.faults.corrupt_payload > 0 ||
                      scenario.faults.corrupt_header > 0 || scenario.faults.truncate > 0;
  if (random() % 8 == 0) {
    scenario.window = static_cast<unsigned>(2 + random() % 127);
    scenario.queue_frames = static_cast<std::uint32_t>(6 + random() % 60);
  }
  if (random() % 3 == 0) scenario.late_ns = random() % (30 * kMillisecond_ns);
  constexpr RankFault kFaults[] = {RankFault::kPause, RankFault::kStop, RankFault::kKill};
  if (random() % 5 == 0) scenario.rank_fault = kFaults[random() % std::size(kFaults)];
  scenario.fault_rank = static_cast<unsigned>(random() % scenario.ranks);
  scenario.fault_at_ns = 1 + random() % (random() % 2 == 0 ? 500'000 : 20 * kMillisecond_ns);
  scenario.pause_ns = random() % (4'000 * kMillisecond_ns);
  // Every other time one call again and again, as in training.
  const bool alike = random() % 2 == 0;
  for (std::size_t left = 1 + random() % 8; left > 0; left--)
    scenario.calls.push_back(alike && !scenario.calls.empty() ? scenario.calls.back()
                                                              : draw_call(random));
  return scenario;
}

std::string Scenario::describe() const {
  constexpr const char* kFaults[] = {"none", "pause", "stop", "kill"};
  std::string text =
      "seed " + std::to_string(seed) + ": " + std::to_string(ranks) + " ranks, MTU " +
      std::to_string(mtu) + ", groups of " + std::to_string(group_bytes) + ", loss " +
      std::to_string(faults.loss) + ", duplicate " + std::to_string(faults.duplicate) +
      ", reorder " + std::to_string(faults.reorder) + ", corrupt " +
      std::to_string(faults.corrupt_payload) + " " + std::to_string(faults.corrupt_header) +
      ", truncate " + std::to_string(faults.truncate) + ", late " + std::to_string(late_ns) +
      " ns, checksum " + (checksum ? "on" : "off") + ", fault " +
      kFaults[static_cast<int>(rank_fault)];
  if (window != 0)
    text += ", window " + std::to_string(window) + ", queues of " + std::to_string(queue_frames);
  if (rank_fault != RankFault::kNone)
    text += " of rank " + std::to_string(fault_rank) + " at " + std::to_string(fault_at_ns) + " ns";
  text += "; calls:";
  for (const SimulatedCall& call : calls) {
    constexpr const char* kMemories[] = {"apart", "in place", "registered"};
    text += " " + std::string(name_of(call.reduction.op)) + " " + std::to_string(call.count) + " " +
            std::string(name_of(call.reduction.type)) +
            (call.reduction.compressed ? " compressed" : "") + " " +
            kMemories[static_cast<int>(call.memory)] + ",";
  }
  text.pop_back();
  return text;
}

ScenarioResult& ScenarioResult::operator+=(const ScenarioResult& other) {
  if (!wrong) wrong = other.wrong;
  calls += other.calls;
  errors += other.errors;
  operations += other.operations;
  frames += other.frames;
  lost += other.lost;
  resent += other.resent;
  requested += other.requested;
  answered += other.answered;
  duplicates += other.duplicates;
  damaged += other.damaged;
  return *this;
}

}  // namespace erar::tests
