// SPDX-License-Identifier: BSD-2-Clause
// InterruptedStep: the packet step on one CPU, in the middle of which another CPU does something.
#pragma once

#include <functional>

#include "core/session/native_step.h"

namespace erar::sim {

// At the point-th thing that the step asks of its surroundings, `meanwhile` is done. Payloads are
// written, read and added in two halves or more with such a point in between.
struct Interruption {
  unsigned point = 0;
  std::function<void()> meanwhile;
  unsigned passed = 0;

  void pass() {
    if (passed++ == point) meanwhile();
  }
  [[nodiscard]] bool happened() const { return passed > point; }
};

// As native_step() and native_resend().
Verdict interrupted_step(NativeMemory& memory, NativeFrame& frame, Interruption& interruption);
Verdict interrupted_resend(NativeMemory& memory, NativeFrame& frame, std::uint32_t operation,
                           std::uint32_t block, std::uint32_t segment, Interruption& interruption);

}  // namespace erar::sim
