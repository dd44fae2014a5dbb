// KickTeam: a sleeping thread per CPU that injects frames there when asked.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/result.h"

namespace erar {

// Frames are processed on the CPU on which they were injected, hop after hop. A frame that was
// parked must therefore be resumed on the CPU that it came from, or the rank that starts last draws
// the whole operation to its own CPU. Used by one thread; inject() runs on the team's threads.
class KickTeam {
 public:
  using Inject = std::function<Result<void>(std::uint32_t operation, std::uint32_t frames)>;

  explicit KickTeam(Inject inject);
  ~KickTeam();
  KickTeam(const KickTeam&) = delete;
  KickTeam& operator=(const KickTeam&) = delete;

  // Has `frames` injected on a CPU; returns at once. False when that CPU has no thread and can get
  // none (offline, not allowed): the caller injects them itself.
  bool inject_on(unsigned cpu, std::uint32_t operation, std::uint32_t frames);
  // The error of an injection since the last call, if any.
  Result<void> take_error();

 private:
  struct Member;
  Member* member_of(unsigned cpu);

  Inject inject_;
  std::vector<std::unique_ptr<Member>> members_;  // by CPU, made when first needed
};

}  // namespace erar
