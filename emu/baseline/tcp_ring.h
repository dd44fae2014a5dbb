// The TCP baseline: the best ring allreduce over kernel sockets that we know how to write.
#pragma once

#include "core/backend.h"

namespace erar {

struct TcpOptions {
  // Set on every socket and read back; bbr is several times slower on veths. Empty: not set.
  std::string congestion_control = "cubic";
  std::uint16_t port = 18600;                // each rank listens on endpoint.listen_ipv4:port
  std::uint64_t timeout_ns = 5'000'000'000;  // no progress for this long is an error
};

// Listens, connects to the successor (retrying until timeout_ns) and accepts the predecessor.
// Errors: EADDRINUSE, ETIMEDOUT (names the peer), EPERM/ENOENT for the congestion control.
Result<std::unique_ptr<Backend>> open_tcp_backend(const RingEndpoint& endpoint,
                                                  const TcpOptions& options);

}  // namespace erar
