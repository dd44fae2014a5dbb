// Checked calls: small integers as floats, whose sums are exact.
#include "tests/netns/checked_calls.h"

#include <fmt/format.h>

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

// Calls in place until one fails or `calls` are done; each result is looked at here and there.
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
    for (std::size_t i = 0; i < kCount; i += 97) {
      float sum = 0;
      for (unsigned each = 0; each < kRanks; each++) sum += value_of(each, i, report.calls);
      if (values[i] != sum) {
        report.wrong = true;
        return 1;
      }
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
  return reduce_on(**backend, rank, calls, state);
}

}  // namespace erar::test
