// Makes the namespaces and devices of a fabric: few `ip -batch` runs, since each line by itself
// costs a process and 64 ranks need some thousands of lines.
#include "emu/netns/builder.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <thread>
#include <utility>

#include "emu/netns/command.h"
#include "emu/netns/layout.h"
#include "emu/netns/namespace.h"
#include "emu/netns/processes.h"

namespace erar {
namespace {

using Batch = fmt::memory_buffer;

template <class... Arguments>
void line(Batch& batch, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  fmt::format_to(std::back_inserter(batch), format, std::forward<Arguments>(arguments)...);
  batch.push_back('\n');
}

Result<void> run_batch(std::vector<std::string> command, const Batch& batch, int lock_fd) {
  command.insert(command.end(), {"-batch", "-"});
  auto done = run_program(command, {fmt::to_string(batch), lock_fd});
  if (!done) return done.error();
  return {};
}

// All TCP in a fabric is cubic unless a program asks for something else on a connected socket: bbr,
// the default of many machines, is several times slower on veths. The namespace's own default
// cannot be set to cubic without allowing cubic for the whole machine
// (net.ipv4.tcp_allowed_congestion_control is global), but a route may name its congestion control,
// and sockets take it from there, accepted ones too.
constexpr const char* kCubic = "congctl cubic";

// One end of a veth as `ip link` wants it described.
std::string veth_end(const FabricSpec& spec, const std::string& name, unsigned index,
                     const std::string& where, const std::string& mac) {
  return fmt::format("name {} index {} netns {} address {} mtu {} numtxqueues {} numrxqueues {}",
                     name, index, where, mac, spec.mtu, spec.queues, spec.queues);
}

// Both ends are created where they belong: nothing ever appears in the root namespace. The two ends
// of a veth have different indices: with equal ones the kernel takes the device for one without a
// peer, and puts off what a link that comes up needs by up to a second (linkwatch_urgent_event).
Result<void> make_links(const FabricSpec& spec, int lock_fd) {
  constexpr unsigned kRankIndex = 2;
  constexpr unsigned kPrevIndex = 3;
  constexpr unsigned kFirstPortIndex = 10;
  constexpr unsigned kFirstBoxIndex = 128;
  const std::string middle = middle_namespace_name(spec.name);
  Batch batch;
  for (unsigned rank = 0; rank < spec.ranks; ++rank) {
    const unsigned right = (rank + 1) % spec.ranks;
    const bool ring = spec.kind == FabricKind::kRing;
    const std::string near =
        veth_end(spec, ring ? "next" : "eth0", kRankIndex, rank_namespace_name(spec.name, rank),
                 mac_text(ring ? Device::kNext : Device::kEth0, rank));
    const std::string far =
        ring ? veth_end(spec, "prev", kPrevIndex, rank_namespace_name(spec.name, right),
                        mac_text(Device::kPrev, right))
             : veth_end(spec, fmt::format("port{}", rank), kFirstPortIndex + rank, middle,
                        mac_text(Device::kPort, rank));
    if (!spec.faults) {
      line(batch, "link add {} type veth peer {}", near, far);
      continue;
    }
    const unsigned box_index = kFirstBoxIndex + 2 * rank;
    line(batch, "link add {} type veth peer {}", near,
         veth_end(spec, box_port_a(rank), box_index, middle, mac_text(Device::kBoxA, rank)));
    line(batch, "link add {} type veth peer {}",
         veth_end(spec, box_port_b(rank), box_index + 1, middle, mac_text(Device::kBoxB, rank)),
         far);
  }
  return run_batch({"ip"}, batch, lock_fd);
}

Result<void> make_namespaces(const FabricSpec& spec, int lock_fd) {
  Batch batch;
  for (const std::string& name : namespace_names(spec)) line(batch, "netns add {}", name);
  auto made = run_batch({"ip"}, batch, lock_fd);
  if (!made) return made;

  using Setting = std::pair<const char*, const char*>;
  // Before the first device: IPv6 off keeps router solicitations and the like out of the counters.
  static const Setting kSettings[] = {
      {"net/ipv6/conf/all/disable_ipv6", "1"},
      {"net/ipv6/conf/default/disable_ipv6", "1"},
      {"net/ipv4/ip_forward", "1"},
      {"net/ipv4/conf/all/rp_filter", "0"},
      {"net/ipv4/conf/default/rp_filter", "0"},
      {"net/bridge/bridge-nf-call-iptables", "0"},
      {"net/bridge/bridge-nf-call-ip6tables", "0"},
      {"net/bridge/bridge-nf-call-arptables", "0"},
  };
  for (const std::string& name : namespace_names(spec)) {
    auto set = in_namespace(name, [&]() -> Result<void> {
      for (auto [path, value] : kSettings) {
        auto written = write_sysctl(path, value);
        if (!written) return written;
      }
      return {};
    });
    if (!set) return set;
  }
  return {};
}

// The rank's address sits on an empty bridge: it acts as a dummy device, which this kernel may
// lack, and unlike lo it is not skipped by MPI libraries.
Result<void> configure_ring_rank(const FabricSpec& spec, unsigned rank, int lock_fd) {
  unsigned left = (rank + spec.ranks - 1) % spec.ranks;
  unsigned right = (rank + 1) % spec.ranks;
  std::string own = ipv4_text(identity_ipv4(rank));
  Batch batch;
  line(batch, "link add name id0 address {} type bridge", mac_text(Device::kId0, rank));
  line(batch, "addr add {}/32 dev id0", own);
  line(batch, "addr add {}/30 dev next", ipv4_text(next_ipv4(rank)));
  line(batch, "addr add {}/30 dev prev", ipv4_text(far_ipv4(left)));
  for (const char* device : {"lo", "id0", "next", "prev"}) line(batch, "link set {} up", device);
  line(batch, "neigh replace {} lladdr {} dev next nud permanent", ipv4_text(far_ipv4(rank)),
       mac_text(Device::kPrev, right));
  line(batch, "neigh replace {} lladdr {} dev prev nud permanent", ipv4_text(next_ipv4(left)),
       mac_text(Device::kNext, left));
  line(batch, "route replace {}/30 dev next src {} {}", ipv4_text(next_ipv4(rank) - 1),
       ipv4_text(next_ipv4(rank)), kCubic);
  line(batch, "route replace {}/30 dev prev src {} {}", ipv4_text(next_ipv4(left) - 1),
       ipv4_text(far_ipv4(left)), kCubic);
  for (unsigned distance = 1; distance < spec.ranks; ++distance) {
    // The nearer way round; the opposite rank over next.
    bool rightwards = distance <= spec.ranks - distance;
    line(batch, "route add {}/32 via {} dev {} src {} {}",
         ipv4_text(identity_ipv4((rank + distance) % spec.ranks)),
         ipv4_text(rightwards ? far_ipv4(rank) : next_ipv4(left)), rightwards ? "next" : "prev",
         own, kCubic);
  }
  return run_batch({"ip", "-n", rank_namespace_name(spec.name, rank)}, batch, lock_fd);
}

Result<void> configure_bridge_rank(const FabricSpec& spec, unsigned rank, int lock_fd) {
  std::string own = ipv4_text(bridge_ipv4(rank));
  Batch batch;
  line(batch, "addr add {}/24 dev eth0", own);
  line(batch, "link set lo up");
  line(batch, "link set eth0 up");
  line(batch, "route replace {}/24 dev eth0 src {} {}", ipv4_text(bridge_ipv4(0) - 1), own, kCubic);
  for (unsigned other = 0; other < spec.ranks; ++other) {
    if (other == rank) continue;
    line(batch, "neigh replace {} lladdr {} dev eth0 nud permanent", ipv4_text(bridge_ipv4(other)),
         mac_text(Device::kEth0, other));
  }
  return run_batch({"ip", "-n", rank_namespace_name(spec.name, rank)}, batch, lock_fd);
}

Result<void> configure_bridge(const FabricSpec& spec, int lock_fd) {
  const std::string middle = middle_namespace_name(spec.name);
  Batch batch;
  line(batch, "link add name br0 address {} mtu {} type bridge mcast_snooping 0 stp_state 0",
       mac_text(Device::kBridge, 0), spec.mtu);
  for (const char* device : {"lo", "br0"}) line(batch, "link set {} up", device);
  for (unsigned rank = 0; rank < spec.ranks; ++rank) {
    line(batch, "link set port{} up", rank);
    line(batch, "link set port{} master br0", rank);
  }
  auto made = run_batch({"ip", "-n", middle}, batch, lock_fd);
  if (!made) return made;

  // Who is where is known from the start: a bridge that has yet to learn floods to all ports.
  Batch addresses;
  for (unsigned rank = 0; rank < spec.ranks; ++rank) {
    line(addresses, "fdb replace {} dev port{} master static", mac_text(Device::kEth0, rank), rank);
  }
  return run_batch({"bridge", "-n", middle}, addresses, lock_fd);
}

Result<void> raise_boxes(const FabricSpec& spec, int lock_fd) {
  Batch batch;
  for (unsigned rank = 0; rank < spec.ranks; ++rank) {
    line(batch, "link set {} up", box_port_a(rank));
    line(batch, "link set {} up", box_port_b(rank));
  }
  return run_batch({"ip", "-n", middle_namespace_name(spec.name)}, batch, lock_fd);
}

Result<void> set_offloads(const std::string& device, const std::vector<std::string>& settings,
                          int lock_fd) {
  std::vector<std::string> command = {"ethtool", "-K", device};
  command.insert(command.end(), settings.begin(), settings.end());
  auto done = run_program(command, {{}, lock_fd});
  if (!done) return done.error();
  return {};
}

const std::vector<std::string> kOffloadsOff = {"tso", "off", "gso", "off", "gro",
                                               "off", "tx",  "off", "rx",  "off"};

const std::vector<std::string> kAllButReceiveOff = {"tso", "off", "gso", "off", "gro",
                                                    "on",  "tx",  "off", "rx",  "off"};

// What a fault box redirects is lost at a device without NAPI, and GRO is what brings a veth that.
// With a largest size of one frame it merges nothing, so that TCP has no offload from it.
Result<void> set_receive_polling(const FabricSpec& spec, const std::string& device, int lock_fd) {
  auto set = set_offloads(device, kAllButReceiveOff, lock_fd);
  if (!set) return set;
  auto limited =
      run_program({"ip", "link", "set", "dev", device, "gro_max_size", fmt::format("{}", spec.mtu)},
                  {{}, lock_fd});
  if (!limited) return limited.error();
  return {};
}

// Inside a rank's namespace.
Result<void> finish_rank(const FabricSpec& spec, int lock_fd) {
  std::vector<std::string> devices = {"eth0"};
  if (spec.kind == FabricKind::kRing) devices = {"next", "prev"};
  for (const std::string& device : devices) {
    if (spec.faults) {
      auto set = set_receive_polling(spec, device, lock_fd);
      if (!set) return set;
    } else if (!spec.offloads) {
      auto set = set_offloads(device, kOffloadsOff, lock_fd);
      if (!set) return set;
    }
    auto running = wait_until_running(device);
    if (!running) return running;
  }
  return {};
}

// Inside the middle namespace, whose boxes' programs come later.
Result<void> finish_boxes(const FabricSpec& spec, int lock_fd) {
  for (unsigned rank = 0; rank < spec.ranks; ++rank) {
    for (const std::string& device : {box_port_a(rank), box_port_b(rank)}) {
      auto set = set_offloads(device, kOffloadsOff, lock_fd);
      if (set) set = wait_until_running(device);
      if (!set) return set;
    }
  }
  return {};
}

// Inside the middle namespace. GRO is on at the bridge's ports even when offloads are off: it is
// what gives a veth NAPI, and without NAPI it drops the frames that a rank's XDP program redirects
// to it. What GRO merges there the port that sends it splits again, so the ranks see frames of MTU
// size. Measured, one TCP stream: no difference with offloads on; with offloads off some 15 %
// slower than without GRO here (medians 0.56 and 0.65 GB/s), which a comparison has to say.
Result<void> finish_port(const FabricSpec& spec, unsigned rank, int lock_fd) {
  std::string device = fmt::format("port{}", rank);
  std::vector<std::string> settings = {"gro", "on"};
  if (!spec.offloads) {
    settings = kAllButReceiveOff;
  }
  auto set = spec.faults ? set_receive_polling(spec, device, lock_fd)
                         : set_offloads(device, settings, lock_fd);
  if (!set) return set;
  return wait_until_running(device);
}

}  // namespace

Result<void> build_network(const FabricSpec& spec, int lock_fd) {
  auto made = make_namespaces(spec, lock_fd);
  if (!made) return made;
  made = make_links(spec, lock_fd);
  if (!made) return made;
  if (spec.faults) {
    made = raise_boxes(spec, lock_fd);
    if (!made) return made;
  }
  const bool ring = spec.kind == FabricKind::kRing;
  for (unsigned rank = 0; rank < spec.ranks; ++rank) {
    made = ring ? configure_ring_rank(spec, rank, lock_fd)
                : configure_bridge_rank(spec, rank, lock_fd);
    if (!made) return made;
  }
  if (!ring) {
    made = configure_bridge(spec, lock_fd);
    if (!made) return made;
    made = in_namespace(middle_namespace_name(spec.name), [&]() -> Result<void> {
      for (unsigned rank = 0; rank < spec.ranks; ++rank) {
        auto finished = finish_port(spec, rank, lock_fd);
        if (!finished) return finished;
      }
      return {};
    });
    if (!made) return made;
  }
  if (spec.faults) {
    made =
        in_namespace(middle_namespace_name(spec.name), [&] { return finish_boxes(spec, lock_fd); });
    if (!made) return made;
  }
  for (unsigned rank = 0; rank < spec.ranks; ++rank) {
    made = in_namespace(rank_namespace_name(spec.name, rank),
                        [&] { return finish_rank(spec, lock_fd); });
    if (!made) return made;
  }
  return {};
}

Result<void> reset_receive_offload(const FabricSpec& spec, int lock_fd) {
  const char* device = spec.kind == FabricKind::kRing ? "prev" : "eth0";
  const char* gro = spec.faults ? "on" : "off";  // see set_receive_polling()
  for (unsigned rank = 0; rank < spec.ranks; ++rank) {
    auto set = in_namespace(rank_namespace_name(spec.name, rank), [&] {
      return set_offloads(device, {"gro", gro}, lock_fd);
    });
    if (!set) return set;
  }
  return {};
}

std::vector<std::string> existing_namespaces(const std::string& fabric) {
  std::vector<std::string> names = all_namespace_names();
  names.erase(
      std::remove_if(names.begin(), names.end(),
                     [&](const std::string& name) { return fabric_of_namespace(name) != fabric; }),
      names.end());
  std::sort(names.begin(), names.end());
  return names;
}

Result<void> remove_namespaces(const std::vector<std::string>& names, int lock_fd) {
  if (names.empty()) return {};
  auto ended = end_processes_in(names);
  if (!ended) return ended;
  Batch batch;
  for (const std::string& name : names) line(batch, "netns del {}", name);
  return run_batch({"ip", "-force"}, batch, lock_fd);
}

}  // namespace erar
