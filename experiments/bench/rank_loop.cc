// One rank's loop: fill, run, check, chain by chain.
#include "experiments/bench/rank_loop.h"

#include "core/clock.h"
#include "experiments/bench/oracle.h"
#include "workloads/generator/values.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace erar::bench {
namespace {

constexpr std::size_t kChainBytes = 4U << 20;
constexpr std::uint64_t kMostTimedInChain = kMostChained - 1;
constexpr std::size_t kPage = 4096;

std::size_t most_operations_in_chain(const RankPlan& plan) {
  const std::uint64_t timed = chain_length(plan);
  return timed == 1 ? 1 : timed + 1;
}

struct Free {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using OwnMemory = std::unique_ptr<std::byte, Free>;

struct Buffers {
  std::vector<OwnMemory> own;
  std::vector<std::span<std::byte>> inputs;
  std::vector<std::span<std::byte>> outputs;  // the same spans when in place
};

Result<std::span<std::byte>> take_buffer(Backend& backend, const RankPlan& plan, Buffers& buffers) {
  const std::size_t bytes =
      std::max(plan.bytes, size_of(plan.reduction.type));  // never none at all
  if (plan.registered) {
    Result<std::span<std::byte>> memory = backend.allocate(bytes);
    if (!memory) return memory.error();
    return memory->first(plan.bytes);
  }
  const std::size_t whole_pages = (bytes + kPage - 1) / kPage * kPage;
  OwnMemory memory(static_cast<std::byte*>(std::aligned_alloc(kPage, whole_pages)));
  if (memory == nullptr) return Error{ENOMEM, "allocate", "buffers"};
  std::memset(memory.get(), 0, whole_pages);  // a page fault costs more than adding the page
  const std::span<std::byte> buffer{memory.get(), plan.bytes};
  buffers.own.push_back(std::move(memory));
  return buffer;
}

Result<Buffers> make_buffers(Backend& backend, const RankPlan& plan) {
  Buffers buffers;
  for (std::size_t i = 0; i < most_operations_in_chain(plan); ++i) {
    Result<std::span<std::byte>> input = take_buffer(backend, plan, buffers);
    if (!input) return input.error();
    buffers.inputs.push_back(*input);
    if (plan.in_place) {
      buffers.outputs.push_back(*input);
      continue;
    }
    Result<std::span<std::byte>> output = take_buffer(backend, plan, buffers);
    if (!output) return output.error();
    buffers.outputs.push_back(*output);
  }
  return buffers;
}

class RankLoop {
 public:
  RankLoop(SharedRegion& region, const RankPlan& plan, unsigned rank, const SoftirqMeter& softirq)
      : region_(region), plan_(plan), rank_(rank), softirq_(softirq), slot_(region.slot(rank)) {}

  Result<void> run(const BackendOpener& open) {
    Result<std::unique_ptr<Backend>> backend = open();
    if (!backend) return backend.error();
    Result<Buffers> buffers = make_buffers(**backend, plan_);
    if (!buffers) return buffers.error();
    const Result<void> ran = run_all(**backend, *buffers);
    // Also of a rank that failed, of which they say most.
    publish_counters(**backend);
    if (!ran) return ran;
    // Nobody takes its program off the NIC before all are through.
    return region_.barrier(rank_);
  }

 private:
  Result<void> run_all(Backend& backend, Buffers& buffers) {
    // An eRAR rank's frames are lost on a neighbour that has not attached its program yet.
    if (Result<void> met = region_.opening_barrier(rank_); !met) return met;
    for (std::uint64_t done = 0; done < plan_.warmup;) {
      const std::uint64_t timed = std::min(chain_length(plan_), plan_.warmup - done);
      if (Result<void> ran = run_chain(backend, buffers, timed, std::nullopt); !ran) return ran;
      done += timed;
    }
    for (std::uint64_t done = 0; done < plan_.iters;) {
      const std::uint64_t timed = std::min(chain_length(plan_), plan_.iters - done);
      if (Result<void> ran = run_chain(backend, buffers, timed, done); !ran) return ran;
      done += timed;
    }
    return {};
  }

  // `timed` operations after a lead-in, if the plan has lead-ins. first: which of the operations to
  // be reported is the first of them; none of a warm-up are.
  Result<void> run_chain(Backend& backend, Buffers& buffers, std::uint64_t timed,
                         std::optional<std::uint64_t> first) {
    const std::size_t operations = chain_length(plan_) == 1 ? 1 : timed + 1;
    for (std::size_t i = 0; i < operations; ++i) {
      workloads::fill(stream_of(operation(i), rank_), plan_.reduction.type, 0, buffers.inputs[i]);
    }
    const std::uint64_t softirq_before = rank_ == 0 ? softirq_.total_ns() : 0;
    if (Result<void> met = region_.barrier(rank_); !met) return met;
    if (Result<void> ran = run_operations(backend, buffers, operations, first.has_value()); !ran) {
      return ran;
    }
    if (Result<void> met = region_.barrier(rank_); !met) return met;
    if (rank_ == 0 && first) slot_.softirq_ns += softirq_.total_ns() - softirq_before;
    if (Result<void> checked = check(buffers, operations); !checked) return checked;
    // Only rank 0 reads the stamps, and all ranks meet it once more before they write new ones.
    if (rank_ == 0 && first) store_times(operations, *first, timed);
    next_operation_ += operations;
    return {};
  }

