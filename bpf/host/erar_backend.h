// The eRAR backend: gradients aggregated by the XDP program while packets travel the ring.
#pragma once

#include "core/backend.h"

namespace erar {

struct ErarOptions {
  bool generic_mode = false;                 // XDP in skb mode, for drivers without native XDP
  std::uint32_t job = 1;                     // frames of other jobs are not ours (16 bits are sent)
  std::uint32_t token = 0;                   // secret that every frame must carry
  std::uint64_t timeout_ns = 5'000'000'000;  // an operation without progress fails after this
  std::uint64_t spin_ns = 300'000;     // a waiting rank looks and yields for so long, then sleeps
  std::size_t registered_bytes = 0;    // what allocate() can hand out in all
  std::size_t group_bytes = 1U << 20;  // size in which buffers are pipelined
  bool checksum = true;                // drop frames that are not what was sent: they count as lost
};

// Loads the XDP program and attaches it to endpoint.rx_interface (native mode, no fall-back unless
// generic_mode). The link goes with the process, so nothing is left on the NIC after kill -9.
// Errors: EPERM/EACCES without CAP_BPF and CAP_NET_ADMIN, EBUSY when another XDP program is
// attached, ENODEV, ERANGE when the MTU is too large for native XDP, ENOMEM.
Result<std::unique_ptr<Backend>> open_erar_backend(const RingEndpoint& endpoint,
                                                   const ErarOptions& options);

}  // namespace erar
