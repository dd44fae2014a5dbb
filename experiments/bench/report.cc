// JSON and CSV from one list of fields, so that they cannot differ.
#include "experiments/bench/report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace erar::bench {
namespace {

using Json = nlohmann::ordered_json;

void add_reduction(Json& fields, const BenchOptions& options) {
  const Reduction& reduction = options.reduction;
  fields["dtype"] = name_of(reduction.type);
  fields["redop"] = name_of(reduction.op);
  fields["pre_scale"] = reduction.pre_scale;
  fields["compressed"] = reduction.compressed;
  fields["not_finite"] = reduction.not_finite == NotFinite::kRefuse ? "refuse" : "propagate";
  fields["checksum"] = options.checksum ? "on" : "off";
}

void add_faults(Json& fields, const BenchOptions& options) {
  const Faults& faults = options.faults;
  fields["fault_boxes"] = options.fault_boxes;
  fields["loss"] = faults.loss;
  fields["burst_frames"] = faults.burst_frames;
  fields["duplicate"] = faults.duplicate;
  fields["reorder"] = faults.reorder;
  fields["hold_frames"] = faults.hold_frames;
  fields["corrupt"] = faults.corrupt;
  fields["corrupt_header"] = faults.corrupt_header;
  fields["truncate"] = faults.truncate;
}

Json row_fields(const Conditions& conditions, const Row& row) {
  const BenchOptions& options = conditions.options;
  const FabricSpec& fabric = conditions.fabric;
  const auto measured = [&row](auto value) { return row.failed() ? Json() : Json(value); };
  Json fields;
  fields["backend"] = row.backend;
  fields["fabric"] = name_of(fabric.kind);
  fields["ranks"] = fabric.ranks;
  fields["mtu"] = fabric.mtu;
  fields["offloads"] = fabric.offloads ? "on" : "off";
  fields["cc"] = options.congestion_control;
  fields["buffers"] = options.registered ? "registered" : "caller";
  fields["in_place"] = options.in_place;
  add_reduction(fields, options);
  fields["mode"] = options.generic_mode ? "generic" : "native";
  fields["group_bytes"] = options.group_bytes;
  fields["window_frames"] = window_frames(conditions);
  add_faults(fields, options);
  fields["bytes"] = row.bytes;
  fields["count"] = row.count;
  fields["iters"] = row.iters;
  fields["time_us_p50"] = measured(row.p50_us);
  fields["time_us_min"] = measured(row.min_us);
  fields["time_us_max"] = measured(row.max_us);
  fields["algbw_GBps"] = measured(row.algbw_gbps);
  fields["busbw_GBps"] = measured(row.busbw_gbps);
  fields["agreement_us_p50"] = row.agreement_us ? measured(*row.agreement_us) : Json();
  fields["wrong"] = measured(row.wrong);
  fields["cpu_s_per_GB"] = row.bytes == 0 ? Json() : measured(row.cpu_s_per_gb);
  for (const auto& [name, value] : row.faults.named()) fields["link_" + name] = value;
  fields["error"] = row.error;
  return fields;
}

Json context_fields(const Conditions& conditions) {
  const BenchOptions& options = conditions.options;
  Json context;
  context["host"] = conditions.host.name;
  context["kernel"] = conditions.host.kernel;
  context["cpu"] = conditions.host.cpu;
  context["cpus"] = conditions.host.cpus;
  context["load_average"] = conditions.host.load;
  context["date"] = conditions.host.date;
  context["version"] = conditions.version;
  context["commit"] = conditions.commit;
  context["fabric"] = name_of(conditions.fabric.kind);
  context["ranks"] = conditions.fabric.ranks;
  context["mtu"] = conditions.fabric.mtu;
  context["queues"] = conditions.fabric.queues;
  context["offloads"] = conditions.fabric.offloads ? "on" : "off";
  context["backends"] = options.backends;
  context["cc"] = options.congestion_control;
  context["buffers"] = options.registered ? "registered" : "caller";
  context["in_place"] = options.in_place;
  add_reduction(context, options);
  context["mode"] = options.generic_mode ? "generic" : "native";
  context["group_bytes"] = options.group_bytes;
  context["window_frames"] = window_frames(conditions);
  add_faults(context, options);
  context["iters"] = options.iters;
  context["warmup"] = options.warmup;
  context["seed"] = options.seed;
  context["magnitudes"] = options.magnitudes == workloads::Magnitudes::kAlike ? "alike" : "apart";
  context["pin"] = options.pin;
  context["timeout_s"] = static_cast<double>(options.timeout_ns) / 1e9;
  context["cpu_includes_softirq_threads"] = conditions.cpu_complete;
  return context;
}

// RFC 4180: quoted when it has to be. A null is an empty cell.
std::string csv_cell(const Json& value) {
  if (value.is_null()) return "";
  const auto* text = value.get_ptr<const std::string*>();
  if (text == nullptr) return value.dump();
  if (text->find_first_of(",\"\r\n") == std::string::npos) return *text;
  std::string quoted(1, '"');
  for (const char letter : *text) quoted.append(letter == '"' ? 2 : 1, letter);
  quoted.push_back('"');
  return quoted;
}

// Where the file is to be: symbolic links are followed, or a rename would replace the link.
std::string resolve(const std::string& path) {
  char* real = ::realpath(path.c_str(), nullptr);
  if (real == nullptr) return path;  // does not exist yet
  std::string resolved = real;
  std::free(real);
  return resolved;
}

}  // namespace

