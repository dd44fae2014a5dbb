// RingLink: a rank's two TCP connections, to its successor and from its predecessor, set up and
// checked.
#pragma once

#include "core/backend.h"
#include "core/unique_fd.h"
#include "emu/baseline/tcp_ring.h"

namespace erar {

// Both sockets are non-blocking, without Nagle's delay, under the wished congestion control.
// Operation data flows down the ring only: received on `prev`, sent on `next`.
struct RingLink {
  UniqueFd prev;
  UniqueFd next;
};

// Opens both connections of a ring of at least two ranks and exchanges greetings over them, so that
// a peer that is no eRAR rank, or not the neighbour by rank and ring size, is refused here by name.
Result<RingLink> open_ring_link(const RingEndpoint& endpoint, const TcpOptions& options);

}  // namespace erar
