// RollCall: counts of signs of life, and the conclusions from them.
#include "core/session/roll_call.h"

#include <algorithm>
#include <optional>

namespace erar {

void RollCall::look(std::uint64_t now_ns) {
  for (unsigned rank = 0; rank < memory_.config->ranks; rank++) {
    const std::uint64_t count = __atomic_load_n(&memory_.heard[rank], __ATOMIC_RELAXED);
    if (count == counts_[rank]) continue;
    counts_[rank] = count;
    heard_ns_[rank] = now_ns;
  }
}

std::string RollCall::verdict(std::uint64_t stalled_ns, std::uint64_t now_ns,
                              std::uint64_t silence_ns) const {
  const unsigned ranks = memory_.config->ranks;
  const unsigned self = memory_.config->rank;
  const std::uint64_t since_ns = now_ns - std::min(silence_ns, now_ns);
  std::optional<unsigned> culprit;
  std::optional<unsigned> left;
  bool any_heard = false;
  for (unsigned back = 1; back < ranks; back++) {
    const unsigned rank = (self + ranks - back) % ranks;
    if (heard_since(rank, since_ns)) {
      any_heard = true;
    } else if (heard_since(rank, stalled_ns)) {
      if (!left) left = rank;
      any_heard = true;
    } else if (!culprit) {
      culprit = rank;
    }
  }
  if (!culprit) culprit = left;
  if (culprit)
    return "rank " + std::to_string(*culprit) + " is silent" +
           (any_heard || ranks == 2 ? "" : ", or this rank is cut off");
  if (!heard_since(self, since_ns))
    return "what this rank sends to rank " + std::to_string((self + 1) % ranks) +
           " does not come round the ring";
  return "all ranks are there, but frames are lost";
}

}  // namespace erar