std::string json_report(const Conditions& conditions, const std::vector<Row>& rows) {
  Json report;
  report["context"] = context_fields(conditions);
  report["rows"] = Json::array();
  for (const Row& row : rows) {
    Json fields = row_fields(conditions, row);
    Json& counters = fields["counters"] = Json::object();
    for (const auto& [name, value] : row.counters) counters[name] = value;
    report["rows"].push_back(std::move(fields));
  }
  // Names of hosts and kernels need not be UTF-8; dump() throws on what is not unless told
  // otherwise.
  return report.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string csv_names(const Json& row) {
  std::string text;
  for (const auto& [name, value] : row.items()) text += (text.empty() ? "" : ",") + name;
  return text + "\n";
}

std::string csv_line(const Json& row) {
  std::string text;
  const char* separator = "";
  for (const auto& [name, value] : row.items()) {
    text += separator + csv_cell(value);
    separator = ",";
  }
  return text + "\n";
}

std::string csv_report(const Conditions& conditions, const std::vector<Row>& rows) {
  std::string text = csv_names(row_fields(conditions, Row{}));
  for (const Row& row : rows) text += csv_line(row_fields(conditions, row));
  return text;
}

Result<ReportFile> ReportFile::open(const std::string& path) {
  ReportFile file;
  file.path_ = resolve(path);
  struct stat status {};
  const bool exists = ::stat(file.path_.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) return Error{EISDIR, "write", path};
  if (exists && !S_ISREG(status.st_mode)) {  // /dev/stdout, a pipe: nothing to rename over
    file.fd_ = UniqueFd(::open(file.path_.c_str(), O_WRONLY | O_CLOEXEC));
  } else {
    file.temporary_ = fmt::format("{}.{}.tmp", file.path_, ::getpid());
    file.fd_ =
        UniqueFd(::open(file.temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  }
  if (file.fd_.valid()) return file;
  file.temporary_.clear();
  return errno_error("write", path);
}

ReportFile::ReportFile(ReportFile&& other) noexcept
    : fd_(std::move(other.fd_)),
      path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})) {}

ReportFile::~ReportFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Result<void> ReportFile::commit(const std::string& content) {
  for (std::size_t done = 0; done < content.size();) {
    const ssize_t written = ::write(fd_.get(), content.data() + done, content.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno_error("write", path_);
    done += static_cast<std::size_t>(written);
  }
  if (temporary_.empty()) return {};
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return errno_error("write", path_);
  temporary_.clear();
  return {};
}

}  // namespace erar::bench
