// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// XDP switch: forwards eRAR frames between the ports of a bridge by destination MAC address, as a
// hardware switch does. Everything else takes the bridge below.
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "core/protocol/wire.h"

#define MAX_PORTS 64
#define ETHERNET_IPV4 0x0800
#define IPV4_NO_OPTIONS 0x45
#define IPV4_FRAGMENT_MASK 0x3fff /* more fragments, or not the first one */
#define PROTOCOL_UDP 17

// Key: the address's six bytes in the order of the wire, then two zero bytes.
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, MAX_PORTS);
  __type(key, __u64);
  __type(value, __u32);
} port_of_mac SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_DEVMAP);
  __uint(max_entries, MAX_PORTS);
  __type(key, __u32);
  __type(value, __u32);
} ports SEC(".maps");

SEC("xdp")
int erar_switch(struct xdp_md* context) {
  const struct erar_frame* frame = (void*)(long)context->data;
  const void* end = (void*)(long)context->data_end;
  const __u32* port;
  __u64 mac = 0;

  if ((const char*)frame + ERAR_UDP_HEADER_END > (const char*)end) return XDP_PASS;
  if (frame->eth_type != ERAR_BE16(ETHERNET_IPV4)) return XDP_PASS;
  if (frame->ip_version_ihl != IPV4_NO_OPTIONS) return XDP_PASS;
  if (frame->ip_protocol != PROTOCOL_UDP) return XDP_PASS;
  if (frame->ip_fragment & ERAR_BE16(IPV4_FRAGMENT_MASK)) return XDP_PASS;
  if (frame->udp_destination != ERAR_BE16(ERAR_UDP_PORT)) return XDP_PASS;

  __builtin_memcpy(&mac, frame->eth_destination, sizeof(frame->eth_destination));
  port = bpf_map_lookup_elem(&port_of_mac, &mac);
  if (!port) return XDP_PASS;
  return (int)bpf_redirect_map(&ports, *port, XDP_PASS);
}

char _license[] SEC("license") = "Dual BSD/GPL";
