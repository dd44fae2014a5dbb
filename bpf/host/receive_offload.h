// ReceiveOffload: GRO switched on for an interface while the object lives.
#pragma once

#include <string>

#include "core/result.h"

namespace erar {

// A veth hands frames that were redirected into it only to a NAPI poll, which it has when a native
// XDP program is attached or GRO is on. In generic mode there is no native program, so GRO must be.
class ReceiveOffload {
 public:
  ReceiveOffload() = default;
  ReceiveOffload(const ReceiveOffload&) = delete;
  ReceiveOffload& operator=(const ReceiveOffload&) = delete;
  ~ReceiveOffload();

  // Interface name in the calling thread's network namespace; the destructor restores what was set
  // before, in that same namespace.
  Result<void> enable(const std::string& interface);

 private:
  std::string interface_;  // empty: nothing to restore
};

}  // namespace erar
