// Process descriptors by system call: glibc 2.36's <sys/pidfd.h> lacks extern "C".
#pragma once

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "core/unique_fd.h"

namespace erar {

// Not valid when there is no such process.
inline UniqueFd open_process(pid_t pid) {
  return UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}

inline bool signal_process(const UniqueFd& process, int signal) {
  return syscall(SYS_pidfd_send_signal, process.get(), signal, nullptr, 0) == 0;
}

}  // namespace erar
