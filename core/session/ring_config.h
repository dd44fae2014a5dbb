// What an endpoint's place in the ring means for the packet step: its constants and link headers.
#pragma once

#include "core/endpoint.h"
#include "core/protocol/operation.h"
#include "core/result.h"

namespace erar {

// Everything but tx_ifindex, which only a kernel knows. Errors: ranks outside 2..ERAR_MAX_RANKS,
// rank outside 0..ranks-1, an MTU too small for one chunk of payload, an empty arena, a window that
// is neither 0 nor 2..ERAR_LARGEST_WINDOW.
Result<erar_config> make_ring_config(const RingEndpoint& endpoint, std::uint32_t arena_segments,
                                     std::uint16_t job, std::uint32_t token);

}  // namespace erar
