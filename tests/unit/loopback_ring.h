// A TCP ring on loopback for tests: rank r listens on 127.0.0.(r+1); a thread per rank.
//
// Needs no privilege: where cubic may not be set (it is not in
// net.ipv4.tcp_allowed_congestion_control) the system's default is used, and said so.
#pragma once

#include "core/unique_fd.h"
#include "emu/baseline/tcp_ring.h"

#include <gtest/gtest.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace erar {

inline constexpr std::uint64_t kSecondNs = 1'000'000'000;

// Test processes may run side by side, so their ports differ. Below the ephemeral ports.
inline std::uint16_t fresh_port() {
  static std::atomic<unsigned> used{0};
  const unsigned slot = static_cast<unsigned>(getpid()) * 16U + used++;
  return static_cast<std::uint16_t>(12'000U + slot % 20'000U);
}

inline std::string allowed_congestion_control() {
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::setsockopt(fd.get(), IPPROTO_TCP, TCP_CONGESTION, "cubic", 5) == 0) return "cubic";
  std::string name;
  std::ifstream("/proc/sys/net/ipv4/tcp_congestion_control") >> name;
  std::cout << "cubic may not be set here (" << std::strerror(errno) << "): using " << name << "\n";
  return name;
}

inline TcpOptions test_options() {
  static const std::string kCongestionControl = allowed_congestion_control();
  TcpOptions options;
  options.congestion_control = kCongestionControl;
  options.port = fresh_port();
  options.timeout_ns = 20 * kSecondNs;  // a busy machine is no failure
  return options;
}

inline RingEndpoint loopback_endpoint(unsigned rank, unsigned ranks) {
  constexpr std::uint32_t kLoopback = 0x7f000000;
  RingEndpoint endpoint;
  endpoint.rank = rank;
  endpoint.ranks = ranks;
  endpoint.listen_ipv4 = kLoopback + rank + 1;
  endpoint.source_ipv4 = kLoopback + rank + 1;
  endpoint.next_ipv4 = kLoopback + (rank + 1) % ranks + 1;
  return endpoint;
}

// Runs body(rank) for all ranks at once.
inline void on_all_ranks(unsigned ranks, const std::function<void(unsigned)>& body) {
  std::vector<std::thread> threads;
  for (unsigned rank = 0; rank < ranks; ++rank) threads.emplace_back(body, rank);
  for (std::thread& thread : threads) thread.join();
}

using Backends = std::vector<std::unique_ptr<Backend>>;

inline Backends open_ring(unsigned ranks, const TcpOptions& options) {
  Backends backends(ranks);
  on_all_ranks(ranks, [&](unsigned rank) {
    auto backend = open_tcp_backend(loopback_endpoint(rank, ranks), options);
    if (backend) {
      backends[rank] = std::move(*backend);
    } else {
      ADD_FAILURE() << "rank " << rank << ": " << backend.error().message();
    }
  });
  return backends;
}

inline bool complete(const Backends& backends) {
  return std::all_of(backends.begin(), backends.end(), [](const auto& b) { return b != nullptr; });
}

inline void expect_error(const std::optional<Error>& error, int code, const std::string& part) {
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code, code) << error->message();
  EXPECT_NE(error->message().find(part), std::string::npos) << error->message();
}

}  // namespace erar
