// RingEndpoint: where a rank stands in the ring and how it reaches its successor.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace erar {

// Frames arrive on rx_interface and
// leave by tx_interface (the same on a host with one NIC); both are names in the rank's own network
// namespace. IPv4 addresses are in host byte order.
struct RingEndpoint {
  unsigned rank = 0;
  unsigned ranks = 1;
  unsigned mtu = 1500;
  unsigned window = 0;  // frames that a rank has under way per operation; 0: as many as suit the ranks
  std::string rx_interface;
  std::string tx_interface;
  std::array<std::uint8_t, 6> source_mac{};  // of tx_interface
  std::array<std::uint8_t, 6> next_mac{};    // of the successor's rx_interface (or the next router)
  std::uint32_t listen_ipv4 = 0;             // of rx_interface
  std::uint32_t source_ipv4 = 0;             // of tx_interface
  std::uint32_t next_ipv4 = 0;               // of the successor's rx_interface
};

}  // namespace erar
