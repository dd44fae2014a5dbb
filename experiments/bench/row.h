// Row: what one measurement found, and the conditions all rows of a run share. All reporters read
// these.
#pragma once

#include "core/backend.h"
#include "emu/netns/fabric.h"
#include "experiments/bench/options.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace erar::bench {

struct HostInfo {
  std::string name;
  std::string kernel;
  std::string cpu;
  unsigned cpus = 0;  // that this process may use
  std::string date;   // UTC, when the run began
  double load = 0;    // load average of the minute before: above 0.5 or so, others took part
};

HostInfo read_host_info();

struct Conditions {
  HostInfo host;
  std::string version;
  std::string commit;
  FabricSpec fabric;
  BenchOptions options;
  bool cpu_complete =
      true;  // false: softirq threads could not be read and are missing from CPU times
};

// Frames that an eRAR rank has under way: as asked for, or what suits the ranks.
unsigned window_frames(const Conditions& conditions);

struct Row {
  std::string backend;
  std::size_t bytes = 0;
  std::size_t count = 0;
  std::string error;  // why there are no numbers; empty where there are
  std::uint64_t iters = 0;
  double p50_us = 0;
  double min_us = 0;
  double max_us = 0;
  double algbw_gbps = 0;  // 1e9 bytes of message per second at the median
  double busbw_gbps = 0;  // algbw * 2 (ranks - 1) / ranks: what each link carries
  // Median of what the slowest rank waited for agreement on scales before its first data could
  // leave; absent where no operation had anything to agree on.
  std::optional<double> agreement_us{};
  std::uint64_t wrong = 0;
  double cpu_s_per_gb =
      0;  // of all ranks and the softirq threads per 1e9 message bytes; 0 bytes: 0
  std::vector<std::pair<std::string, std::uint64_t>> counters;  // summed over the ranks
  FaultCounts faults;  // what the fault boxes did, where there are any

  [[nodiscard]] bool failed() const { return !error.empty(); }
};

// Fills in what follows from the times: p50, min, max, bandwidths. times_ns is not empty.
void set_times(Row& row, std::vector<std::uint64_t> times_ns, unsigned ranks);
// Fills in agreement_us from the slowest rank's in each operation.
void set_agreement(Row& row, std::vector<std::uint64_t> agreements_ns);

// Median-time ratio of the reference backend to another at each size that both have: 2 means that
// the other takes half as long.
struct RatioLine {
  std::string reference;
  std::string backend;
  std::vector<std::pair<std::size_t, double>> by_bytes;
};
std::vector<RatioLine> ratios_to_reference(const std::vector<Row>& rows);

// 0 when every row has numbers and no wrong element.
int exit_status_of(const std::vector<Row>& rows);

}  // namespace erar::bench
