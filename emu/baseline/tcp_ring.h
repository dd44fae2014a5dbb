// The TCP baseline: the best ring allreduce over kernel sockets that we know how to write.
#pragma once

#include "core/backend.h"

namespace erar {

// All types and operations, as other rings do them: values are added hop by hop in their own type
// (float16 and bfloat16 as float, rounded to nearest even at each hop) and an average is the sum
// divided at the end. So
// - an integer average is right only while the sum fits into the type: the sum wraps;
// - floats are IEEE's whatever Reduction::not_finite says: nothing is refused, a NaN becomes NaN in
//   sums and averages, and what min and max make of one depends on its place in the ring.
// Refused: Reduction::compressed; pre_scale with other operations than sum, and with integers
// unless it is whole.

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
