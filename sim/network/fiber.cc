// SPDX-License-Identifier: BSD-2-Clause
// Fiber: makecontext(3), and what AddressSanitizer has to be told
// (sanitizer/common_interface_defs.h).
#include "sim/network/fiber.h"

#include <cstdint>
#include <utility>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

namespace erar::sim {
namespace {

void leave_stack([[maybe_unused]] void** shadow, [[maybe_unused]] const void* stack,
                 [[maybe_unused]] std::size_t bytes) {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(shadow, stack, bytes);
#endif
}

void enter_stack([[maybe_unused]] void* shadow, [[maybe_unused]] const void** stack,
                 [[maybe_unused]] std::size_t* bytes) {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(shadow, stack, bytes);
#endif
}

}  // namespace

Fiber::Fiber(std::function<void()> body)
    : body_(std::move(body)), stack_(new std::byte[kStackBytes]) {
  getcontext(&inside_);
  inside_.uc_stack.ss_sp = stack_.get();
  inside_.uc_stack.ss_size = kStackBytes;
  inside_.uc_link = &outside_;
  // makecontext() passes ints only.
  const auto self = reinterpret_cast<std::uintptr_t>(this);
  makecontext(&inside_, reinterpret_cast<void (*)()>(&Fiber::enter), 2,
              static_cast<unsigned>(self >> 32), static_cast<unsigned>(self));
}

void Fiber::enter(unsigned high, unsigned low) {
  auto* fiber = reinterpret_cast<Fiber*>(std::uintptr_t{high} << 32 | low);
  fiber->arrived();
  try {
    fiber->body_();
  } catch (...) {
    fiber->error_ = std::current_exception();
  }
  fiber->finished_ = true;
  leave_stack(nullptr, fiber->outside_stack_, fiber->outside_bytes_);
}

void Fiber::arrived() { enter_stack(inside_shadow_, &outside_stack_, &outside_bytes_); }

void Fiber::resume() {
  started_ = true;
  leave_stack(&outside_shadow_, stack_.get(), kStackBytes);
  swapcontext(&outside_, &inside_);
  enter_stack(outside_shadow_, nullptr, nullptr);
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void Fiber::step_aside() {
  leave_stack(&inside_shadow_, outside_stack_, outside_bytes_);
  swapcontext(&inside_, &outside_);
  arrived();
}

}  // namespace erar::sim
