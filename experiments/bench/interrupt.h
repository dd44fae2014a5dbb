// SIGINT, SIGTERM and SIGHUP as a flag, so that what was made is removed on this way out too.
#pragma once

#include <csignal>

#include <array>

namespace erar::bench {

// While it lives, the three signals are only noted, and SIGPIPE is ignored. One per process.
class InterruptGuard {
 public:
  InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  ~InterruptGuard();

  // The signal that came, 0 when none has.
  static int signal();
  // For signals that somebody else took and reported (an exit status of 128 + N).
  static void note(int signal);
  // In a child: the three signals end it again.
  static void restore_in_child();
  // From here on further signals are ignored, also by programs that are started: for cleaning up.
  static void ignore_further();

 private:
  std::array<struct sigaction, 4> previous_{};
};

}  // namespace erar::bench
