// Formats the table. Widths hold 4 GiB messages and times up to 100 seconds.
#include "experiments/bench/table.h"

#include "experiments/bench/options.h"

#include <fmt/format.h>

namespace erar::bench {
namespace {

constexpr const char* kColumns =
    "{:>12} {:>11} {:>8} {:>6} {:>8} {:>11} {:>11} {:>11} {:>8} {:>8} {:>10} {:>7} {:>7}\n";

// As nccl-tests: a constant number of digits that mean something, not of decimals.
std::string number(double value) {
  if (value >= 10000) return fmt::format("{:.0f}", value);
  if (value >= 1000) return fmt::format("{:.1f}", value);
  return fmt::format("{:.2f}", value);
}

std::string small_number(double value) {
  return value < 1 ? fmt::format("{:.3f}", value) : number(value);
}

const char* on_off(bool on) { return on ? "on" : "off"; }

std::string buffers_text(const BenchOptions& options) {
  return fmt::format("{}, {}", options.registered ? "registered" : "caller's",
                     options.in_place ? "in place" : "out of place");
}

// What is not as by default; empty where all is.
std::string reduction_line(const BenchOptions& options) {
  const Reduction& reduction = options.reduction;
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : "; ") + part; };
  if (reduction.pre_scale != 1)
    add(fmt::format("values scaled by {} (--pre-scale)", reduction.pre_scale));
  if (reduction.compressed) add("compressed to 16 bits (--compressed)");
  if (reduction.not_finite == NotFinite::kPropagate) add("NaN propagated (--not-finite)");
  if (!options.checksum) add("no checksums (--checksum)");
  return text.empty() ? "" : fmt::format("# reduction: {}\n", text);
}

std::string window_text(const Conditions& conditions) {
  const bool given = conditions.options.window != 0;
  return fmt::format("{} frames{}", window_frames(conditions), given ? " (--window)" : "");
}

std::string counters_line(const Row& row) {
  std::string line = fmt::format("# {} {} counters:", row.backend, size_text(row.bytes));
  for (const auto& [name, value] : row.counters) line += fmt::format(" {}={}", name, value);
  return line + "\n";
}

// What the links did to this row's frames.
std::string faults_line(const Row& row) {
  std::string text = "#   links:";
  for (const auto& [name, value] : row.faults.named())
    if (value != 0) text += fmt::format(" {} {}", name, value);
  return text + "\n";
}

}  // namespace

std::string table_header(const Conditions& conditions) {
  const BenchOptions& options = conditions.options;
  const FabricSpec& fabric = conditions.fabric;
  const HostInfo& host = conditions.host;
  std::string text = fmt::format("# erar bench allreduce, version {} ({})\n", conditions.version,
                                 conditions.commit);
  text += fmt::format("# {}, kernel {}, {} CPUs, {}; load before {:.2f}\n", host.date, host.kernel,
                      host.cpus, host.cpu, host.load);
  text += fmt::format("# fabric {}, {} ranks, MTU {}, offloads {}, ranks {}\n",
                      name_of(fabric.kind), fabric.ranks, fabric.mtu, on_off(fabric.offloads),
                      options.pin ? "pinned" : "not pinned");
  text += fmt::format("# buffers {}; {} warm-up and {} timed operations, all checked; seed {}\n",
                      buffers_text(options), options.warmup, options.iters, options.seed);
  text += reduction_line(options);
  if (is_float(options.reduction.type)) {
    text += fmt::format("# values: magnitudes {} on all ranks (--magnitudes)\n",
                        options.magnitudes == workloads::Magnitudes::kAlike ? "alike" : "apart");
  }
  text += fmt::format("# tcp: congestion control {}; erar: {} XDP, groups of {}, window of {}\n",
                      options.congestion_control, options.generic_mode ? "generic" : "native",
                      size_text(options.group_bytes), window_text(conditions));
  if (options.fault_boxes) {
    text += fmt::format("# faults on every link, for both backends alike: {}\n",
                        faults_text(options.faults));
  }
  text +=
      "# time: last rank done, median (p50) and range; algbw = size / p50, busbw = algbw * "
      "2(n-1)/n; GB = 1e9 bytes\n"
      "# agree: how long the slowest rank waited for common scales (and for late ranks), median\n"
      "# cpu: seconds of all ranks and softirq threads per GB of size; K, M, G: 1024-based\n#\n";
  std::string names = fmt::format(kColumns, "size", "count", "type", "redop", "backend", "time p50",
                                  "min", "max", "algbw", "busbw", "agree", "#wrong", "cpu");
  std::string units = fmt::format(kColumns, "(B)", "(elements)", "", "", "", "(us)", "(us)", "(us)",
                                  "(GB/s)", "(GB/s)", "(us)", "", "(s/GB)");
  names.front() = units.front() = '#';
  text += names;
  text += units;
  return text;
}

std::string table_row(const Conditions& conditions, const Row& row) {
  const BenchOptions& options = conditions.options;
  const auto format = [&](auto... cells) {
    return fmt::format(kColumns, row.bytes, row.count, name_of(options.reduction.type),
                       name_of(options.reduction.op), row.backend, cells...);
  };
  std::string text;
  if (row.failed()) {
    text = format("failed", "-", "-", "-", "-", "-", "-", "-") +
           fmt::format("# {} {} failed: {}\n", row.backend, size_text(row.bytes), row.error);
  } else {
    text = format(number(row.p50_us), number(row.min_us), number(row.max_us),
                  small_number(row.algbw_gbps), small_number(row.busbw_gbps),
                  row.agreement_us ? number(*row.agreement_us) : "-", fmt::format("{}", row.wrong),
                  row.bytes == 0 ? "-" : small_number(row.cpu_s_per_gb));
  }
  if (options.counters && !row.counters.empty()) text += counters_line(row);
  if (options.fault_boxes) text += faults_line(row);
  return text;
}

std::string table_footer(const Conditions& conditions, const std::vector<Row>& rows) {
  std::string text = "#\n";
  for (const RatioLine& line : ratios_to_reference(rows)) {
    text += fmt::format("# {}/{} time ratio:", line.reference, line.backend);
    for (const auto& [bytes, ratio] : line.by_bytes) {
      text += fmt::format(" {} {:.2f} ", size_text(bytes), ratio);
    }
    text.back() = '\n';
  }
  if (conditions.fabric.kind == FabricKind::kSwitch) {
    text +=
        "# switch: tcp ran over a Linux bridge of the same shape, as an XDP switch takes away its "
        "offloads\n";
  }
  if (!conditions.cpu_complete) {
    text += "# cpu: the softirq threads' times could not be read and are not in it\n";
  }
  std::uint64_t wrong = 0;
  std::size_t failed = 0;
  for (const Row& row : rows) {
    wrong += row.wrong;
    failed += row.failed() ? 1 : 0;
  }
  text += wrong == 0 ? "# 0 wrong" : fmt::format("# {} WRONG", wrong);
  if (failed != 0) text += fmt::format(", {} of {} rows FAILED", failed, rows.size());
  return text + "\n";
}

}  // namespace erar::bench
