// Reads the first field (ns on a CPU) of the softirq threads' /proc/PID/schedstat.
#include "experiments/bench/cpu_meter.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace erar::bench {

SoftirqMeter SoftirqMeter::open() {
  SoftirqMeter meter;
  std::error_code error;
  // A process may end between the listing and the look at its name; then the stream is just empty.
  for (std::filesystem::directory_iterator at("/proc", error), end; !error && at != end;
       at.increment(error)) {
    std::string name;
    std::getline(std::ifstream(at->path() / "comm"), name);
    if (!name.starts_with("ksoftirqd/")) continue;
    UniqueFd schedstat(::open((at->path() / "schedstat").c_str(), O_RDONLY | O_CLOEXEC));
    if (schedstat.valid()) meter.schedstats_.push_back(std::move(schedstat));
  }
  return meter;
}

std::uint64_t SoftirqMeter::total_ns() const {
  std::uint64_t total = 0;
  for (const UniqueFd& schedstat : schedstats_) {
    std::array<char, 64> text{};
    const ssize_t length = ::pread(schedstat.get(), text.data(), text.size(), 0);
    std::uint64_t run_ns = 0;
    if (length > 0) std::from_chars(text.data(), text.data() + length, run_ns);
    total += run_ns;
  }
  return total;
}

}  // namespace erar::bench
