// The options of `erar bench allreduce`: as typed, and as checked.
#pragma once

#include "bpf/host/faults.h"
#include "core/backend.h"
#include "emu/netns/fabric.h"
#include "workloads/generator/values.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace erar::bench {

// What was typed. Everything is text here, so that every refusal is worded in one place and the
// command line's help shows the defaults. Empty: not given.
struct BenchArguments {
  std::string backends = "erar,tcp";
  std::string fabric = "ring";
  std::string ranks;
  std::string mtu;
  std::string offloads;
  std::string queues;
  std::string sizes = "1K:64M";
  std::string dtype = "float32";
  std::string op = "sum";
  std::string pre_scale = "1";
  bool compressed = false;
  std::string not_finite = "refuse";
  std::string iters = "20";
  std::string warmup = "5";
  std::string buffers = "caller";
  bool in_place = false;
  std::string cc = "cubic";
  std::string mode = "native";
  std::string group = "1M";
  std::string checksum = "on";
  std::string timeout = "10";
  std::string pin = "off";
  std::string seed = "1";
  std::string magnitudes = "alike";
  std::string loss;
  std::string burst;
  std::string duplicate;
  std::string reorder;
  std::string hold;
  std::string corrupt;
  std::string corrupt_header;
  std::string truncate;
  std::string window;
  std::string json;
  std::string csv;
  bool counters = false;
};

struct BenchOptions {
  std::vector<std::string> backends;
  // The fabric to make, or the name of the one to use; what was not given is absent.
  std::optional<FabricKind> fabric_kind;
  std::string fabric_name;
  std::optional<unsigned> ranks;
  std::optional<unsigned> mtu;
  std::optional<bool> offloads;
  std::optional<unsigned> queues;

  std::vector<std::size_t> sizes;  // bytes, as typed: not yet rounded down to whole elements
  Reduction reduction;
  std::uint64_t iters = 20;
  std::uint64_t warmup = 5;
  bool registered = false;
  bool in_place = false;  // registered implies it
  std::string congestion_control = "cubic";
  bool generic_mode = false;
  std::size_t group_bytes = 1U << 20;
  bool checksum = true;
  std::uint64_t timeout_ns = 0;
  bool pin = false;
  std::uint64_t seed = 1;
  workloads::Magnitudes magnitudes = workloads::Magnitudes::kAlike;  // of floats
  bool fault_boxes = false;  // on every rank's link; they may have nothing to do
  Faults faults;             // what they do
  unsigned window = 0;       // as RingEndpoint's
  std::string json_path;
  std::string csv_path;
  bool counters = false;
};

inline constexpr unsigned kLargestNativeMtu = 3506;  // XDP on veth needs the frame in one page

// Each refusal is one line that names the option, the value and what is allowed.
Result<BenchOptions> parse_bench_options(const BenchArguments& arguments);

// The fabric that options ask for: what was not given has its default. Its name is bench-<process>.
FabricSpec new_fabric_spec(const BenchOptions& options);

// Refuses options that contradict the fabric they are to be used on.
Result<void> check_against_fabric(const BenchOptions& options, const FabricSpec& fabric);

// "1024", "1K", "64M", "2G": bytes, 1024-based.
Result<std::size_t> parse_size(const std::string& option, const std::string& text);
// One size, a range first:last[:factor] (factor 4 where not given; last is included when it is
// hit), or a comma-separated list of both.
Result<std::vector<std::size_t>> parse_sizes(const std::string& option, const std::string& text);
// 1048576 -> "1M", 1000 -> "1000".
std::string size_text(std::size_t bytes);

}  // namespace erar::bench
