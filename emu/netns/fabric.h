// Fabrics: emulated networks of ranks, one network namespace per rank, made and removed exactly.
#pragma once

#include <string>
#include <vector>

#include "core/backend.h"
#include "core/result.h"

namespace erar {

// ring:   each rank has a veth `next` to its right neighbour's `prev`.
// bridge: one NIC `eth0` per rank, all on a Linux bridge in a namespace of its own.
// switch: as bridge, and XDP programs on the bridge's ports forward eRAR frames by MAC, as a
// hardware
//         switch does; everything else goes through the bridge below.
enum class FabricKind { kRing, kBridge, kSwitch };

const char* name_of(FabricKind kind);
Result<FabricKind> parse_fabric_kind(const std::string& text);

struct FabricSpec {
  std::string name;  // [a-z0-9-]{1,24}; namespaces are named erar-NAME-0 .. erar-NAME-(N-1), -mid
  FabricKind kind = FabricKind::kRing;
  unsigned ranks = 4;    // 2..64
  unsigned mtu = 3498;   // 576..65535; native XDP takes up to 3506
  unsigned queues = 0;   // of each veth; 0: one per CPU, at most 8
  bool offloads = true;  // false: TSO, GSO, GRO and checksum offloads off, as on a plain NIC
  // Every rank's link goes through a fault box (fault_boxes.h), which at first does nothing. Needs
  // offloads off.
  bool faults = false;
  bool ephemeral =
      false;  // belongs to this process: reclaimed by any later command once it is gone
};

// A live fabric. Destroying the object leaves the network up; down() removes it. The state file
// /run/erar/fabrics/NAME.json says what was made, so that another process can take it down.
class Fabric {
 public:
  // Creates the network; what an earlier fabric of this name left is removed first, unless that one
  // is complete and not ephemeral (EEXIST). Also reclaims all fabrics that killed commands left:
  // ephemeral and half-made ones.
  static Result<Fabric> up(const FabricSpec& spec);
  // ENOENT: no such fabric. Also reclaims, and refuses one that it had to.
  static Result<Fabric> open(const std::string& name);
  static Result<std::vector<FabricSpec>> list();
  // Ends the processes inside (SIGTERM, then SIGKILL, by id), deletes namespaces and the state
  // file. Succeeds on a half-made fabric; ENOENT when there is no trace of one.
  static Result<void> down(const std::string& name);

  [[nodiscard]] const FabricSpec& spec() const { return spec_; }
  [[nodiscard]] std::string rank_namespace(unsigned rank) const;
  [[nodiscard]] RingEndpoint endpoint(unsigned rank) const;
  // The address by which any rank reaches `rank` over IP (on the ring: routed), host byte order.
  [[nodiscard]] std::uint32_t rank_ipv4(unsigned rank) const;
  // Puts back what a killed command may have left changed: the XDP switch away, GRO on at the
  // ranks' NICs (generic mode needs it), faults; and ends what a killed `erar run` left running.
  // Nothing else while processes live in the fabric.
  Result<void> restore();
  // switch only: true puts the XDP switch before the bridge (the default after up), false takes it
  // away, which leaves a Linux bridge of the same shape with TCP's offloads. No-op on other kinds.
  Result<void> set_xdp_switch(bool on);

 private:
  explicit Fabric(FabricSpec spec) : spec_(std::move(spec)) {}
  FabricSpec spec_;
};

}  // namespace erar
