// Processes seen from outside: who they are beyond a reused id, which live in a namespace, ending
// them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"

namespace erar {

// When the process started, in clock ticks since boot: with the id it names one process for good.
// 0 when there is no such process, or when it is dead and only not yet reaped.
std::uint64_t process_start_ticks(pid_t pid);

// Ids of the processes inside any of the named namespaces, as `ip netns pids` finds them.
std::vector<pid_t> processes_in(const std::vector<std::string>& namespaces);

// Ends them: SIGTERM, after up to 2 s SIGKILL. The calling process is never touched.
Result<void> end_processes_in(const std::vector<std::string>& namespaces);

// What `erar run` starts has this in its environment, and hands it down to what it starts itself:
// which command it belongs to.
inline constexpr const char* kCommandVariable = "ERAR_COMMAND";
// Its value in the calling process's children.
std::string command_text();

// Ends those of them whose command is no more; nobody else.
Result<void> end_orphans_in(const std::vector<std::string>& namespaces);

}  // namespace erar
