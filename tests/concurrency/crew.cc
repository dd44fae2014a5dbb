// Crew: a round number that members wait for, and a count of those that are at work.
#include "tests/concurrency/crew.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "core/mix64.h"

namespace erar::tests {
namespace {

// CPUs that this process may use; counts from 0 again after the last.
cpu_set_t one_of(const cpu_set_t& allowed, unsigned index) {
  cpu_set_t one;
  CPU_ZERO(&one);
  index %= static_cast<unsigned>(CPU_COUNT(&allowed));
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
    if (CPU_ISSET(cpu, &allowed) && index-- == 0) CPU_SET(cpu, &one);
  return one;
}

std::chrono::nanoseconds cpu_time_used() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

}  // namespace

void dawdle(std::uint64_t turns) {
  for (; turns > 0; turns--) asm volatile("" ::: "memory");
}

Stint::Stint(std::chrono::milliseconds cpu_time)
    : end_(cpu_time_used() + cpu_time), limit_(std::chrono::steady_clock::now() + 10 * cpu_time) {}

bool Stint::goes_on() const {
  return cpu_time_used() < end_ && std::chrono::steady_clock::now() < limit_;
}

Crew::Crew(unsigned members) {
  CPU_ZERO(&allowed_);
  sched_getaffinity(0, sizeof(allowed_), &allowed_);
  has_cpu_each_ = members <= static_cast<unsigned>(CPU_COUNT(&allowed_));
  // A scheduler that is free to choose leaves two busy threads on one CPU for milliseconds.
  cpu_set_t one = one_of(allowed_, 0);
  sched_setaffinity(0, sizeof(one), &one);
  for (unsigned member = 1; member < members; member++) {
    threads_.emplace_back([this, member] { serve(member); });
    one = one_of(allowed_, member);
    pthread_setaffinity_np(threads_.back().native_handle(), sizeof(one), &one);
  }
}

Crew::~Crew() {
  sched_setaffinity(0, sizeof(allowed_), &allowed_);
  leaving_ = true;
  round_++;
  for (std::thread& thread : threads_) thread.join();
}

template <class Condition>
void Crew::wait_until(Condition condition) const {
  // Who yields on a CPU that others want, too, is away for milliseconds.
  const unsigned patience = has_cpu_each_ ? 1'000'000 : 100;
  for (unsigned looks = 0; !condition(); looks++)
    if (looks >= patience) std::this_thread::yield();
}

void Crew::serve(unsigned member) {
  for (std::uint64_t seen = 0;; seen++) {
    wait_until([&] { return round_.load(std::memory_order_acquire) != seen; });
    if (leaving_) return;
    dawdle(mix64(seen * 64 + member) % 256);
    (*work_)(member);
    busy_.fetch_sub(1, std::memory_order_release);
  }
}

void Crew::at_once(const std::function<void(unsigned)>& work) {
  work_ = &work;
  busy_.store(members() - 1, std::memory_order_relaxed);
  const std::uint64_t round = round_.fetch_add(1, std::memory_order_release);
  // The others see the new round only when its cache line has come to their CPU.
  dawdle(mix64(round * 64) % 1536);
  work(0);
  wait_until([&] { return busy_.load(std::memory_order_acquire) == 0; });
}

}  // namespace erar::tests
