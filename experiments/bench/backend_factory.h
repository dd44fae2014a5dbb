// The backends that can be compared, by name.
#pragma once

#include "core/backend.h"
#include "experiments/bench/float_bound.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace erar::bench {

// Settings of all backends; each takes what concerns it. Equal on all ranks of a group.
struct BackendSettings {
  std::uint64_t timeout_ns = 0;
  std::size_t registered_bytes = 0;  // what allocate() will be asked for in all
  // erar
  bool generic_mode = false;
  std::size_t group_bytes = 0;
  bool checksum = true;
  std::uint32_t job = 1;
  std::uint32_t token = 0;
  // tcp
  std::string congestion_control;
};

inline constexpr std::string_view kReferenceBackend = "tcp";  // what the others are compared with

std::span<const std::string_view> backend_names();

// Whether the backend's frames go through the fabric's XDP switch where it has one. TCP's do not:
// with XDP on its ports a bridge loses the offloads that TCP lives on.
bool wants_xdp_switch(std::string_view name);

Summation summation_of(std::string_view name);

// To be called in the rank's own process and network namespace. The name is one of backend_names().
Result<std::unique_ptr<Backend>> open_backend(std::string_view name, const RingEndpoint& endpoint,
                                              const BackendSettings& settings);

}  // namespace erar::bench
