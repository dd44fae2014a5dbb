// FaultBox: loading, attaching and finding again by netlink; settings, rules and counters by map.
#include "bpf/host/fault_box.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <net/if.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string_view>
#include <tuple>
#include <utility>

// The skeleton names our structs without defining them: bpf/faults.h must come first.
#include "faults.skel.h"

namespace erar {
namespace {

struct DestroySkeleton {
  void operator()(faults_bpf* skeleton) const { faults_bpf__destroy(skeleton); }
};
using Skeleton = std::unique_ptr<faults_bpf, DestroySkeleton>;

Result<int> index_of(const std::string& device) {
  const unsigned index = if_nametoindex(device.c_str());
  if (index == 0) return errno_error("find device", device);
  return static_cast<int>(index);
}

Result<void> write_map(int map_fd, std::uint32_t key, const void* value, const char* what) {
  if (bpf_map_update_elem(map_fd, &key, value, BPF_ANY) != 0) return errno_error("set", what);
  return {};
}

// Every entry has the egress program: of the frames that wait for a device, the first says by which
// program all of them leave.
Result<void> enter_device(const bpf_map* map, std::uint32_t key, int ifindex, int egress_fd) {
  bpf_devmap_val value{};
  value.ifindex = static_cast<__u32>(ifindex);
  value.bpf_prog.fd = egress_fd;
  const int code = bpf_map__update_elem(map, &key, sizeof(key), &value, sizeof(value), BPF_ANY);
  if (code != 0) return Error{-code, "enter a device into", bpf_map__name(map)};
  return {};
}

Result<void> fill_device_maps(const faults_bpf& skeleton, int ifindex_a, int ifindex_b) {
  const int egress_fd = bpf_program__fd(skeleton.progs.erar_fault_egress);
  const std::tuple<const bpf_map*, std::uint32_t, int> entries[] = {
      {skeleton.maps.fault_ports, ERAR_FROM_A, ifindex_b},
      {skeleton.maps.fault_ports, ERAR_FROM_B, ifindex_a},
      {skeleton.maps.twice_from_a, 0, ifindex_b},
      {skeleton.maps.twice_from_a, 1, ifindex_b},
      {skeleton.maps.twice_from_b, 0, ifindex_a},
      {skeleton.maps.twice_from_b, 1, ifindex_a},
  };
  for (const auto& [map, key, ifindex] : entries) {
    auto entered = enter_device(map, key, ifindex, egress_fd);
    if (!entered) return entered;
  }
  return {};
}

Result<UniqueFd> duplicate(int fd) {
  UniqueFd copy(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!copy.valid()) return errno_error("duplicate a descriptor");
  return copy;
}

// The program's maps by their names.
Result<UniqueFd> map_of_program(int program_fd, std::string_view name) {
  std::array<__u32, 32> ids{};
  bpf_prog_info info{};
  info.nr_map_ids = ids.size();
  info.map_ids = reinterpret_cast<__u64>(ids.data());
  __u32 bytes = sizeof(info);
  if (bpf_obj_get_info_by_fd(program_fd, &info, &bytes) != 0) {
    return errno_error("ask for the maps of a fault box");
  }
  for (std::size_t i = 0; i < std::min<std::size_t>(info.nr_map_ids, ids.size()); i++) {
    UniqueFd map(bpf_map_get_fd_by_id(ids[i]));
    bpf_map_info map_info{};
    bytes = sizeof(map_info);
    if (!map.valid() || bpf_obj_get_info_by_fd(map.get(), &map_info, &bytes) != 0) continue;
    if (name == map_info.name) return map;
  }
  return Error{ENOENT, "find map of a fault box,", std::string(name)};
}

}  // namespace

Result<FaultBox> FaultBox::attach(const Place& place) {
  FaultBox box;
  for (auto [way, device] : {std::pair{ERAR_FROM_A, &place.port_a}, {ERAR_FROM_B, &place.port_b}}) {
    auto index = index_of(*device);
    if (!index) return index.error();
    box.ifindex_[way] = *index;
  }
  const Skeleton skeleton(faults_bpf__open());
  if (!skeleton) return errno_error("open the program of a fault box");
  skeleton->rodata->erar_place.box = place.box;
  skeleton->rodata->erar_place.ifindex_a = static_cast<__u32>(box.ifindex_[ERAR_FROM_A]);
  if (faults_bpf__load(skeleton.get()) != 0) return errno_error("load the program of a fault box");
  auto filled = fill_device_maps(*skeleton, box.ifindex_[ERAR_FROM_A], box.ifindex_[ERAR_FROM_B]);
  if (!filled) return filled.error();
  auto program = duplicate(bpf_program__fd(skeleton->progs.erar_faults));
  if (!program) return program.error();
  box.program_ = *std::move(program);
  if (auto taken = box.take_maps(); !taken) return taken.error();
  if (auto set = box.set(settings_of(Faults{})); !set) return set.error();
  for (auto [way, device] : {std::pair{ERAR_FROM_A, &place.port_a}, {ERAR_FROM_B, &place.port_b}}) {
    // By netlink, not by a link: a link would go with this process.
    const int code =
        bpf_xdp_attach(box.ifindex_[way], box.program_.get(), XDP_FLAGS_DRV_MODE, nullptr);
    if (code != 0) return Error{-code, "attach a fault box to", *device};
  }
  return box;
}

Result<FaultBox> FaultBox::open(const Place& place) {
  FaultBox box;
  for (auto [way, device] : {std::pair{ERAR_FROM_A, &place.port_a}, {ERAR_FROM_B, &place.port_b}}) {
    auto index = index_of(*device);
    if (!index) return index.error();
    box.ifindex_[way] = *index;
  }
  __u32 id = 0;
  const int code = bpf_xdp_query_id(box.ifindex_[ERAR_FROM_A], XDP_FLAGS_DRV_MODE, &id);
  if (code != 0) return Error{-code, "ask for the fault box at", place.port_a};
  if (id == 0) return Error{ENOENT, "find a fault box at", place.port_a};
  box.program_ = UniqueFd(bpf_prog_get_fd_by_id(id));
  if (!box.program_.valid()) return errno_error("open the fault box at", place.port_a);
  if (auto taken = box.take_maps(); !taken) return taken.error();
  return box;
}

Result<void> FaultBox::take_maps() {
  const std::pair<const char*, UniqueFd*> wanted[] = {{"fault_settings", &settings_},
                                                      {"fault_rules", &rules_},
                                                      {"fault_flows", &flows_},
                                                      {"fault_counters", &counters_}};
  for (const auto& [name, fd] : wanted) {
    auto map = map_of_program(program_.get(), name);
    if (!map) return map.error();
    *fd = *std::move(map);
  }
  return {};
}

Result<void> FaultBox::set(erar_fault_settings settings) {
  settings.rules = 0;
  settings.hold_frames = std::min<__u32>(settings.hold_frames, ERAR_MAX_HOLD_FRAMES);
  const erar_fault_flow fresh{};
  for (const erar_fault_way way : {ERAR_FROM_A, ERAR_FROM_B}) {
    auto written = write_map(flows_.get(), way, &fresh, "the flows of a fault box");
    if (!written) return written;
  }
  return write_map(settings_.get(), 0, &settings, "the faults of a fault box");
}

Result<void> FaultBox::set_rules(std::span<const erar_fault_rule> rules) {
  if (rules.size() > ERAR_FAULT_RULES) {
    return refusal("a fault box takes " + std::to_string(ERAR_FAULT_RULES) + " rules");
  }
  const std::uint32_t zero = 0;
  erar_fault_settings settings{};
  if (bpf_map_lookup_elem(settings_.get(), &zero, &settings) != 0) {
    return errno_error("read the faults of a fault box");
  }
  // None are in force while they are written.
  settings.rules = 0;
  auto written = write_map(settings_.get(), 0, &settings, "the faults of a fault box");
  if (!written) return written;
  erar_fault_rules all{};
  std::copy(rules.begin(), rules.end(), all.rule);
  for (erar_fault_rule& rule : all.rule) rule.matches = 0;
  written = write_map(rules_.get(), 0, &all, "the rules of a fault box");
  if (!written) return written;
  settings.rules = static_cast<__u32>(rules.size());
  return write_map(settings_.get(), 0, &settings, "the faults of a fault box");
}

Result<std::vector<std::uint64_t>> FaultBox::rule_matches() const {
  const std::uint32_t zero = 0;
  erar_fault_rules all{};
  if (bpf_map_lookup_elem(rules_.get(), &zero, &all) != 0) {
    return errno_error("read the rules of a fault box");
  }
  std::vector<std::uint64_t> matches;
  for (const erar_fault_rule& rule : all.rule) matches.push_back(rule.matches);
  return matches;
}

Result<FaultCounts> FaultBox::counts() const {
  const int cpus = libbpf_num_possible_cpus();
  if (cpus < 1) return Error{-cpus, "count the CPUs", {}};
  std::vector<FaultCounts> of_cpus(static_cast<std::size_t>(cpus));
  const std::uint32_t zero = 0;
  if (bpf_map_lookup_elem(counters_.get(), &zero, of_cpus.data()) != 0) {
    return errno_error("read the counters of a fault box");
  }
  FaultCounts sum;
  for (const FaultCounts& counts : of_cpus) sum += counts;
  return sum;
}

Result<std::vector<std::uint64_t>> FaultBox::held(erar_fault_way way) const {
  const std::uint32_t key = way;
  erar_fault_flow flow{};
  if (bpf_map_lookup_elem(flows_.get(), &key, &flow) != 0) {
    return errno_error("read what a fault box holds");
  }
  std::vector<std::uint64_t> due;
  for (const std::uint64_t state : flow.places) {
    if (erar_place_phase_of(state) == ERAR_PLACE_HELD) due.push_back(erar_place_due(state));
  }
  std::sort(due.begin(), due.end());
  return due;
}

Result<void> FaultBox::release(erar_fault_way way, unsigned many) {
  std::array<std::uint8_t, ERAR_TICK_BYTES> tick{};
  const std::uint16_t type = ERAR_BE16(ERAR_TICK_ETHERNET_TYPE);
  std::memcpy(tick.data() + offsetof(erar_frame, eth_type), &type, sizeof(type));
  xdp_md context{};
  context.data_end = tick.size();
  context.ingress_ifindex = static_cast<__u32>(ifindex_[way]);
  LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = tick.data(), .data_size_in = tick.size(),
              .ctx_in = &context, .ctx_size_in = sizeof(context), .repeat = static_cast<int>(many),
              .flags = BPF_F_TEST_XDP_LIVE_FRAMES,
              .batch_size = std::min<__u32>(many, ERAR_HOLD_PLACES));
  const int code = bpf_prog_test_run_opts(program_.get(), &options);
  if (code != 0) return Error{-code, "release what a fault box holds", {}};
  return {};
}

}  // namespace erar
