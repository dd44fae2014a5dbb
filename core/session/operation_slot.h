// Operation slots from the process's side: opening one, and ending one for good.
#pragma once

#include <cstdint>

#include "core/protocol/start.h"
#include "core/session/native_step.h"

namespace erar {

// Ends what the operation's slot held, opens the operation in it and returns how many kick frames
// are due. This rank's share lies in the arena.
std::uint32_t open_operation(NativeMemory& memory, const erar_start& start);

// From the return on no step on any CPU reads or writes the operation's memory. Nothing to do when
// the slot is another operation's.
void close_operation(NativeMemory& memory, std::uint32_t number);

}  // namespace erar
