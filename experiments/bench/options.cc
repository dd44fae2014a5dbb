// Turns what was typed into checked options, or into one line that says what is wrong with it.
#include "experiments/bench/options.h"

#include "core/protocol/ring.h"
#include "experiments/bench/backend_factory.h"
#include "experiments/cli/reporting.h"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

namespace erar::bench {
namespace {

constexpr std::size_t kLargestSize = std::size_t{4} << 30U;
constexpr unsigned kMostSizes = 1000;

Error bad_value(std::string_view option, std::string_view value, std::string_view allowed) {
  return refusal(fmt::format("{} {}: {}", option, value.empty() ? "''" : value, allowed));
}

template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t at = text.find(separator);
    parts.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

// Collects the first refusal, so that the parser below reads as a list of options.
class Reader {
 public:
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

  void refuse(Error error) {
    if (!error_) error_ = std::move(error);
  }

  template <class T>
  T take(Result<T> result, T otherwise = {}) {
    if (result) return *std::move(result);
    refuse(result.error());
    return otherwise;
  }

  template <class T>
  T number(std::string_view option, const std::string& text, T least, T most) {
    const std::optional<T> value = parse_number<T>(text);
    if (value && *value >= least && *value <= most) return *value;
    refuse(
        bad_value(option, text, fmt::format("must be a whole number from {} to {}", least, most)));
    return least;
  }

  std::optional<unsigned> optional_number(std::string_view option, const std::string& text,
                                          unsigned least, unsigned most) {
    if (text.empty()) return std::nullopt;
    return number<unsigned>(option, text, least, most);
  }

  // The one of `all` that has this name.
  template <class Named>
  typename Named::value_type named(std::string_view option, const std::string& text,
                                   const Named& all) {
    std::string allowed = "must be";
    const char* separator = " ";
    for (const auto each : all) {
      if (text == name_of(each)) return each;
      allowed += fmt::format("{}{}", separator, name_of(each));
      separator = ", ";
    }
    refuse(bad_value(option, text, allowed));
    return all.front();
  }

  // True for the second of two words.
  bool choice(std::string_view option, const std::string& text, std::string_view first,
              std::string_view second) {
    if (text != first && text != second) {
      refuse(bad_value(option, text, fmt::format("must be {} or {}", first, second)));
    }
    return text == second;
  }

