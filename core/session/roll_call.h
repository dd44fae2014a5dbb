// RollCall: which ranks' processes have been heard of, and what to say when nothing moves.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "core/session/native_step.h"

namespace erar {

class RollCall {
 public:
  explicit RollCall(const NativeMemory& memory) : memory_(memory) {}

  // Notes what was heard since the last look.
  void look(std::uint64_t now_ns);

  // Why nothing has moved since stalled_ns, as far as signs of life tell: "rank 2 is silent".
  // Signs travel forward only. Those of the ranks that are between the culprit and this rank get
  // here, so the culprit is the first silent rank before this one. Ranks that were heard in this
  // stall, but not within the last silence_ns, have given up and left: they are not it if there is
  // another.
  [[nodiscard]] std::string verdict(std::uint64_t stalled_ns, std::uint64_t now_ns,
                                    std::uint64_t silence_ns) const;

 private:
  [[nodiscard]] bool heard_since(unsigned rank, std::uint64_t since_ns) const {
    return heard_ns_[rank] != 0 && heard_ns_[rank] >= since_ns;
  }

  const NativeMemory& memory_;
  std::array<std::uint64_t, ERAR_MAX_RANKS> counts_{};
  std::array<std::uint64_t, ERAR_MAX_RANKS> heard_ns_{};
};

}  // namespace erar
