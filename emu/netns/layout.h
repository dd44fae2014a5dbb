// Layout of a fabric: names, MAC and IP addresses of everything in it, as pure functions of its
// spec.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/backend.h"
#include "core/result.h"
#include "emu/netns/fabric.h"

namespace erar {

using MacAddress = std::array<std::uint8_t, 6>;

// Refuses what cannot be built, with the reason; fills in the number of queues where it is 0.
Result<FabricSpec> check_fabric_spec(FabricSpec spec);
bool valid_fabric_name(const std::string& name);

std::string rank_namespace_name(const std::string& fabric, unsigned rank);
std::string middle_namespace_name(const std::string& fabric);  // of the bridge, of fault boxes
// Rings have one for fault boxes only.
bool has_middle_namespace(const FabricSpec& spec);
// All of a spec's namespaces, the middle one last.
std::vector<std::string> namespace_names(const FabricSpec& spec);
// The fabric that a namespace belongs to, if its name is one of ours: erar-NAME-<0..63|mid>. NAME
// may hold '-', the part behind the last '-' never does, so no fabric can claim another's
// namespaces.
std::optional<std::string> fabric_of_namespace(const std::string& namespace_name);

// Kinds of device; the number is in the MAC address: 02:e7:<device>:00:00:<rank>.
enum class Device : std::uint8_t {
  kNext = 1,
  kPrev = 2,
  kEth0 = 3,
  kId0 = 4,
  kPort = 5,
  kBridge = 6,
  kBoxA = 7,
  kBoxB = 8
};
MacAddress mac_of(Device device, unsigned rank);
std::string mac_text(Device device, unsigned rank);

// Devices of the fault box in the link from `rank`'s NIC: a is before the rank, b behind the box.
std::string box_port_a(unsigned rank);
std::string box_port_b(unsigned rank);

// IPv4 addresses in host byte order.
std::uint32_t bridge_ipv4(unsigned rank);  // 10.77.0.(rank+1)/24
std::uint32_t next_ipv4(unsigned rank);  // 10.78.rank.1/30, the near end of the ring's link `rank`
std::uint32_t far_ipv4(unsigned rank);   // 10.78.rank.2/30, its far end, at the right neighbour
std::uint32_t identity_ipv4(unsigned rank);  // 10.79.0.(rank+1)/32
std::string ipv4_text(std::uint32_t address);

RingEndpoint endpoint_of(const FabricSpec& spec, unsigned rank);
std::uint32_t rank_ipv4_of(const FabricSpec& spec, unsigned rank);

}  // namespace erar
