// Signal dispositions for the time of a measurement.
#include "experiments/bench/interrupt.h"

namespace erar::bench {
namespace {

constexpr std::array<int, 4> kSignals{SIGINT, SIGTERM, SIGHUP, SIGPIPE};

volatile std::sig_atomic_t g_signal = 0;

extern "C" void note_signal(int signal) { g_signal = signal; }

void set_all(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (const int signal : kSignals) {
    if (signal != SIGPIPE) ::sigaction(signal, &action, nullptr);
  }
}

}  // namespace

InterruptGuard::InterruptGuard() {
  g_signal = 0;
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], &ignore, &previous_[i]);
  }
  set_all(note_signal);
}

InterruptGuard::~InterruptGuard() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], &previous_[i], nullptr);
  }
}

int InterruptGuard::signal() { return g_signal; }

void InterruptGuard::note(int signal) { g_signal = signal; }

void InterruptGuard::restore_in_child() {
  set_all(SIG_DFL);
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : kSignals) sigaddset(&signals, signal);
  ::sigprocmask(SIG_UNBLOCK, &signals, nullptr);
}

void InterruptGuard::ignore_further() { set_all(SIG_IGN); }

}  // namespace erar::bench
