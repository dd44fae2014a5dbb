// Launcher: one process per rank, each leader of a process group of its own, ended together.
#include "emu/rank/launcher.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "core/unique_fd.h"
#include "emu/netns/layout.h"
#include "emu/netns/namespace.h"
#include "emu/netns/pidfd.h"
#include "emu/netns/processes.h"

namespace erar {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kGrace = std::chrono::seconds(2);
constexpr int kCannotStart = 126;  // exit status of a rank whose namespace or CPU it cannot have
constexpr int kNoProgram = 127;

struct RankProcess {
  pid_t pid = -1;
  UniqueFd pidfd;  // readable once the process has ended; closed when that has been dealt with
};

// What a child needs to know, made before it is forked.
struct RankPlan {
  unsigned rank = 0;
  int namespace_fd = -1;
  std::optional<unsigned> cpu;
  pid_t parent = 0;
};

std::vector<unsigned> usable_cpus() {
  std::vector<unsigned> cpus;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return cpus;
  for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

// While ranks run: signals come through a descriptor and SIGCHLD is not ignored (an ignored one
// lets the kernel reap children before we have their status). Restores both.
class SignalGuard {
 public:
  static Result<std::unique_ptr<SignalGuard>> open() {
    std::unique_ptr<SignalGuard> guard(new SignalGuard);
    guard->signals_ = UniqueFd(signalfd(-1, &guard->passed_on_, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!guard->signals_.valid()) return errno_error("open a signal descriptor");
    return guard;
  }
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;
  ~SignalGuard() {
    sigaction(SIGCHLD, &old_child_action_, nullptr);
    pthread_sigmask(SIG_SETMASK, &old_mask_, nullptr);
  }
  [[nodiscard]] int fd() const { return signals_.get(); }

 private:
  SignalGuard() {
    sigemptyset(&passed_on_);
    for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
      // nohup asks for SIGHUP to do nothing, and a blocked signal is queued even if it is ignored.
      struct sigaction action {};
      sigaction(signal, nullptr, &action);
      if (signal != SIGHUP || action.sa_handler != SIG_IGN) sigaddset(&passed_on_, signal);
    }
    pthread_sigmask(SIG_BLOCK, &passed_on_, &old_mask_);
    struct sigaction standard {};
    standard.sa_handler = SIG_DFL;
    sigaction(SIGCHLD, &standard, &old_child_action_);
  }

  sigset_t passed_on_{};
  sigset_t old_mask_{};
  struct sigaction old_child_action_ {};
  UniqueFd signals_;
};

[[noreturn]] void give_up(unsigned rank, const char* operation) {
  // Not stdio: the child must not touch a lock that another thread of the parent held in fork().
  std::string text = fmt::format("erar: rank {}: {}: {}\n", rank, operation, std::strerror(errno));
  if (write(STDERR_FILENO, text.data(), text.size()) < 0) _exit(kCannotStart);
  _exit(kCannotStart);
}

// In the child: out of the parent's signal handling, process group and network, tied to its life.
void become_rank(const RankPlan& plan) {
  setpgid(0, 0);
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) give_up(plan.rank, "ask for a parent-death signal");
  if (getppid() != plan.parent) _exit(128 + SIGKILL);  // it died before we could ask
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  for (int signal = 1; signal < SIGRTMIN; ++signal) {
    struct sigaction current {};
    bool known = sigaction(signal, nullptr, &current) == 0;
    bool nohup = signal == SIGHUP && current.sa_handler == SIG_IGN;
    if (known && !nohup) sigaction(signal, &standard, nullptr);
  }
  sigset_t none;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, nullptr);
  // Outside the terminal's foreground group a read from it would stop the rank for good.
  if (isatty(STDIN_FILENO)) {
    UniqueFd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (null.valid()) dup2(null.get(), STDIN_FILENO);
  }
  if (setns(plan.namespace_fd, CLONE_NEWNET) != 0) give_up(plan.rank, "enter network namespace");
  if (plan.cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(*plan.cpu, &set);
    if (sched_setaffinity(0, sizeof(set), &set) != 0) give_up(plan.rank, "pin to a CPU");
  }
}

Result<RankProcess> fork_rank(const RankPlan& plan, const std::function<int(unsigned rank)>& body) {
  std::fflush(nullptr);  // or the child would write the parent's buffered output once more
  RankProcess process;
  process.pid = fork();
  if (process.pid < 0) return errno_error("fork rank", std::to_string(plan.rank));
  if (process.pid == 0) {
    become_rank(plan);
    int status = body(plan.rank);
    std::fflush(nullptr);
    _exit(status);
  }
  setpgid(process.pid, process.pid);  // here too: the group must exist before we signal it
  process.pidfd = open_process(process.pid);
  if (!process.pidfd.valid()) {
    Error error = errno_error("watch rank", std::to_string(plan.rank));
    kill(process.pid, SIGKILL);
    waitpid(process.pid, nullptr, 0);
    return error;
  }
  return process;
}

class RankGroup {
 public:
  explicit RankGroup(std::chrono::milliseconds grace_after_signal)
      : grace_after_signal_(grace_after_signal) {}
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;
  // Only when something failed halfway are there any left.
  ~RankGroup() {
    for (RankProcess& process : processes_) {
      if (process.pidfd.valid()) finish(process);
    }
  }

  Result<void> start(const Fabric& fabric, const LaunchOptions& options,
                     const std::function<int(unsigned rank)>& body);
  Result<LaunchOutcome> wait(int signal_fd);

 private:
  void signal_all(int signal) const;
  void pass_signals_on(int signal_fd, LaunchOutcome& outcome);
  int finish(RankProcess& process);
  [[nodiscard]] int poll_timeout_ms() const;

