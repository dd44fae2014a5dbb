// FrameSocket: sends whole Ethernet frames out of an interface.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/result.h"
#include "core/unique_fd.h"

namespace erar {

class FrameSocket {
 public:
  FrameSocket() = default;
  // An AF_PACKET socket (packet(7)) that receives nothing. Errors: EPERM without CAP_NET_RAW,
  // ENODEV.
  static Result<FrameSocket> open(const std::string& interface);

  // Sends frames in order, with one system call where the kernel lets it.
  Result<void> send(std::span<const std::span<const std::uint8_t>> frames) const;

 private:
  explicit FrameSocket(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace erar
