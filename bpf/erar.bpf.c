// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The XDP program: the packet step of core/protocol with the kernel's maps and helpers behind its hooks.
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "bpf/maps.bpf.h"
#include "core/protocol/step.h"

char _license[] SEC("license") = "Dual BSD/GPL";

// The interface that injected test frames name: a wire frame cannot arrive on loopback, where this
// program is never attached.
#define LOOPBACK_IFINDEX 1

SEC("xdp")
int erar_xdp(struct xdp_md *context) {
  __u32 zero = 0;
  struct erar_env env = {.context = context, .counters = bpf_map_lookup_elem(&counters, &zero)};
  enum erar_verdict verdict;

  if (!env.counters) return XDP_ABORTED;  // cannot be: the map has that one element
  verdict = erar_step(&env, context->ingress_ifindex == LOOPBACK_IFINDEX);
  if (verdict == ERAR_FORWARD) return (int)bpf_redirect(erar_settings.tx_ifindex, 0);
  return verdict == ERAR_PASS ? XDP_PASS : XDP_DROP;
}
