// What commands that make namespaces or load BPF programs check first.
#pragma once

#include <unistd.h>

#include <cstdio>

namespace erar::cli {

// False, and one line on standard error, when the user is not root.
inline bool have_root() {
  if (geteuid() == 0) return true;
  std::fputs("erar: this command needs root (network namespaces, BPF): run it with sudo\n", stderr);
  return false;
}

}  // namespace erar::cli
