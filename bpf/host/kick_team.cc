// KickTeam: threads that wait on a counter, each pinned to its CPU.
#include "bpf/host/kick_team.h"

#include <pthread.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <mutex>
#include <optional>
#include <thread>

namespace erar {

// Orders are a short queue: eight operations at most are under way.
struct KickTeam::Member {
  struct Order {
    std::uint32_t operation = 0;
    std::uint32_t frames = 0;
  };
  std::array<Order, 16> orders{};
  std::atomic<std::uint32_t> given{0};
  std::uint32_t done = 0;
  std::atomic<bool> stop{false};
  bool pinned = false;
  std::mutex error_lock;
  std::optional<Error> error;
  std::thread thread;

  void work(const Inject& inject) {
    while (true) {
      given.wait(done, std::memory_order_acquire);
      while (done != given.load(std::memory_order_acquire)) {
        // The last that is given is no order but the end, wherever the thread is in its work.
        if (stop.load(std::memory_order_acquire)) return;
        const Order order = orders[done++ % orders.size()];
        if (auto injected = inject(order.operation, order.frames); !injected) {
          const std::lock_guard lock(error_lock);
          error = injected.error();
        }
      }
    }
  }
};

KickTeam::KickTeam(Inject inject) : inject_(std::move(inject)) {}

KickTeam::~KickTeam() {
  for (auto& member : members_) {
    if (!member || !member->thread.joinable()) continue;
    member->stop.store(true, std::memory_order_release);
    member->given.fetch_add(1, std::memory_order_release);
    member->given.notify_one();
    member->thread.join();
  }
}

KickTeam::Member* KickTeam::member_of(unsigned cpu) {
  if (cpu >= members_.size()) members_.resize(cpu + 1);
  if (members_[cpu]) return members_[cpu].get();
  auto& member = members_[cpu] = std::make_unique<Member>();
  member->thread = std::thread([this, mine = member.get()] { mine->work(inject_); });
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(cpu, &only);
  member->pinned = pthread_setaffinity_np(member->thread.native_handle(), sizeof(only), &only) == 0;
  return member.get();
}

bool KickTeam::inject_on(unsigned cpu, std::uint32_t operation, std::uint32_t frames) {
  Member* member = member_of(cpu);
  if (!member->pinned) return false;
  const std::uint32_t next = member->given.load(std::memory_order_relaxed);
  member->orders[next % member->orders.size()] = {operation, frames};
  member->given.store(next + 1, std::memory_order_release);
  member->given.notify_one();
  return true;
}

Result<void> KickTeam::take_error() {
  for (auto& member : members_) {
    if (!member) continue;
    const std::lock_guard lock(member->error_lock);
    if (!member->error) continue;
    Error error = *std::exchange(member->error, std::nullopt);
    return error;
  }
  return {};
}

}  // namespace erar
