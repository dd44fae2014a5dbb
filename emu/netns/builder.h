// Makes the namespaces and devices of a fabric, and takes them away.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"
#include "emu/netns/fabric.h"

namespace erar {

// Builds everything but the XDP switch and the fault boxes' programs. lock_fd is handed to the
// programs that are run (see CommandOptions). Nothing is removed when it fails.
Result<void> build_network(const FabricSpec& spec, int lock_fd);

// GRO at every rank's NIC as build_network() leaves it.
Result<void> reset_receive_offload(const FabricSpec& spec, int lock_fd);

// Namespaces that exist under a fabric's name, whether a state file knows of them or not.
std::vector<std::string> existing_namespaces(const std::string& fabric);

// Ends the processes inside and deletes the namespaces; their names are free on return. The kernel
// takes the devices apart some milliseconds later, out of anybody's sight.
Result<void> remove_namespaces(const std::vector<std::string>& names, int lock_fd);

}  // namespace erar
