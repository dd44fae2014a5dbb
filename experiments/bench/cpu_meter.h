// CPU time that the host's softirq threads spend: work done for the ranks that no rank is charged
// for.
#pragma once

#include "core/unique_fd.h"

#include <cstdint>
#include <vector>

namespace erar::bench {

// Packets are mostly handled in softirqs that run on top of the process that caused them, and are
// charged to it. What they leave over is done by the kernel threads ksoftirqd/N, which this adds
// up. What a softirq does on top of another process or of an idle CPU is charged to neither.
class SoftirqMeter {
 public:
  // Finds the threads by name. Where there are none to read, total_ns() stays 0 and valid() says
  // so.
  static SoftirqMeter open();

  [[nodiscard]] bool valid() const { return !schedstats_.empty(); }
  // Run time of all ksoftirqd threads since they started.
  [[nodiscard]] std::uint64_t total_ns() const;

 private:
  std::vector<UniqueFd> schedstats_;  // /proc/PID/schedstat
};

}  // namespace erar::bench
