// Checked calls: small integers as floats, whose sums are exact.
#include "tests/netns/checked_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "bpf/host/erar_backend.h"
#include "core/clock.h"

namespace erar::test {
namespace {

constexpr unsigned kRanks = kCheckedRanks;
constexpr std::size_t kCount = 700'001;  // several groups

float value_of(unsigned rank, std::size_t i, std::uint64_t call) {
  return static_cast<float>(static_cast<int>((i * 7 + rank * 13 + call) % 2001) - 1000);
}

// What value_of() adds up to over the ranks.
std::vector<float> sums_of(std::uint64_t call) {
  std::vector<float> sums(kCount);
  for (unsigned rank = 0; rank < kRanks; rank++) {
    float value = value_of(rank, 0, call);
    for (float& sum : sums) {
      sum += value;
      value += 7;
      if (value > 1000) value -= 2001;
    }
  }
  return sums;
}

// Calls in place until one fails or `calls` are done; every element of each result is looked at.
int reduce_on(Backend& backend, unsigned rank, std::uint64_t calls, SharedState& state) {
  RankReport& report = state.ranks[rank];
  std::vector<float> values(kCount), before(kCount);
  while (report.calls < calls) {
    for (std::size_t i = 0; i < kCount; i++) before[i] = value_of(rank, i, report.calls);
    values = before;
    const auto done = backend.allreduce(values.data(), values.data(), kCount, Reduction{});
    if (!done) {
      report.ended_ns = monotonic_ns();
      report.code = done.error().code;
      report.untouched = std::memcmp(values.data(), before.data(), kCount * sizeof(float)) == 0;
      for (const auto& [name, value] : backend.counters())
        if (value != 0) fmt::print(stderr, "rank {}: {} {}\n", rank, name, value);
      fmt::format_to_n(report.message.data(), report.message.size() - 1, "{}",
                       done.error().message());
      return 0;
    }
    if (values != sums_of(report.calls)) {
      report.wrong = true;
      return 1;
    }
    report.calls++;
  }
  return 0;
}

}  // namespace

int run_checked_rank(const Fabric& fabric, unsigned rank, std::uint32_t token, std::uint64_t calls,
                     std::uint64_t timeout_ns, SharedState& state) {
  ErarOptions options;
  options.token = token;
  options.timeout_ns = timeout_ns;
  auto backend = open_erar_backend(fabric.endpoint(rank), options);
  if (!backend) {
    fmt::print(stderr, "rank {}: {}\n", rank, backend.error().message());
    return 2;
  }
  pthread_barrier_wait(&state.all_open);
  const int status = reduce_on(**backend, rank, calls, state);
  const auto counters = (*backend)->counters();
  auto& kept = state.ranks[rank].counters;
  for (std::size_t i = 0; i < std::min(kept.size(), counters.size()); i++)
    kept[i] = counters[i].second;
  return status;
}

}  // namespace erar::test
