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

// Waiters look at the failure flag this often, should its wake-up have come too early for them.
constexpr long kLookAgainNs = 50'000'000;

// Not FUTEX_PRIVATE_FLAG: the word is shared between processes.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected) {
  const timespec timeout{0, kLookAgainNs};
  // Woken, timed out, interrupted or already changed: the caller looks at the word again.
  ::syscall(SYS_futex, &word, FUTEX_WAIT, expected, &timeout, nullptr, 0);
}

void futex_wake_all(std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, 0x7fffffff, nullptr, nullptr, 0);
}

}  // namespace

Result<SharedRegion> SharedRegion::create(unsigned ranks, std::size_t times,
                                          std::uint64_t barrier_timeout_ns) {
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
  region.barrier_timeout_ns_ = barrier_timeout_ns;
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
      barrier_timeout_ns_(other.barrier_timeout_ns_) {}

SharedRegion::~SharedRegion() {
  if (memory_ != nullptr) ::munmap(memory_, bytes_);
}

Result<void> SharedRegion::barrier() {
  Control& control = *control_;
  if (control.failed != 0) return refusal("another rank failed");
  const std::uint32_t generation = control.generation;
  if (control.arrived.fetch_add(1) + 1 == ranks_) {
    control.arrived = 0;
    control.generation = generation + 1;
    futex_wake_all(control.generation);
    return {};
  }
  const std::uint64_t deadline_ns = monotonic_ns() + barrier_timeout_ns_;
  while (control.generation == generation) {
    if (control.failed != 0) return refusal("another rank failed");
    if (monotonic_ns() > deadline_ns) return Error{ETIMEDOUT, "wait for", "the other ranks"};
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