 private:
  std::optional<Error> error_;
};

Result<std::vector<std::string>> parse_backends(const std::string& text) {
  std::vector<std::string> names = split(text, ',');
  for (auto name = names.begin(); name != names.end(); ++name) {
    const auto known = backend_names();
    if (std::find(known.begin(), known.end(), *name) == known.end()) {
      std::string allowed = fmt::format("there is no '{}'; must be a list of", *name);
      for (const std::string_view each : known) allowed += fmt::format(" {}", each);
      return bad_value("--backends", text, allowed);
    }
    if (std::find(names.begin(), name, *name) != name) {
      return bad_value("--backends", text, "names a backend twice");
    }
  }
  return names;
}

void read_fabric(const BenchArguments& arguments, Reader& reader, BenchOptions& options) {
  const Result<FabricKind> kind = parse_fabric_kind(arguments.fabric);
  if (kind) options.fabric_kind = *kind;
  options.fabric_name = arguments.fabric;
  if (arguments.fabric.empty()) {
    reader.refuse(bad_value("--fabric", "", "must be ring, bridge, switch or a fabric's name"));
  }
  options.ranks = reader.optional_number("--ranks", arguments.ranks, 2, 64);
  options.mtu = reader.optional_number("--mtu", arguments.mtu, 576, 65535);
  options.queues = reader.optional_number("--queues", arguments.queues, 0, 64);
  if (!arguments.offloads.empty()) {
    options.offloads = reader.choice("--offloads", arguments.offloads, "off", "on");
  }
}

std::uint64_t read_timeout(const std::string& text, Reader& reader) {
  const std::optional<double> seconds = parse_number<double>(text);
  if (seconds && *seconds >= 0.001 && *seconds <= 86400) {
    return static_cast<std::uint64_t>(*seconds * 1e9);
  }
  reader.refuse(bad_value("--timeout", text, "must be seconds from 0.001 to 86400"));
  return 0;
}

bool uses(const BenchOptions& options, std::string_view backend) {
  return std::find(options.backends.begin(), options.backends.end(), backend) !=
         options.backends.end();
}

// The limits keep all results finite and normal, where the backends agree, and integer factors
// exact.
Result<void> check_pre_scale(const Reduction& reduction, const std::string& text) {
  const double factor = reduction.pre_scale;
  const double size = std::fabs(factor);
  const auto refused = [&](std::string_view allowed) {
    return bad_value("--pre-scale", text, allowed);
  };
  if (!std::isfinite(factor)) return refused("must be a number");
  if (factor == 1) return {};
  if (reduction.op != ReduceOp::kSum) {
    return refused(fmt::format("is for --op sum, not for {}", name_of(reduction.op)));
  }
  if (!is_float(reduction.type) && (factor != std::trunc(factor) || size > 0x1p53)) {
    return refused(fmt::format("must be a whole number from -2^53 to 2^53 for --dtype {}",
                               name_of(reduction.type)));
  }
  if (reduction.type == DataType::kFloat16 && size > 4) {
    return refused("must be from -4 to 4 for --dtype float16, or sums exceed its range");
  }
  if (is_float(reduction.type) && size != 0 && (size < 1e-30 || size > 1e30)) {
    return refused("must be 0 or of a magnitude from 1e-30 to 1e30");
  }
  return {};
}

// Backends that reduce as 16 bits say so here; tcp does not.
Result<void> check_compressed(const Reduction& reduction, const BenchOptions& options) {
  if (!reduction.compressed) return {};
  if (!is_float(reduction.type) || reduction.type == DataType::kFloat64) {
    return refusal(fmt::format("--compressed: is for --dtype float32, float16 and bfloat16, not {}",
                               name_of(reduction.type)));
  }
  if (reduction.op != ReduceOp::kSum && reduction.op != ReduceOp::kAverage) {
    return refusal(
        fmt::format("--compressed: is for --op sum and avg, not {}", name_of(reduction.op)));
  }
  if (uses(options, "tcp")) {
    return refusal("--compressed: the tcp backend cannot compress; use --backends erar");
  }
  return {};
}

void read_reduction(const BenchArguments& arguments, Reader& reader, BenchOptions& options) {
  Reduction& reduction = options.reduction;
  reduction.type = reader.named("--dtype", arguments.dtype, kDataTypes);
  reduction.op = reader.named("--op", arguments.op, kReduceOps);
  const std::optional<double> factor = parse_number<double>(arguments.pre_scale);
  reduction.pre_scale = factor.value_or(std::numeric_limits<double>::quiet_NaN());
  reduction.not_finite = reader.choice("--not-finite", arguments.not_finite, "refuse", "propagate")
                             ? NotFinite::kPropagate
                             : NotFinite::kRefuse;
  reduction.compressed = arguments.compressed;
  for (const Result<void>& checked :
       {check_pre_scale(reduction, arguments.pre_scale), check_compressed(reduction, options)}) {
    if (!checked) reader.refuse(checked.error());
  }
}

void read_method(const BenchArguments& arguments, Reader& reader, BenchOptions& options) {
  options.sizes = reader.take(parse_sizes("--sizes", arguments.sizes));
  options.iters = reader.number<std::uint64_t>("--iters", arguments.iters, 1, 1'000'000);
  options.warmup = reader.number<std::uint64_t>("--warmup", arguments.warmup, 0, 1'000'000);
  options.registered = reader.choice("--buffers", arguments.buffers, "caller", "registered");
  options.in_place = arguments.in_place || options.registered;
  options.seed = reader.number<std::uint64_t>("--seed", arguments.seed, 0,
                                              std::numeric_limits<std::uint64_t>::max());
  options.magnitudes = reader.choice("--magnitudes", arguments.magnitudes, "alike", "apart")
                           ? workloads::Magnitudes::kApart
                           : workloads::Magnitudes::kAlike;
  options.timeout_ns = read_timeout(arguments.timeout, reader);
  options.pin = reader.choice("--pin", arguments.pin, "off", "on");
}

void read_backend_settings(const BenchArguments& arguments, Reader& reader, BenchOptions& options) {
  options.congestion_control = arguments.cc;
  if (arguments.cc.empty() || arguments.cc.size() > 15) {
    reader.refuse(bad_value("--cc", arguments.cc, "must be a congestion control, such as cubic"));
  }
  options.generic_mode = reader.choice("--mode", arguments.mode, "native", "generic");
  options.checksum = reader.choice("--checksum", arguments.checksum, "off", "on");
  options.group_bytes = reader.take(parse_size("--group", arguments.group));
  if (options.group_bytes < 4096 || options.group_bytes > (std::size_t{256} << 20U)) {
    reader.refuse(bad_value("--group", arguments.group, "must be from 4K to 256M"));
  }
  if (arguments.window.empty()) return;
  options.window = reader.number<unsigned>(
      "--window", arguments.window, unsigned{ERAR_SMALLEST_WINDOW}, unsigned{ERAR_LARGEST_WINDOW});
  if (!uses(options, "erar")) {
    reader.refuse(bad_value("--window", arguments.window,
                            "the tcp backend has no such window; use --backends erar"));
  }
}

void read_faults(const BenchArguments& arguments, Reader& reader, BenchOptions& options) {
  // A share of 0 that was asked for: boxes in the way that do nothing, to compare with.
  const auto share = [&](const char* option, const std::string& text) {
    if (text.empty()) return 0.0;
    options.fault_boxes = true;
    const std::optional<double> value = parse_number<double>(text);
    if (value && *value >= 0 && *value <= 1) return *value;
    reader.refuse(bad_value(option, text, "must be a share of the frames from 0 to 1"));
    return 0.0;
  };
  Faults& faults = options.faults;
  faults.loss = share("--loss", arguments.loss);
  if (!arguments.burst.empty()) {
    faults.burst_frames = reader.number<unsigned>("--burst", arguments.burst, 1U, kMostBurstFrames);
    if (faults.loss == 0) reader.refuse(refusal("--burst: is for --loss above 0"));
  }
  faults.duplicate = share("--dup", arguments.duplicate);
  faults.reorder = share("--reorder", arguments.reorder);
  if (!arguments.hold.empty()) {
    faults.hold_frames = reader.number<unsigned>("--hold", arguments.hold, 1U, kMostHoldFrames);
    if (faults.reorder == 0) reader.refuse(refusal("--hold: is for --reorder above 0"));
  }
  faults.corrupt = share("--corrupt", arguments.corrupt);
  faults.corrupt_header = share("--corrupt-header", arguments.corrupt_header);
  faults.truncate = share("--truncate", arguments.truncate);
  faults.seed = options.seed;
  if (!options.checksum && (faults.corrupt > 0 || faults.corrupt_header > 0 || faults.truncate > 0))
    reader.refuse(refusal(
        "--checksum off: with --corrupt, --corrupt-header or --truncate damage would be summed"));
}

Result<std::vector<std::size_t>> parse_range(const std::string& option, const std::string& text) {
  const std::vector<std::string> parts = split(text, ':');
  if (parts.size() > 3) return bad_value(option, text, "must be first:last or first:last:factor");
  std::size_t ends[2] = {0, 0};
  for (std::size_t i = 0; i < 2; ++i) {
    Result<std::size_t> end = parse_size(option, parts[std::min(i, parts.size() - 1)]);
    if (!end) return end.error();
    ends[i] = *end;
  }
  if (parts.size() == 1) return std::vector<std::size_t>{ends[0]};
  const std::optional<unsigned> factor =
      parts.size() == 3 ? parse_number<unsigned>(parts[2]) : std::optional<unsigned>{4};
  if (!factor || *factor < 2 || *factor > 1024) {
    return bad_value(option, text, "its factor must be a whole number from 2 to 1024");
  }
  if (ends[0] < 1 || ends[0] > ends[1]) {
    return bad_value(option, text, "a range must start at 1 or more and end no lower");
  }
  std::vector<std::size_t> sizes;
  for (std::size_t size = ends[0]; size <= ends[1]; size *= *factor) sizes.push_back(size);
  return sizes;
}

}  // namespace

Result<std::size_t> parse_size(const std::string& option, const std::string& text) {
  constexpr std::string_view kUnits = "KMG";
  std::string_view digits = text;
  unsigned shift = 0;
  if (!digits.empty()) {
    const char unit = digits.back() >= 'a' ? static_cast<char>(digits.back() - 32) : digits.back();
    const std::size_t index = kUnits.find(unit);
    if (index != std::string_view::npos) {
      shift = 10 * static_cast<unsigned>(index + 1);
      digits.remove_suffix(1);
    }
  }
  const std::optional<std::size_t> value = parse_number<std::size_t>(digits);
  if (!value || *value > (kLargestSize >> shift)) {
    return bad_value(option, text, "must be bytes from 0 to 4G, such as 1000, 64K or 16M");
  }
  return *value << shift;
}

Result<std::vector<std::size_t>> parse_sizes(const std::string& option, const std::string& text) {
  std::vector<std::size_t> sizes;
  for (const std::string& part : split(text, ',')) {
    const Result<std::vector<std::size_t>> range = parse_range(option, part);
    if (!range) return range.error();
    sizes.insert(sizes.end(), range->begin(), range->end());
  }
  if (sizes.size() > kMostSizes) {
    return bad_value(option, text, fmt::format("must be at most {} sizes", kMostSizes));
  }
  return sizes;
}

std::string size_text(std::size_t bytes) {
  constexpr std::string_view kUnits = "KMG";
  std::string unit;
  for (std::size_t i = 0; i < kUnits.size() && bytes != 0 && bytes % 1024 == 0; ++i) {
    bytes /= 1024;
    unit = kUnits[i];
  }
  return fmt::format("{}{}", bytes, unit);
}

Result<BenchOptions> parse_bench_options(const BenchArguments& arguments) {
  Reader reader;
  BenchOptions options;
  options.backends = reader.take(parse_backends(arguments.backends));
  read_fabric(arguments, reader, options);
  read_reduction(arguments, reader, options);
  read_method(arguments, reader, options);
  read_backend_settings(arguments, reader, options);
  read_faults(arguments, reader, options);
  options.json_path = arguments.json;
  options.csv_path = arguments.csv;
  options.counters = arguments.counters;
  if (const auto checked = cli::check_report_paths(arguments.json, arguments.csv); !checked) {
    reader.refuse(checked.error());
  }
  if (options.registered && arguments.in_place) {
    reader.refuse(refusal("--in-place: is for --buffers caller; registered buffers always are"));
  }
  if (reader.error()) return *reader.error();
  if (options.fabric_kind) {
    const Result<void> checked = check_against_fabric(options, new_fabric_spec(options));
    if (!checked) return checked.error();
  }
  return options;
}

FabricSpec new_fabric_spec(const BenchOptions& options) {
  FabricSpec spec;
  spec.name = fmt::format("bench-{}", ::getpid());
  spec.kind = options.fabric_kind.value_or(FabricKind::kRing);
  spec.ranks = options.ranks.value_or(spec.ranks);
  spec.mtu = options.mtu.value_or(spec.mtu);
  spec.queues = options.queues.value_or(spec.queues);
  spec.faults = options.fault_boxes;
  spec.offloads = options.offloads.value_or(!spec.faults);
  spec.ephemeral = true;
  return spec;
}

Result<void> check_against_fabric(const BenchOptions& options, const FabricSpec& fabric) {
  const auto differs = [&](std::string_view option, const auto& given, const auto& is) {
    return bad_value(
        option, fmt::format("{}", given),
        fmt::format("fabric {} has {}: leave it out or make it agree", fabric.name, is));
  };
  if (options.ranks && *options.ranks != fabric.ranks) {
    return differs("--ranks", *options.ranks, fabric.ranks);
  }
  if (options.mtu && *options.mtu != fabric.mtu) return differs("--mtu", *options.mtu, fabric.mtu);
  if (options.queues && *options.queues != fabric.queues) {
    return differs("--queues", *options.queues, fabric.queues);
  }
  if (options.offloads && *options.offloads != fabric.offloads) {
    return differs("--offloads", *options.offloads ? "on" : "off", fabric.offloads ? "on" : "off");
  }
  if (options.fault_boxes && !fabric.faults) {
    return refusal(
        fmt::format("--loss and the like: fabric {} has no fault boxes; make it with "
                    "--faults",
                    fabric.name));
  }
  if (fabric.faults && fabric.offloads) {
    return refusal(
        "--offloads on: fault boxes need frames as they are on a wire, so no TSO and GRO; leave it "
        "out");
  }
  if (fabric.mtu > kLargestNativeMtu && fabric.faults) {
    return bad_value(
        "--mtu", fmt::format("{}", fabric.mtu),
        fmt::format("with fault boxes (--loss and the like) it is 576 to {}", kLargestNativeMtu));
  }
  if (fabric.mtu > kLargestNativeMtu && uses(options, "erar") && !options.generic_mode) {
    return bad_value("--mtu", fmt::format("{}", fabric.mtu),
                     fmt::format("the erar backend in native mode takes 576 to {}; use --mode "
                                 "generic or another --mtu",
                                 kLargestNativeMtu));
  }
  return {};
}

}  // namespace erar::bench
