// The XDP switch of a fabric: fills its tables, attaches it.
#include "emu/netns/xdp_switch.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <linux/if_link.h>
#include <net/if.h>

#include <cstring>
#include <memory>
#include <string>

#include "emu/netns/layout.h"
#include "emu/netns/namespace.h"
#include "switch.skel.h"

namespace erar {
namespace {

struct DestroySkeleton {
  void operator()(switch_bpf* skeleton) const { switch_bpf__destroy(skeleton); }
};
using Skeleton = std::unique_ptr<switch_bpf, DestroySkeleton>;

std::string port_name(unsigned rank) { return fmt::format("port{}", rank); }

Result<int> port_index(unsigned rank) {
  unsigned index = if_nametoindex(port_name(rank).c_str());
  if (index == 0) return errno_error("find device", port_name(rank));
  return static_cast<int>(index);
}

// Inside the middle namespace: the kernel looks the device numbers of a DEVMAP up in the namespace
// of the thread that writes them.
Result<void> fill_tables(const switch_bpf& skeleton, const FabricSpec& spec) {
  for (std::uint32_t rank = 0; rank < spec.ranks; ++rank) {
    auto index = port_index(rank);
    if (!index) return index.error();
    int code = bpf_map__update_elem(skeleton.maps.ports, &rank, sizeof(rank), &*index,
                                    sizeof(*index), BPF_ANY);
    if (code != 0) return Error{-code, "enter into the XDP switch", port_name(rank)};
    const MacAddress mac = mac_of(Device::kEth0, rank);
    std::uint64_t key = 0;
    std::memcpy(&key, mac.data(), mac.size());
    code = bpf_map__update_elem(skeleton.maps.port_of_mac, &key, sizeof(key), &rank, sizeof(rank),
                                BPF_ANY);
    if (code != 0) return Error{-code, "enter into the XDP switch", mac_text(Device::kEth0, rank)};
  }
  return {};
}

Result<void> attach_inside(const FabricSpec& spec) {
  Skeleton skeleton(switch_bpf__open_and_load());
  if (!skeleton) return errno_error("load the XDP switch");
  auto filled = fill_tables(*skeleton, spec);
  if (!filled) return filled;
  const int program = bpf_program__fd(skeleton->progs.erar_switch);
  for (unsigned rank = 0; rank < spec.ranks; ++rank) {
    auto index = port_index(rank);
    if (!index) return index.error();
    // By netlink, not by a link: a link would go with this process.
    int code = bpf_xdp_attach(*index, program, XDP_FLAGS_DRV_MODE, nullptr);
    if (code != 0) return Error{-code, "attach the XDP switch to", port_name(rank)};
  }
  return {};
}

Result<void> detach_inside(const FabricSpec& spec) {
  for (unsigned rank = 0; rank < spec.ranks; ++rank) {
    auto index = port_index(rank);
    if (!index) return index.error();
    int code = bpf_xdp_detach(*index, XDP_FLAGS_DRV_MODE, nullptr);
    if (code != 0) return Error{-code, "detach the XDP switch from", port_name(rank)};
  }
  return {};
}

}  // namespace

Result<void> attach_xdp_switch(const FabricSpec& spec) {
  return in_namespace(middle_namespace_name(spec.name), [&] { return attach_inside(spec); });
}

Result<void> detach_xdp_switch(const FabricSpec& spec) {
  return in_namespace(middle_namespace_name(spec.name), [&] { return detach_inside(spec); });
}

}  // namespace erar
