// FaultBox: the host side of bpf/faults.bpf.c, to attach it between two devices and to drive one
// that runs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bpf/faults.h"
#include "bpf/host/faults.h"
#include "core/result.h"
#include "core/unique_fd.h"

namespace erar {

class FaultBox {
 public:
  // The box's two devices, both in the network namespace of the calling thread.
  struct Place {
    std::uint32_t box = 0;  // its number, which the decisions depend on
    std::string port_a;
    std::string port_b;
  };

  // Loads the program and attaches it natively to both devices, by netlink: it stays when this
  // process is gone and goes with the devices. No faults are set. What was attached before is
  // replaced.
  static Result<FaultBox> attach(const Place& place);
  // The one that runs there. Errors: ENOENT when none does.
  static Result<FaultBox> open(const Place& place);

  // From now on these settings, no rules and frame number 0 on both ways; what was held is gone.
  // Counters go on. Exact only while no frames pass.
  Result<void> set(erar_fault_settings settings);
  // The rules, at most ERAR_FAULT_RULES, with no matches yet. The first that matches a frame and is
  // not used up decides.
  Result<void> set_rules(std::span<const erar_fault_rule> rules);
  // How many frames have matched each rule.
  [[nodiscard]] Result<std::vector<std::uint64_t>> rule_matches() const;

  [[nodiscard]] Result<FaultCounts> counts() const;
  // For each frame held on a way, the number of the frame after which it goes on, in that order.
  [[nodiscard]] Result<std::vector<std::uint64_t>> held(erar_fault_way way) const;
  // Sends frames on that are held on a way, at most `many`. In the devices' network namespace.
  Result<void> release(erar_fault_way way, unsigned many);

  // For BPF_PROG_TEST_RUN.
  [[nodiscard]] int program_fd() const { return program_.get(); }
  [[nodiscard]] int ifindex(erar_fault_way way) const { return ifindex_[way]; }

 private:
  FaultBox() = default;
  Result<void> take_maps();

  UniqueFd program_;
  UniqueFd settings_;
  UniqueFd rules_;
  UniqueFd flows_;
  UniqueFd counters_;
  int ifindex_[ERAR_FAULT_WAYS] = {};
};

}  // namespace erar
