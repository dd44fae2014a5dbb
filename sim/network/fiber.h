// SPDX-License-Identifier: BSD-2-Clause
// Fiber: a function with a stack of its own that runs until it steps aside, for ranks in one
// thread.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>

namespace erar::sim {

// Blocking code of many ranks, without threads: who runs is decided by resume() alone, so a run is
// the same every time.
class Fiber {
 public:
  explicit Fiber(std::function<void()> body);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Runs the body on from where it stepped aside. An exception of the body comes out here.
  void resume();
  // Called by the body: returns when it is resumed.
  void step_aside();
  [[nodiscard]] bool started() const { return started_; }
  [[nodiscard]] bool finished() const { return finished_; }

 private:
  static void enter(unsigned high, unsigned low);
  void arrived();

  static constexpr std::size_t kStackBytes = 256 * 1024;
  std::function<void()> body_;
  std::unique_ptr<std::byte[]> stack_;
  ucontext_t inside_{};
  ucontext_t outside_{};
  std::exception_ptr error_;
  bool started_ = false;
  bool finished_ = false;
  // AddressSanitizer wants to know which stack is in use.
  void* inside_shadow_ = nullptr;
  void* outside_shadow_ = nullptr;
  const void* outside_stack_ = nullptr;
  std::size_t outside_bytes_ = 0;
};

}  // namespace erar::sim
