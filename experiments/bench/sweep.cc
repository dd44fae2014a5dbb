// Forks the ranks of each measurement and turns what they left in shared memory into a row.
#include "experiments/bench/sweep.h"

#include "emu/netns/fault_boxes.h"
#include "emu/rank/launcher.h"
#include "experiments/bench/backend_factory.h"
#include "experiments/bench/cpu_meter.h"
#include "experiments/bench/interrupt.h"
#include "experiments/bench/rank_loop.h"
#include "experiments/bench/shared_region.h"

#include <fmt/format.h>

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <optional>

namespace erar::bench {
namespace {

// Between operations ranks wait for each other while they fill buffers and check results. The
// launcher ends them when one dies, a backend that gets nowhere fails by its own time-out; one that
// is stopped between operations is seen by who waits for it, and not before a backend's time-out,
// which knows better whom to blame.
constexpr std::uint64_t kAfterTimeoutNs = 1'000'000'000;

RankPlan plan_of(const BenchOptions& options, const Row& row) {
  RankPlan plan;
  plan.bytes = row.bytes;
  plan.reduction = options.reduction;
  plan.registered = options.registered;
  plan.in_place = options.in_place;
  plan.warmup = options.warmup;
  plan.iters = options.iters;
  plan.seed = options.seed;
  plan.magnitudes = options.magnitudes;
  plan.summation = summation_of(row.backend);
  return plan;
}

BackendSettings settings_of(const BenchOptions& options, const RankPlan& plan, unsigned ranks) {
  BackendSettings settings;
  settings.timeout_ns = options.timeout_ns;
  settings.registered_bytes = registered_bytes(plan, ranks);
  settings.generic_mode = options.generic_mode;
  settings.group_bytes = options.group_bytes;
  settings.checksum = options.checksum;
  settings.congestion_control = options.congestion_control;
  // Frames of an earlier measurement that are still on their way belong to another job.
  std::uint32_t random[2] = {static_cast<std::uint32_t>(::getpid()), 1};
  static_cast<void>(::getrandom(random, sizeof(random), 0));
  settings.job = random[0] % 65535 + 1;
  settings.token = random[1];
  return settings;
}

std::size_t available_memory_bytes() {
  std::ifstream info("/proc/meminfo");
  for (std::string name, unit, rest; info >> name;) {
    if (name == "MemAvailable:") {
      std::size_t kilobytes = 0;
      info >> kilobytes;
      return kilobytes * 1024;
    }
    std::getline(info, rest);
  }
  return SIZE_MAX;
}

// Better a failed row than the kernel's choice of a process to kill.
std::optional<std::string> lacks_memory(const RankPlan& plan, unsigned ranks) {
  const std::size_t needed = buffer_count(plan) * plan.bytes * ranks;
  const std::size_t available = available_memory_bytes();
  if (needed <= available) return std::nullopt;
  return fmt::format("the buffers of {} ranks need {} MB, {} MB are available", ranks,
                     needed / 1'000'000, available / 1'000'000);
}

std::string failure_text(const LaunchOutcome& outcome, const SharedRegion& region) {
  if (!region.failure().empty()) return region.failure();
  if (outcome.status > 128) {
    return fmt::format("rank {}: ended by signal {}", outcome.failed_rank, outcome.status - 128);
  }
  return fmt::format("rank {}: exit status {}", outcome.failed_rank, outcome.status);
}

void add_counters(Row& row, const RankSlot& slot) {
  for (const RankSlot::Counter& counter : slot.counters) {
    const std::string name = counter.name.data();
    if (name.empty()) return;
    const auto known = std::find_if(row.counters.begin(), row.counters.end(),
                                    [&](const auto& entry) { return entry.first == name; });
    if (known == row.counters.end()) {
      row.counters.emplace_back(name, counter.value);
    } else {
      known->second += counter.value;
    }
  }
}

// CPU time was taken over whole chains, lead-ins included, so it is divided by their bytes.
void set_results(Row& row, const RankPlan& plan, const SharedRegion& region) {
  set_times(row, {region.times().begin(), region.times().end()}, region.ranks());
  set_agreement(row, {region.agreements().begin(), region.agreements().end()});
  std::uint64_t cpu_ns = region.slot(0).softirq_ns;
  for (unsigned rank = 0; rank < region.ranks(); ++rank) {
    const RankSlot& slot = region.slot(rank);
    cpu_ns += slot.cpu_ns;
    row.wrong += slot.wrong;
  }
  const std::uint64_t chain = chain_length(plan);
  const std::uint64_t lead_ins = chain == 1 ? 0 : (plan.iters + chain - 1) / chain;
  const auto bytes = static_cast<double>((plan.iters + lead_ins) * plan.bytes);
  if (bytes > 0) row.cpu_s_per_gb = static_cast<double>(cpu_ns) / bytes;
}

void measure_without_faults(const BenchOptions& options, FabricLease& lease,
                            const SoftirqMeter& softirq, Row& row) {
  const Fabric& fabric = lease.fabric();
  const unsigned ranks = fabric.spec().ranks;
  const RankPlan plan = plan_of(options, row);
  if (const auto refused = lacks_memory(plan, ranks)) {
    row.error = *refused;
    return;
  }
  if (Result<void> set = lease.use_xdp_switch(wants_xdp_switch(row.backend)); !set) {
    row.error = set.error().message();
    return;
  }
  Result<SharedRegion> region =
      SharedRegion::create(ranks, options.iters, options.timeout_ns + kAfterTimeoutNs);
  if (!region) {
    row.error = region.error().message();
    return;
  }
  const BackendSettings settings = settings_of(options, plan, ranks);
  const auto body = [&](unsigned rank) {
    InterruptGuard::restore_in_child();
    RingEndpoint endpoint = fabric.endpoint(rank);
    endpoint.window = options.window;
    return run_rank(*region, plan, rank, softirq,
                    [&] { return open_backend(row.backend, endpoint, settings); });
  };
  const Result<LaunchOutcome> outcome = launch_ranks(fabric, LaunchOptions{options.pin}, body);
  if (!outcome) {
    row.error = outcome.error().message();
    return;
  }
  // A rank that fails ends the others: those that had no time to leave theirs are not in it.
  for (unsigned rank = 0; rank < ranks; ++rank) add_counters(row, region->slot(rank));
  if (outcome->status == 0) {
    set_results(row, plan, *region);
    return;
  }
  row.error = failure_text(*outcome, *region);
  if (outcome->received_signal != 0) InterruptGuard::note(outcome->received_signal);
}

// Every row meets the same faults: the boxes begin anew with each.
void measure(const BenchOptions& options, FabricLease& lease, const SoftirqMeter& softirq,
             Row& row) {
  if (!options.fault_boxes) return measure_without_faults(options, lease, softirq, row);
  auto boxes = FaultBoxes::open(lease.fabric().spec());
  const auto before = boxes ? boxes->counts() : boxes.error();
  const auto set = before ? boxes->set(options.faults) : before.error();
  if (!set) {
    row.error = set.error().message();
    return;
  }
  measure_without_faults(options, lease, softirq, row);
  const auto after = boxes->counts();
  const auto cleared = boxes->set(Faults{});
  if (!after || !cleared) {
    row.error = (after ? cleared.error() : after.error()).message();
    return;
  }
  for (unsigned i = 0; i < ERAR_FAULT_COUNTERS; ++i)
    row.faults.values[i] = after->values[i] - before->values[i];
}

}  // namespace

std::vector<Row> run_sweep(const Conditions& conditions, FabricLease& lease,
                           const SweepObserver& observer) {
  const BenchOptions& options = conditions.options;
  const SoftirqMeter softirq = SoftirqMeter::open();
  const std::size_t total = options.sizes.size() * options.backends.size();
  std::vector<Row> rows;
  for (const std::size_t size : options.sizes) {
    for (const std::string& backend : options.backends) {
      Row row;
      row.backend = backend;
      row.count = size / size_of(options.reduction.type);
      row.bytes = row.count * size_of(options.reduction.type);
      observer.starting(row, rows.size(), total);
      measure(options, lease, softirq, row);
      if (InterruptGuard::signal() != 0) return rows;
      rows.push_back(row);
      if (!observer.finished(row)) return rows;
    }
  }
  return rows;
}

}  // namespace erar::bench
