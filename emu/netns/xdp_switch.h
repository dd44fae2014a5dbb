// The XDP switch of a fabric: loads bpf/switch.bpf.c and puts it before the bridge.
#pragma once

#include "core/result.h"
#include "emu/netns/fabric.h"

namespace erar {

// Attaches to all ports, natively. The programs outlive this process (they hang on the devices) and
// die with the namespace. Attaching twice replaces the first.
Result<void> attach_xdp_switch(const FabricSpec& spec);
Result<void> detach_xdp_switch(const FabricSpec& spec);

}  // namespace erar
