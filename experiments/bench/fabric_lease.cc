// Takes and gives back the fabric.
#include "experiments/bench/fabric_lease.h"

#include "experiments/bench/interrupt.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

namespace erar::bench {

Result<FabricLease> FabricLease::take(const BenchOptions& options, bool& wrong_arguments) {
  wrong_arguments = false;
  if (options.fabric_kind) {
    const FabricSpec spec = new_fabric_spec(options);
    Result<Fabric> made = Fabric::up(spec);
    if (made) return FabricLease(*std::move(made), true);
    // A signal in the middle may have left half of it; there may as well be nothing.
    InterruptGuard::ignore_further();
    static_cast<void>(static_cast<bool>(Fabric::down(spec.name)));
    return made.error();
  }
  Result<Fabric> borrowed = Fabric::open(options.fabric_name);
  if (!borrowed) {
    wrong_arguments = true;
    return refusal(
        fmt::format("--fabric {}: must be ring, bridge, switch or the name of a fabric "
                    "that is up ({})",
                    options.fabric_name, borrowed.error().message()));
  }
  if (Result<void> agrees = check_against_fabric(options, borrowed->spec()); !agrees) {
    wrong_arguments = true;
    return agrees.error();
  }
  if (Result<void> restored = borrowed->restore(); !restored) return restored.error();
  return FabricLease(*std::move(borrowed), false);
}

FabricLease::FabricLease(FabricLease&& other) noexcept
    : fabric_(std::exchange(other.fabric_, std::nullopt)),
      made_(other.made_),
      xdp_switch_(other.xdp_switch_) {}

FabricLease::~FabricLease() {
  if (!fabric_) return;
  InterruptGuard::ignore_further();
  const Result<void> returned = made_ ? Fabric::down(fabric_->spec().name) : use_xdp_switch(true);
  if (!returned) std::fprintf(stderr, "erar: %s\n", returned.error().message().c_str());
}

Result<void> FabricLease::use_xdp_switch(bool on) {
  if (fabric_->spec().kind != FabricKind::kSwitch || on == xdp_switch_) return {};
  Result<void> set = fabric_->set_xdp_switch(on);
  if (set) xdp_switch_ = on;
  return set;
}

}  // namespace erar::bench
