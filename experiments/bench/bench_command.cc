// The bench's command line, and the order of things: check, prepare files, fabric, sweep, reports.
#include "experiments/bench/bench_command.h"

#include "experiments/bench/cpu_meter.h"
#include "experiments/bench/fabric_lease.h"
#include "experiments/bench/interrupt.h"
#include "experiments/bench/options.h"
#include "experiments/bench/report.h"
#include "experiments/bench/row.h"
#include "experiments/bench/sweep.h"
#include "experiments/bench/table.h"
#include "experiments/cli/privilege.h"
#include "experiments/cli/reporting.h"
#include "experiments/version.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <unistd.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>

namespace erar::bench {
namespace {

using cli::complain;
using cli::print_out;

struct OptionRow {
  const char* name;
  std::string BenchArguments::*text;
  const char* help;
};

// One table for the parser and --help. Defaults that the fabric decides are said in words.
constexpr OptionRow kOptions[] = {
    {"--backends", &BenchArguments::backends, "Comma-separated list of erar, tcp"},
    {"--fabric", &BenchArguments::fabric,
     "ring, bridge or switch: made for this run; else the name of a fabric that is up"},
    {"--ranks", &BenchArguments::ranks, "2 to 64 (default 4, or the fabric's)"},
    {"--mtu", &BenchArguments::mtu,
     "576 to 65535; native erar and fault boxes to 3506 (default 3498, or the fabric's)"},
    {"--offloads", &BenchArguments::offloads,
     "on or off: TSO, GSO, GRO (default on, or the fabric's; with faults off)"},
    {"--queues", &BenchArguments::queues,
     "Queues of each veth, 1 to 64; 0: one per CPU, at most 8 (default 0)"},
    {"--sizes", &BenchArguments::sizes,
     "Bytes: list of sizes and ranges first:last[:factor], K M G 1024-based, factor 4 if not "
     "given"},
    {"--dtype", &BenchArguments::dtype,
     "int8, uint8, int32, uint32, int64, uint64, float16, float32, float64 or bfloat16"},
    {"--op", &BenchArguments::op, "sum, avg, min or max"},
    {"--pre-scale", &BenchArguments::pre_scale,
     "sum: every rank's values are multiplied by it first; whole for integers"},
    {"--not-finite", &BenchArguments::not_finite,
     "erar: refuse or propagate NaN and infinity (the values measured with hold none)"},
    {"--iters", &BenchArguments::iters, "Timed operations at each size"},
    {"--warmup", &BenchArguments::warmup, "Operations before them, checked but not timed"},
    {"--buffers", &BenchArguments::buffers,
     "caller: ordinary memory; registered: the backend's own (in place)"},
    {"--cc", &BenchArguments::cc, "tcp: congestion control of every socket"},
    {"--mode", &BenchArguments::mode, "erar: native or generic XDP"},
    {"--group", &BenchArguments::group, "erar: bytes in which caller's buffers are pipelined"},
    {"--checksum", &BenchArguments::checksum, "erar: on or off: check what links deliver"},
    {"--timeout", &BenchArguments::timeout,
     "Seconds without progress after which a backend gives up"},
    {"--pin", &BenchArguments::pin,
     "on: rank r on CPU r modulo the number of CPUs; off: where the scheduler puts it"},
    {"--seed", &BenchArguments::seed, "Of the input values and of faults"},
    {"--magnitudes", &BenchArguments::magnitudes,
     "floats: alike on all ranks, or apart by factors up to 8, anew for each 1024 elements"},
    {"--loss", &BenchArguments::loss,
     "Share of the frames that each rank's link loses, 0 to 1; 0: fault boxes that do nothing"},
    {"--burst", &BenchArguments::burst,
     "Frames lost in a row, 1 to 1000; the share stays (default 1)"},
    {"--dup", &BenchArguments::duplicate,
     "Share of the frames that come twice (this and the following: 0 to 1)"},
    {"--reorder", &BenchArguments::reorder, "Share held back until others have passed"},
    {"--hold", &BenchArguments::hold, "How many at most may pass it, 1 to 15 (default 4)"},
    {"--corrupt", &BenchArguments::corrupt, "Share with a bit changed behind the headers"},
    {"--corrupt-header", &BenchArguments::corrupt_header,
     "Share with a bit changed in the headers"},
    {"--truncate", &BenchArguments::truncate, "Share cut short"},
    {"--window", &BenchArguments::window,
     "erar: frames that a rank has under way, 2 to 128 (default 64 over the ranks, at least 2)"},
    {"--json", &BenchArguments::json, "Also write context and rows to this file"},
    {"--csv", &BenchArguments::csv, "Also write the rows to this file"},
};

// On a terminal one line that each measurement overwrites; elsewhere nothing.
class Progress {
 public:
  void show(const Row& row, std::size_t done, std::size_t total) const {
    if (!terminal_) return;
    fmt::print(stderr, "\r\033[K[{}/{}] {} {} ...", done + 1, total, row.backend,
               size_text(row.bytes));
  }
  void clear() const {
    if (terminal_) fmt::print(stderr, "\r\033[K");
  }