  std::chrono::milliseconds grace_after_signal_;
  std::vector<RankProcess> processes_;
  std::optional<Clock::time_point> kill_time_;  // set once a rank has failed, or all are to end
};

Result<void> RankGroup::start(const Fabric& fabric, const LaunchOptions& options,
                              const std::function<int(unsigned rank)>& body) {
  std::vector<UniqueFd> namespaces;
  for (unsigned rank = 0; rank < fabric.spec().ranks; ++rank) {
    auto fd = open_namespace(fabric.rank_namespace(rank));
    if (!fd) return fd.error();
    namespaces.push_back(std::move(*fd));
  }
  const std::vector<unsigned> cpus = usable_cpus();
  for (unsigned rank = 0; rank < fabric.spec().ranks; ++rank) {
    RankPlan plan{rank, namespaces[rank].get(), {}, getpid()};
    if (options.pin && !cpus.empty()) plan.cpu = cpus[rank % cpus.size()];
    auto process = fork_rank(plan, body);
    if (!process) return process.error();
    processes_.push_back(std::move(*process));
  }
  return {};
}

void RankGroup::signal_all(int signal) const {
  for (const RankProcess& process : processes_) {
    if (process.pidfd.valid()) kill(-process.pid, signal);
  }
}

void RankGroup::pass_signals_on(int signal_fd, LaunchOutcome& outcome) {
  signalfd_siginfo info{};
  while (read(signal_fd, &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
    outcome.received_signal = static_cast<int>(info.ssi_signo);
    signal_all(outcome.received_signal);
    // A Ctrl-C may be a program's to handle, as debuggers do; who sends the others wants an end.
    if (outcome.received_signal != SIGINT && !kill_time_)
      kill_time_ = Clock::now() + grace_after_signal_;
  }
}

// Ends what is left of the rank's process group and returns the rank's exit status. The group goes
// before the rank is reaped: until then its id cannot be given to anyone else.
int RankGroup::finish(RankProcess& process) {
  kill(-process.pid, SIGKILL);
  process.pidfd.reset();
  int status = 0;
  while (waitpid(process.pid, &status, 0) < 0) {
    if (errno != EINTR) return kCannotStart;
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int RankGroup::poll_timeout_ms() const {
  if (!kill_time_) return -1;
  auto left = std::chrono::ceil<std::chrono::milliseconds>(*kill_time_ - Clock::now());
  return left.count() > 0 ? static_cast<int>(left.count()) : 0;
}

Result<LaunchOutcome> RankGroup::wait(int signal_fd) {
  LaunchOutcome outcome;
  for (;;) {
    std::vector<pollfd> watched = {{signal_fd, POLLIN, 0}};
    std::vector<unsigned> ranks;
    for (unsigned rank = 0; rank < processes_.size(); ++rank) {
      if (!processes_[rank].pidfd.valid()) continue;
      watched.push_back({processes_[rank].pidfd.get(), POLLIN, 0});
      ranks.push_back(rank);
    }
    if (ranks.empty()) return outcome;
    int ready = poll(watched.data(), watched.size(), poll_timeout_ms());
    if (ready < 0 && errno != EINTR) return errno_error("wait for the ranks");
    if (ready < 0) continue;
    if (ready == 0 && kill_time_) {
      signal_all(SIGKILL);
      kill_time_ = Clock::now() + kGrace;
      continue;
    }
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      if (watched[i + 1].revents == 0) continue;
      int status = finish(processes_[ranks[i]]);
      if (status == 0 || outcome.failed_rank >= 0) continue;
      outcome.status = status;
      outcome.failed_rank = static_cast<int>(ranks[i]);
      signal_all(SIGTERM);
      kill_time_ = Clock::now() + (outcome.received_signal == 0 ? kGrace : grace_after_signal_);
    }
    if (watched[0].revents != 0) pass_signals_on(signal_fd, outcome);
  }
}

[[noreturn]] void execute(const std::vector<std::string>& argv) {
  std::vector<char*> arguments;
  for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  std::string text = fmt::format("erar: run {}: {}\n", argv[0], std::strerror(errno));
  if (write(STDERR_FILENO, text.data(), text.size()) < 0) _exit(kNoProgram);
  _exit(kNoProgram);
}

}  // namespace

Result<LaunchOutcome> launch_ranks(const Fabric& fabric, const LaunchOptions& options,
                                   const std::function<int(unsigned rank)>& body) {
  auto signals = SignalGuard::open();
  if (!signals) return signals.error();
  RankGroup group(options.grace_after_signal);
  auto started = group.start(fabric, options, body);
  if (!started) return started.error();
  return group.wait((*signals)->fd());
}

Result<LaunchOutcome> launch_program(const Fabric& fabric, const LaunchOptions& options,
                                     const std::vector<std::string>& argv,
                                     std::uint16_t master_port) {
  if (argv.empty()) return refusal("run: no program given");
  const std::string master = ipv4_text(fabric.rank_ipv4(0));
  const std::string command = command_text();
  return launch_ranks(fabric, options, [&](unsigned rank) -> int {
    setenv("RANK", std::to_string(rank).c_str(), 1);
    setenv("WORLD_SIZE", std::to_string(fabric.spec().ranks).c_str(), 1);
    setenv("LOCAL_RANK", "0", 1);
    setenv(kCommandVariable, command.c_str(), 1);
    setenv("MASTER_ADDR", master.c_str(), 1);
    setenv("MASTER_PORT", std::to_string(master_port).c_str(), 1);
    execute(argv);
  });
}

}  // namespace erar
