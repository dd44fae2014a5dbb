// Crew: threads that begin a piece of work at the same moment, again and again; and for how long.
#pragma once

#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace erar::tests {

// Some hundred turns are a tenth of a microsecond.
void dawdle(std::uint64_t turns);

// How long to go on: until the thread has had some CPU time, however much others want of it.
class Stint {
 public:
  explicit Stint(std::chrono::milliseconds cpu_time);
  [[nodiscard]] bool goes_on() const;

 private:
  std::chrono::nanoseconds end_;                 // of the thread's CPU time
  std::chrono::steady_clock::time_point limit_;  // where it gets hardly any
};

// The caller is member 0; the others wait in between, spinning where there is a CPU for each.
class Crew {
 public:
  explicit Crew(unsigned members);
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  ~Crew();

  // Runs work(member) on all of them and returns when all are through. Members begin within a
  // random fraction of a microsecond of each other, so that every alignment of two steps comes up.
  void at_once(const std::function<void(unsigned member)>& work);

  // Steps of all members can run at the same time.
  [[nodiscard]] bool has_cpu_each() const { return has_cpu_each_; }
  [[nodiscard]] unsigned members() const { return static_cast<unsigned>(threads_.size()) + 1; }

 private:
  void serve(unsigned member);
  template <class Condition>
  void wait_until(Condition condition) const;

  cpu_set_t allowed_;
  bool has_cpu_each_;
  const std::function<void(unsigned)>* work_ = nullptr;
  alignas(64) std::atomic<std::uint64_t> round_{0};
  alignas(64) std::atomic<unsigned> busy_{0};
  std::atomic<bool> leaving_{false};
  std::vector<std::thread> threads_;
};

}  // namespace erar::tests
