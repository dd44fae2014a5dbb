// Ranks as processes: fork, enter the namespace, run.
#include "tests/netns/rank_process.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <new>

#include "emu/netns/namespace.h"

namespace erar::test {

RankProcesses::RankProcesses(const Fabric& fabric,
                             const std::function<int(unsigned rank, SharedState&)>& body) {
  void* memory =
      mmap(nullptr, sizeof(SharedState), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  state_ = new (memory) SharedState;
  pthread_barrierattr_t shared;
  pthread_barrierattr_init(&shared);
  pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&state_->all_open, &shared, fabric.spec().ranks);
  for (unsigned rank = 0; rank < fabric.spec().ranks; rank++) {
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      const auto inside = open_namespace(fabric.rank_namespace(rank));
      if (!inside || setns(inside->get(), CLONE_NEWNET) != 0) _exit(99);
      _exit(body(rank, *state_));
    }
    children_.push_back(child);
  }
}

RankProcesses::~RankProcesses() {
  for (unsigned rank = 0; rank < children_.size(); rank++) {
    if (children_[rank] <= 0) continue;
    kill(children_[rank], SIGKILL);
    wait(rank);
  }
  munmap(state_, sizeof(*state_));
}

void RankProcesses::signal(unsigned rank, int number) const {
  if (children_[rank] > 0) kill(children_[rank], number);
}

int RankProcesses::wait(unsigned rank) {
  if (children_[rank] <= 0) return -1;
  int status = 0;
  waitpid(children_[rank], &status, 0);
  children_[rank] = 0;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace erar::test
