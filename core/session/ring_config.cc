// Ring configuration: Ethernet, IPv4 (RFC 791) and UDP (RFC 768) of a full frame to the successor.
#include "core/session/ring_config.h"

#include <cstring>

namespace erar {
namespace {

erar_frame full_frame_headers(const RingEndpoint& endpoint, std::uint32_t segment_bytes) {
  erar_frame frame{};
  std::memcpy(frame.eth_destination, endpoint.next_mac.data(), 6);
  std::memcpy(frame.eth_source, endpoint.source_mac.data(), 6);
  frame.eth_type = ERAR_BE16(0x0800);
  frame.ip_version_ihl = 0x45;
  frame.ip_fragment = ERAR_BE16(0x4000);  // DF: a fragment would not be recognised
  frame.ip_ttl = 64;
  frame.ip_protocol = 17;
  const std::uint32_t source = ERAR_BE32(endpoint.source_ipv4);
  const std::uint32_t destination = ERAR_BE32(endpoint.next_ipv4);
  std::memcpy(frame.ip_source, &source, 4);
  std::memcpy(frame.ip_destination, &destination, 4);
  frame.udp_source = ERAR_BE16(ERAR_UDP_PORT);
  frame.udp_destination = ERAR_BE16(ERAR_UDP_PORT);
  frame.ip_total_length = ERAR_BE16(segment_bytes + ERAR_IP_OVERHEAD_BYTES);
  frame.udp_length = ERAR_BE16(static_cast<std::uint16_t>(segment_bytes + ERAR_UDP_OVERHEAD_BYTES));
  return frame;
}

// Sum of the IPv4 header's 16-bit words in wire order, total length and checksum left out.
std::uint32_t checksum_base(const erar_frame& frame) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(&frame);
  std::uint32_t sum = 0;
  for (unsigned offset = ERAR_LINK_HEADER_BYTES; offset < ERAR_LINK_HEADER_BYTES + 20;
       offset += 2) {
    if (offset == offsetof(erar_frame, ip_total_length) ||
        offset == offsetof(erar_frame, ip_checksum))
      continue;
    std::uint16_t word = 0;
    std::memcpy(&word, bytes + offset, 2);
    sum += word;
  }
  return sum;
}

}  // namespace

Result<erar_config> make_ring_config(const RingEndpoint& endpoint, std::uint32_t arena_segments,
                                     std::uint16_t job, std::uint32_t token) {
  if (endpoint.ranks < 2 || endpoint.ranks > ERAR_MAX_RANKS)
    return refusal("ranks " + std::to_string(endpoint.ranks) + ": a ring has 2 to " +
                   std::to_string(ERAR_MAX_RANKS));
  if (endpoint.rank >= endpoint.ranks)
    return refusal("rank " + std::to_string(endpoint.rank) + " of " +
                   std::to_string(endpoint.ranks));
  erar_config config{};
  config.rank = endpoint.rank;
  config.ranks = endpoint.ranks;
  config.window = endpoint.window != 0 ? endpoint.window : erar_window(endpoint.ranks);
  config.segment_bytes = erar_segment_bytes(endpoint.mtu);
  config.arena_segments = arena_segments;
  config.job = job;
  config.token = token;
  if (config.window < ERAR_SMALLEST_WINDOW || config.window > ERAR_LARGEST_WINDOW)
    return refusal("window of " + std::to_string(config.window) + " frames: must be " +
                   std::to_string(ERAR_SMALLEST_WINDOW) + " to " +
                   std::to_string(ERAR_LARGEST_WINDOW));
  if (config.segment_bytes == 0)
    return refusal("MTU " + std::to_string(endpoint.mtu) + ": too small for one chunk of payload");
  if (arena_segments == 0) return refusal("arena of no segments");

  erar_frame frame = full_frame_headers(endpoint, config.segment_bytes);
  config.link_checksum_base = checksum_base(frame);
  frame.ip_checksum = erar_ip_checksum_fold(config.link_checksum_base + frame.ip_total_length);
  std::memcpy(config.link, &frame, sizeof(config.link));
  return config;
}

}  // namespace erar
