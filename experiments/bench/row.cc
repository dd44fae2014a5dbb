// The arithmetic of a row. Definitions are nccl-tests' (doc/PERFORMANCE.md there).
#include "experiments/bench/row.h"

#include "core/protocol/ring.h"
#include "experiments/bench/backend_factory.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <sched.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <fstream>

namespace erar::bench {
namespace {

std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

double median_of_sorted(const std::vector<std::uint64_t>& sorted) {
  const std::size_t middle = sorted.size() / 2;
  const auto upper = static_cast<double>(sorted[middle]);
  if (sorted.size() % 2 == 1) return upper;
  return (static_cast<double>(sorted[middle - 1]) + upper) / 2;
}

const Row* find_row(const std::vector<Row>& rows, std::string_view backend, std::size_t bytes) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row& row) {
    return row.backend == backend && row.bytes == bytes && !row.failed();
  });
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace

unsigned window_frames(const Conditions& conditions) {
  const unsigned asked_for = conditions.options.window;
  return asked_for != 0 ? asked_for : erar_window(conditions.fabric.ranks);
}

HostInfo read_host_info() {
  HostInfo host;
  utsname names{};
  ::uname(&names);
  host.name = names.nodename;
  host.kernel = names.release;
  host.cpu = cpu_model();
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (::sched_getaffinity(0, sizeof(usable), &usable) == 0) {
    host.cpus = static_cast<unsigned>(CPU_COUNT(&usable));
  }
  host.date = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  if (::getloadavg(&host.load, 1) != 1) host.load = 0;
  return host;
}

void set_times(Row& row, std::vector<std::uint64_t> times_ns, unsigned ranks) {
  std::sort(times_ns.begin(), times_ns.end());
  row.iters = times_ns.size();
  row.p50_us = median_of_sorted(times_ns) / 1e3;
  row.min_us = static_cast<double>(times_ns.front()) / 1e3;
  row.max_us = static_cast<double>(times_ns.back()) / 1e3;
  if (row.p50_us > 0) row.algbw_gbps = static_cast<double>(row.bytes) / row.p50_us / 1e3;
  row.busbw_gbps = row.algbw_gbps * 2 * (ranks - 1) / ranks;
}

void set_agreement(Row& row, std::vector<std::uint64_t> agreements_ns) {
  std::sort(agreements_ns.begin(), agreements_ns.end());
  if (agreements_ns.empty() || agreements_ns.back() == 0) return;
  row.agreement_us = median_of_sorted(agreements_ns) / 1e3;
}

std::vector<RatioLine> ratios_to_reference(const std::vector<Row>& rows) {
  std::vector<RatioLine> lines;
  for (const std::string_view backend : backend_names()) {
    if (backend == kReferenceBackend) continue;
    RatioLine line{std::string(kReferenceBackend), std::string(backend), {}};
    for (const Row& row : rows) {
      if (row.backend != backend || row.failed() || row.bytes == 0) continue;
      const Row* reference = find_row(rows, kReferenceBackend, row.bytes);
      if (reference == nullptr) continue;
      line.by_bytes.emplace_back(row.bytes, reference->p50_us / row.p50_us);
    }
    if (!line.by_bytes.empty()) lines.push_back(std::move(line));
  }
  return lines;
}

int exit_status_of(const std::vector<Row>& rows) {
  const bool good = std::all_of(rows.begin(), rows.end(),
                                [](const Row& row) { return !row.failed() && row.wrong == 0; });
  return good && !rows.empty() ? 0 : 1;
}

}  // namespace erar::bench
