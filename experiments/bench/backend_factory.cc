// The one place where the bench knows one backend from another.
#include "experiments/bench/backend_factory.h"

#include "bpf/host/erar_backend.h"
#include "emu/baseline/tcp_ring.h"

#include <array>

namespace erar::bench {
namespace {

Result<std::unique_ptr<Backend>> open_erar(const RingEndpoint& endpoint,
                                           const BackendSettings& settings) {
  ErarOptions options;
  options.generic_mode = settings.generic_mode;
  options.job = settings.job;
  options.token = settings.token;
  options.timeout_ns = settings.timeout_ns;
  options.registered_bytes = settings.registered_bytes;
  options.group_bytes = settings.group_bytes;
  options.checksum = settings.checksum;
  return open_erar_backend(endpoint, options);
}

Result<std::unique_ptr<Backend>> open_tcp(const RingEndpoint& endpoint,
                                          const BackendSettings& settings) {
  TcpOptions options;
  options.congestion_control = settings.congestion_control;
  options.timeout_ns = settings.timeout_ns;
  return open_tcp_backend(endpoint, options);
}

constexpr std::array<std::string_view, 2> kNames{"erar", "tcp"};

}  // namespace

std::span<const std::string_view> backend_names() { return kNames; }

bool wants_xdp_switch(std::string_view name) { return name != "tcp"; }

Summation summation_of(std::string_view name) {
  return name == "tcp" ? Summation::kRing : Summation::kBlocks;
}

Result<std::unique_ptr<Backend>> open_backend(std::string_view name, const RingEndpoint& endpoint,
                                              const BackendSettings& settings) {
  if (name == "erar") return open_erar(endpoint, settings);
  if (name == "tcp") return open_tcp(endpoint, settings);
  return refusal("no backend named " + std::string(name));
}

}  // namespace erar::bench
