// The fabric a bench runs on: made for it and removed after it, or borrowed and left as it was.
#pragma once

#include "emu/netns/fabric.h"
#include "experiments/bench/options.h"

#include <optional>

namespace erar::bench {

class FabricLease {
 public:
  // The fabric that the options name, or a new one of the kind they ask for. A fabric that is not
  // there or that contradicts the options is a bad argument: wrong_arguments is set then.
  static Result<FabricLease> take(const BenchOptions& options, bool& wrong_arguments);
  FabricLease(FabricLease&& other) noexcept;
  FabricLease& operator=(FabricLease&&) = delete;
  FabricLease(const FabricLease&) = delete;
  FabricLease& operator=(const FabricLease&) = delete;
  // Removes what take() made, or puts the XDP switch back where a backend had it taken away.
  ~FabricLease();

  [[nodiscard]] const Fabric& fabric() const { return *fabric_; }
  // Puts the XDP switch before the bridge or takes it away; nothing on other fabrics.
  Result<void> use_xdp_switch(bool on);

 private:
  FabricLease(Fabric fabric, bool made) : fabric_(std::move(fabric)), made_(made) {}

  std::optional<Fabric> fabric_;
  bool made_ = false;
  bool xdp_switch_ = true;
};

}  // namespace erar::bench
