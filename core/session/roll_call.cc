// RollCall: counts of signs of life, and the conclusions from them.
#include "core/session/roll_call.h"

namespace erar {

void RollCall::look(std::uint64_t now_ns) {
  for (unsigned rank = 0; rank < memory_.config->ranks; rank++) {
    const std::uint32_t count = __atomic_load_n(&memory_.heard[rank], __ATOMIC_RELAXED);
    if (count == counts_[rank]) continue;
    counts_[rank] = count;
    heard_ns_[rank] = now_ns;
  }
}

bool RollCall::silent(unsigned rank, std::uint64_t now_ns, std::uint64_t silence_ns) const {
  return heard_ns_[rank] == 0 || now_ns - heard_ns_[rank] > silence_ns;
}

std::string RollCall::verdict(std::uint64_t now_ns, std::uint64_t silence_ns) const {
  const unsigned ranks = memory_.config->ranks;
  const unsigned self = memory_.config->rank;
  unsigned silent_ranks = 0;
  unsigned culprit = self;
  for (unsigned back = 1; back < ranks; back++) {
    const unsigned rank = (self + ranks - back) % ranks;
    if (!silent(rank, now_ns, silence_ns)) continue;
    if (silent_ranks++ == 0) culprit = rank;
  }
  const std::string name = "rank " + std::to_string(culprit) + " is silent";
  if (silent_ranks == 0)
    return silent(self, now_ns, silence_ns)
               ? "what this rank sends to rank " + std::to_string((self + 1) % ranks) +
                     " does not come round the ring"
               : "all ranks are there, but frames are lost";
  if (silent_ranks == ranks - 1 && ranks > 2) return name + ", or this rank is cut off";
  return name;
}

}  // namespace erar