  Result<void> run_operations(Backend& backend, Buffers& buffers, std::size_t operations,
                              bool timed) {
    const std::size_t count = plan_.bytes / size_of(plan_.reduction.type);
    const std::uint64_t cpu_before = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    slot_.start_ns = monotonic_ns();
    for (std::size_t i = 0; i < operations; ++i) {
      Result<void> reduced = backend.allreduce(buffers.inputs[i].data(), buffers.outputs[i].data(),
                                               count, plan_.reduction);
      slot_.end_ns[i] = monotonic_ns();
      slot_.agreement_ns[i] = backend.agreement_ns();
      if (!reduced) return reduced;
    }
    if (timed) slot_.cpu_ns += clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_before;
    return {};
  }

  // Every element against the oracle; and floats, whose oracle has a tolerance, bit for bit against
  // rank 0: all ranks must have the same model after the step. A difference counts as one element.
  Result<void> check(const Buffers& buffers, std::size_t operations) {
    const bool compare_bits = is_float(plan_.reduction.type);
    for (std::size_t i = 0; i < operations; ++i) {
      slot_.wrong += count_wrong(operation(i), buffers.outputs[i]);
      if (compare_bits) slot_.hash[i] = hash_bytes(buffers.outputs[i]);
    }
    if (!compare_bits) return {};
    if (Result<void> met = region_.barrier(rank_); !met) return met;
    for (std::size_t i = 0; i < operations; ++i) {
      slot_.wrong += slot_.hash[i] != region_.slot(0).hash[i] ? 1 : 0;
    }
    return {};
  }

  void store_times(std::size_t operations, std::uint64_t first, std::uint64_t timed) {
    const std::size_t lead_in = operations - timed;
    for (std::size_t i = 0; i < timed; ++i) {
      const std::uint64_t from = lead_in == 0 ? first_start() : latest(&RankSlot::end_ns, i);
      region_.times()[first + i] = latest(&RankSlot::end_ns, i + lead_in) - from;
      region_.agreements()[first + i] = latest(&RankSlot::agreement_ns, i + lead_in);
    }
  }

  [[nodiscard]] std::uint64_t first_start() const {
    std::uint64_t first = slot_.start_ns;
    for (unsigned rank = 1; rank < region_.ranks(); ++rank) {
      first = std::min(first, region_.slot(rank).start_ns);
    }
    return first;
  }

  using Stamps = std::array<std::uint64_t, kMostChained>;
  [[nodiscard]] std::uint64_t latest(Stamps RankSlot::*stamps, std::size_t in_chain) const {
    std::uint64_t last = 0;
    for (unsigned rank = 0; rank < region_.ranks(); ++rank) {
      last = std::max(last, (region_.slot(rank).*stamps)[in_chain]);
    }
    return last;
  }

  // A compressed reduction carries over what the one before on the same buffer rounded off, which
  // is bounded only if magnitudes stay.
  [[nodiscard]] Operation operation(std::size_t in_chain) const {
    Operation made{plan_.reduction, region_.ranks(),
                   workloads::operation_seed(plan_.seed, next_operation_ + in_chain),
                   plan_.magnitudes};
    if (plan_.reduction.compressed) made.scale_seed = plan_.seed;
    made.summation = plan_.summation;
    return made;
  }

  void publish_counters(Backend& backend) {
    std::size_t index = 0;
    for (const auto& [name, value] : backend.counters()) {
      if (index == slot_.counters.size()) break;
      RankSlot::Counter& counter = slot_.counters[index++];
      std::copy_n(name.data(), std::min(name.size(), counter.name.size() - 1), counter.name.data());
      counter.value = value;
    }
  }

  SharedRegion& region_;
  const RankPlan& plan_;
  unsigned rank_;
  const SoftirqMeter& softirq_;
  RankSlot& slot_;
  std::uint64_t next_operation_ = 0;
};

}  // namespace

std::uint64_t chain_length(const RankPlan& plan) {
  const std::uint64_t fitting = plan.bytes == 0 ? kMostTimedInChain : kChainBytes / plan.bytes;
  return std::min(std::clamp<std::uint64_t>(fitting, 1, kMostTimedInChain), plan.iters);
}

std::size_t buffer_count(const RankPlan& plan) {
  return most_operations_in_chain(plan) * (plan.in_place ? 1 : 2);
}

std::size_t registered_bytes(const RankPlan& plan, unsigned ranks) {
  if (!plan.registered) return 0;
  // A backend may round each rank's block of a buffer up to whole packets.
  const std::size_t each = (plan.bytes + kPage * (ranks + 1)) / kPage * kPage;
  return buffer_count(plan) * each;
}

int run_rank(SharedRegion& region, const RankPlan& plan, unsigned rank, const SoftirqMeter& softirq,
             const BackendOpener& open) {
  region.enter(rank);
  const Result<void> ran = RankLoop(region, plan, rank, softirq).run(open);
  if (ran) return 0;
  region.fail(rank, ran.error());
  return 1;
}

}  // namespace erar::bench