 private:
  bool terminal_ = ::isatty(STDERR_FILENO) == 1;
};

int measure_and_report(const Conditions& conditions, FabricLease& lease,
                       cli::ReportFiles& reports) {
  const Progress progress;
  if (!print_out(table_header(conditions))) return complain(errno_error("write", "the table"), 1);
  SweepObserver observer;
  observer.starting = [&](const Row& row, std::size_t done, std::size_t total) {
    progress.show(row, done, total);
  };
  observer.finished = [&](const Row& row) {
    progress.clear();
    return print_out(table_row(conditions, row));
  };
  const std::vector<Row> rows = run_sweep(conditions, lease, observer);
  progress.clear();
  if (const int signal = InterruptGuard::signal(); signal != 0) {
    return complain(refusal("interrupted, no report written"), 128 + signal);
  }
  if (std::ferror(stdout) != 0 || !print_out(table_footer(conditions, rows))) {
    return complain(refusal("nobody reads the table, no report written"), 1);
  }
  const int written =
      cli::write_reports(reports, json_report(conditions, rows), csv_report(conditions, rows));
  return written != 0 ? written : exit_status_of(rows);
}

int run_bench(const BenchArguments& arguments) {
  const Result<BenchOptions> options = parse_bench_options(arguments);
  if (!options) return complain(options.error(), 2);
  if (!cli::have_root()) return 1;
  Result<cli::ReportFiles> reports = cli::open_reports(options->json_path, options->csv_path);
  if (!reports) return complain(reports.error(), 1);
  const InterruptGuard interrupts;
  bool wrong_arguments = false;
  Result<FabricLease> lease = FabricLease::take(*options, wrong_arguments);
  if (!lease) return complain(lease.error(), wrong_arguments ? 2 : 1);
  const Conditions conditions{read_host_info(),       ERAR_VERSION, ERAR_COMMIT,
                              lease->fabric().spec(), *options,     SoftirqMeter::open().valid()};
  return measure_and_report(conditions, *lease, *reports);
}

}  // namespace

void add_bench_command(CLI::App& app, int& exit_status) {
  CLI::App* bench =
      app.add_subcommand("bench", "Measure collective operations of several backends");
  bench->require_subcommand(1);
  CLI::App* allreduce = bench->add_subcommand(
      "allreduce", "Every backend at every size on the same links, all results checked");
  const auto arguments = std::make_shared<BenchArguments>();
  for (const OptionRow& row : kOptions) {
    CLI::Option* option = allreduce->add_option(row.name, (*arguments).*row.text, row.help);
    option->type_name("");
    option->check([](const std::string& text) {
      return std::string(text.empty() ? "must not be empty" : "");
    });
    if (!((*arguments).*row.text).empty()) option->capture_default_str();
  }
  allreduce->add_flag("--in-place", arguments->in_place,
                      "Caller's buffers: the result replaces the input");
  allreduce->add_flag("--compressed", arguments->compressed,
                      "erar: 16 bits per element on the wire; float32, float16, bfloat16, sum "
                      "and avg");
  allreduce->add_flag("--counters", arguments->counters,
                      "Print the backends' event counters, summed over the ranks");
  allreduce->callback([arguments, &exit_status] { exit_status = run_bench(*arguments); });
}

}  // namespace erar::bench
