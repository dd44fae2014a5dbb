// Ranks as processes that a test may kill, stop or cut off one by one, and what they report.
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/protocol/operation.h"
#include "emu/netns/fabric.h"

namespace erar::test {

// What one rank tells the test, in memory that all of them share.
struct RankReport {
  std::uint64_t calls = 0;     // that were right
  std::uint64_t ended_ns = 0;  // when the first error came, monotonic
  bool wrong = false;          // a result was
  bool untouched = false;      // the buffer was, by the call that ended with the error
  int code = 0;                // of the error
  std::array<std::uint64_t, ERAR_COUNTERS> counters{};  // of the backend, at the end
  std::array<char, 512> message{};
};

struct SharedState {
  pthread_barrier_t all_open{};
  std::array<RankReport, 16> ranks{};
};

// Forked children in the ranks' namespaces; the rest of them is killed with the object.
class RankProcesses {
 public:
  RankProcesses(const Fabric& fabric, const std::function<int(unsigned rank, SharedState&)>& body);
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;
  ~RankProcesses();

  [[nodiscard]] SharedState& state() { return *state_; }
  void signal(unsigned rank, int number) const;
  // Exit status, 128+N for signal N.
  int wait(unsigned rank);

 private:
  SharedState* state_;
  std::vector<pid_t> children_;
};

}  // namespace erar::test
