// State files of fabrics, /run/erar/fabrics/NAME.json, and the lock that fabric commands take.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/unique_fd.h"
#include "emu/netns/fabric.h"

namespace erar {

struct FabricState {
  FabricSpec spec;
  bool complete = false;  // false from before the first namespace is made until all of it stands
  pid_t owner_pid = 0;    // who made it
  std::uint64_t owner_start_ticks = 0;
};

// True when the fabric, or what there is of one that never got complete, belongs to a process that
// is no more.
bool owner_is_gone(const FabricState& state);

// Serialises up and down over all processes; released when the descriptor and all its copies close.
Result<UniqueFd> take_fabric_lock();

// Replaces the file in one step; readers see the old content or the new one.
Result<void> write_state(const FabricState& state);
// ENOENT: no such file. Any other error: there is one, but it says nothing usable.
Result<FabricState> read_state(const std::string& name);
// Removes the file, and what a write that was killed left. No error when there is none.
Result<void> remove_state(const std::string& name);
// Names that have a state file, sorted.
std::vector<std::string> names_with_state();

}  // namespace erar
