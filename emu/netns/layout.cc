// Layout of a fabric: names and addresses.
#include "emu/netns/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

namespace erar {
namespace {

constexpr unsigned kMaxRanks = 64;
constexpr unsigned kMaxQueues = 64;
constexpr unsigned kMaxNativeXdpMtu = 3506;  // of a veth, with 4 KiB pages

bool all_of_name(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

// "0".."63" as a number is written, without leading zeros.
bool is_rank_number(const std::string& text) {
  if (text.empty() || text.size() > 2 || (text.size() == 2 && text[0] == '0')) return false;
  unsigned value = 0;
  for (char c : text) {
    if (c < '0' || c > '9') return false;
    value = value * 10 + static_cast<unsigned>(c - '0');
  }
  return value < kMaxRanks;
}

}  // namespace

const char* name_of(FabricKind kind) {
  switch (kind) {
    case FabricKind::kRing:
      return "ring";
    case FabricKind::kBridge:
      return "bridge";
    case FabricKind::kSwitch:
      return "switch";
  }
  return "?";
}

Result<FabricKind> parse_fabric_kind(const std::string& text) {
  for (FabricKind kind : {FabricKind::kRing, FabricKind::kBridge, FabricKind::kSwitch}) {
    if (text == name_of(kind)) return kind;
  }
  return refusal(fmt::format("no kind of fabric \"{}\": ring, bridge or switch", text));
}

bool valid_fabric_name(const std::string& name) {
  return !name.empty() && name.size() <= 24 && all_of_name(name);
}

Result<FabricSpec> check_fabric_spec(FabricSpec spec) {
  if (!valid_fabric_name(spec.name)) {
    return refusal(
        fmt::format("fabric name \"{}\": 1 to 24 of a-z, 0-9 and '-' are allowed", spec.name));
  }
  if (parse_fabric_kind(spec.name)) {
    return refusal(
        fmt::format("fabric name \"{0}\": --fabric {0} makes one of that kind", spec.name));
  }
  if (spec.ranks < 2 || spec.ranks > kMaxRanks) {
    return refusal(fmt::format("{} ranks: a fabric has 2 to {}", spec.ranks, kMaxRanks));
  }
  if (spec.mtu < 576 || spec.mtu > 65535) {
    return refusal(fmt::format("MTU {}: 576 to 65535 are possible", spec.mtu));
  }
  if (spec.kind == FabricKind::kSwitch && spec.mtu > kMaxNativeXdpMtu) {
    return refusal(
        fmt::format("MTU {}: the XDP switch takes up to {}", spec.mtu, kMaxNativeXdpMtu));
  }
  if (spec.faults && spec.mtu > kMaxNativeXdpMtu) {
    return refusal(
        fmt::format("MTU {}: the fault boxes take up to {}", spec.mtu, kMaxNativeXdpMtu));
  }
  if (spec.faults && spec.offloads) {
    return refusal(
        "fault boxes need frames as they are on a wire, so no TSO and GRO: offloads off");
  }
  if (spec.queues > kMaxQueues) {
    return refusal(fmt::format("{} queues: at most {}", spec.queues, kMaxQueues));
  }
  if (spec.queues == 0) spec.queues = std::clamp(std::thread::hardware_concurrency(), 1u, 8u);
  return spec;
}

std::string rank_namespace_name(const std::string& fabric, unsigned rank) {
  return fmt::format("erar-{}-{}", fabric, rank);
}

std::string middle_namespace_name(const std::string& fabric) {
  return fmt::format("erar-{}-mid", fabric);
}

bool has_middle_namespace(const FabricSpec& spec) {
  return spec.kind != FabricKind::kRing || spec.faults;
}

std::string box_port_a(unsigned rank) { return fmt::format("box{}a", rank); }
std::string box_port_b(unsigned rank) { return fmt::format("box{}b", rank); }

std::vector<std::string> namespace_names(const FabricSpec& spec) {
  std::vector<std::string> names;
  for (unsigned rank = 0; rank < spec.ranks; ++rank) {
    names.push_back(rank_namespace_name(spec.name, rank));
  }
  if (has_middle_namespace(spec)) names.push_back(middle_namespace_name(spec.name));
  return names;
}

std::optional<std::string> fabric_of_namespace(const std::string& namespace_name) {
  const std::string prefix = "erar-";
  if (namespace_name.compare(0, prefix.size(), prefix) != 0) return std::nullopt;
  std::size_t dash = namespace_name.rfind('-');
  if (dash < prefix.size()) return std::nullopt;
  std::string suffix = namespace_name.substr(dash + 1);
  std::string fabric = namespace_name.substr(prefix.size(), dash - prefix.size());
  if ((suffix != "mid" && !is_rank_number(suffix)) || !valid_fabric_name(fabric)) {
    return std::nullopt;
  }
  return fabric;
}

MacAddress mac_of(Device device, unsigned rank) {
  return {0x02, 0xe7, static_cast<std::uint8_t>(device), 0, 0, static_cast<std::uint8_t>(rank)};
}

std::string mac_text(Device device, unsigned rank) {
  return fmt::format("{:02x}", fmt::join(mac_of(device, rank), ":"));
}

std::uint32_t bridge_ipv4(unsigned rank) { return 0x0a4d0000u | (rank + 1); }
std::uint32_t next_ipv4(unsigned rank) { return 0x0a4e0001u | (rank << 8); }
std::uint32_t far_ipv4(unsigned rank) { return 0x0a4e0002u | (rank << 8); }
std::uint32_t identity_ipv4(unsigned rank) { return 0x0a4f0000u | (rank + 1); }

std::string ipv4_text(std::uint32_t address) {
  return fmt::format("{}.{}.{}.{}", address >> 24, (address >> 16) & 0xff, (address >> 8) & 0xff,
                     address & 0xff);
}

std::uint32_t rank_ipv4_of(const FabricSpec& spec, unsigned rank) {
  return spec.kind == FabricKind::kRing ? identity_ipv4(rank) : bridge_ipv4(rank);
}

RingEndpoint endpoint_of(const FabricSpec& spec, unsigned rank) {
  unsigned right = (rank + 1) % spec.ranks;
  unsigned left = (rank + spec.ranks - 1) % spec.ranks;
  RingEndpoint endpoint;
  endpoint.rank = rank;
  endpoint.ranks = spec.ranks;
  endpoint.mtu = spec.mtu;
  if (spec.kind == FabricKind::kRing) {
    endpoint.rx_interface = "prev";
    endpoint.tx_interface = "next";
    endpoint.source_mac = mac_of(Device::kNext, rank);
    endpoint.next_mac = mac_of(Device::kPrev, right);
    endpoint.listen_ipv4 = far_ipv4(left);
    endpoint.source_ipv4 = next_ipv4(rank);
    endpoint.next_ipv4 = far_ipv4(rank);
  } else {
    endpoint.rx_interface = endpoint.tx_interface = "eth0";
    endpoint.source_mac = mac_of(Device::kEth0, rank);
    endpoint.next_mac = mac_of(Device::kEth0, right);
    endpoint.listen_ipv4 = endpoint.source_ipv4 = bridge_ipv4(rank);
    endpoint.next_ipv4 = bridge_ipv4(right);
  }
  return endpoint;
}

}  // namespace erar
