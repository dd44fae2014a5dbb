// A futex barrier rather than pthread_barrier_t: that one cannot time out, and hangs when a rank
// dies.
#include "experiments/bench/shared_region.h"

#include "core/clock.h"

#include <fmt/format.h>

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <new>

namespace erar::bench {

struct alignas(128) SharedRegion::Control {
  std::atomic<std::uint32_t> arrived{0};
  std::atomic<std::uint32_t> generation{0};  // completed barriers; the futex word
  std::atomic<std::uint32_t> failed{0};      // 1 being written, 2 readable
  std::array<char, 500> failure{};
};

namespace {

static_assert(std::atomic<std::uint32_t>::is_always_lock_free, "shared between processes");
static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t), "is a futex word");

constexpr std::uint64_t kOpeningLimitNs = 30'000'000'000;

// Waiters look at the failure flag this often, should its wake-up have come too early for them.
constexpr long kLookAgainNs = 50'000'000;

// Not FUTEX_PRIVATE_FLAG: the word is shared between processes.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected) {
  const timespec timeout{0, kLookAgainNs};
  // Woken, timed out, interrupted or already changed: the caller looks at the word again.
  ::syscall(SYS_futex, &word, FUTEX_WAIT, expected, &timeout, nullptr, 0);
}

// What the process has used in all its threads; 0 of none and of one that is gone.
std::uint64_t cpu_time_ns(pid_t pid) {
  clockid_t clock{};
  timespec used{};
  if (pid == 0 || ::clock_getcpuclockid(pid, &clock) != 0) return 0;
  if (::clock_gettime(clock, &used) != 0) return 0;
  return static_cast<std::uint64_t>(used.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(used.tv_nsec);
}

void futex_wake_all(std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, 0x7fffffff, nullptr, nullptr, 0);
}

}  // namespace

Result<SharedRegion> SharedRegion::create(unsigned ranks, std::size_t times,
                                          std::uint64_t idle_limit_ns) {
  SharedRegion region;
  region.bytes_ = sizeof(Control) + ranks * sizeof(RankSlot) + 2 * times * sizeof(std::uint64_t);
  void* memory =
      ::mmap(nullptr, region.bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return errno_error("map", "memory shared by the ranks");
  region.memory_ = memory;
  region.control_ = new (memory) Control;
  auto* slots = static_cast<std::byte*>(memory) + sizeof(Control);
  for (unsigned rank = 0; rank < ranks; ++rank) new (slots + rank * sizeof(RankSlot)) RankSlot;
  region.slots_ = reinterpret_cast<RankSlot*>(slots);
  region.times_ = reinterpret_cast<std::uint64_t*>(slots + ranks * sizeof(RankSlot));
  region.times_count_ = times;
  region.ranks_ = ranks;
  region.idle_limit_ns_ = idle_limit_ns;
  return region;
}

SharedRegion::SharedRegion(SharedRegion&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)),
      bytes_(other.bytes_),
      control_(other.control_),
      slots_(other.slots_),
      times_(other.times_),
      times_count_(other.times_count_),
      ranks_(other.ranks_),
      idle_limit_ns_(other.idle_limit_ns_) {}

SharedRegion::~SharedRegion() {
  if (memory_ != nullptr) ::munmap(memory_, bytes_);
}

struct SharedRegion::Watched {
  std::uint64_t cpu_ns = 0;
  std::uint64_t since_ns = 0;  // when that last changed
};

void SharedRegion::enter(unsigned rank) { slots_[rank].pid = ::getpid(); }

std::optional<unsigned> SharedRegion::idle_rank(std::vector<Watched>& watched,
                                                std::uint32_t barrier,
                                                std::uint64_t limit_ns) const {
  const std::uint64_t now_ns = monotonic_ns();
  const bool is_first_look = watched.empty();
  watched.resize(ranks_);
  for (unsigned rank = 0; rank < ranks_; ++rank) {
    if (slots_[rank].barriers >= barrier) continue;
    const std::uint64_t cpu_ns = cpu_time_ns(slots_[rank].pid);
    if (is_first_look || cpu_ns != watched[rank].cpu_ns) watched[rank] = {cpu_ns, now_ns};
    if (now_ns - watched[rank].since_ns > limit_ns) return rank;
  }
  return std::nullopt;
}

Result<void> SharedRegion::opening_barrier(unsigned rank) {
  return meet(rank, std::max(idle_limit_ns_, kOpeningLimitNs));
}

Result<void> SharedRegion::meet(unsigned rank, std::uint64_t idle_limit_ns) {
  Control& control = *control_;
  const std::uint32_t barrier = ++slots_[rank].barriers;
  if (control.failed != 0) return refusal("another rank failed");
  const std::uint32_t generation = control.generation;
  if (control.arrived.fetch_add(1) + 1 == ranks_) {
    control.arrived = 0;
    control.generation = generation + 1;
    futex_wake_all(control.generation);
    return {};
  }
  std::vector<Watched> watched;
  while (control.generation == generation) {
    if (control.failed != 0) return refusal("another rank failed");
    if (const auto idle = idle_rank(watched, barrier, idle_limit_ns)) {
      return Error{ETIMEDOUT, "wait for",
                   fmt::format("rank {} (idle for {} s)", *idle, idle_limit_ns / 1'000'000'000)};
    }
    futex_wait(control.generation, generation);
  }
  return {};
}

void SharedRegion::fail(unsigned rank, const Error& error) {
  std::uint32_t none = 0;
  if (!control_->failed.compare_exchange_strong(none, 1)) return;
  const std::string text = fmt::format("rank {}: {}", rank, error.message());
  std::copy_n(text.data(), std::min(text.size(), control_->failure.size() - 1),
              control_->failure.data());
  control_->failed = 2;
  futex_wake_all(control_->generation);
}

std::string SharedRegion::failure() const {
  return control_->failed == 2 ? control_->failure.data() : "";
}

}  // namespace erar::bench
