// Sizes of the maps that the XDP program and its loader agree on.
#ifndef ERAR_BPF_CONFIG_H
#define ERAR_BPF_CONFIG_H

#include "core/protocol/operation.h"

// One doorbell record per completed operation that a process sleeps for.
struct erar_doorbell {
  __u32 operation;
  __u32 reserved;
};

#define ERAR_DOORBELL_RING_BYTES 4096

#endif
