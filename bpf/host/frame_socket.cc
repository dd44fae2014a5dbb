// FrameSocket: AF_PACKET with protocol 0, bound to one interface.
#include "bpf/host/frame_socket.h"

#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>

namespace erar {

Result<FrameSocket> FrameSocket::open(const std::string& interface) {
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_ifindex = static_cast<int>(if_nametoindex(interface.c_str()));
  if (address.sll_ifindex == 0) return errno_error("find interface", interface);
  UniqueFd fd(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return errno_error("open a packet socket on", interface);
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
    return errno_error("bind a packet socket to", interface);
  return FrameSocket(std::move(fd));
}

Result<void> FrameSocket::send(std::span<const std::span<const std::uint8_t>> frames) const {
  constexpr std::size_t kBatch = 16;
  std::array<mmsghdr, kBatch> messages{};
  std::array<iovec, kBatch> vectors{};
  std::size_t sent = 0;
  while (sent < frames.size()) {
    const std::size_t batch = std::min(kBatch, frames.size() - sent);
    for (std::size_t i = 0; i < batch; i++) {
      const auto frame = frames[sent + i];
      vectors[i] = {const_cast<std::uint8_t*>(frame.data()), frame.size()};
      messages[i] = {};
      messages[i].msg_hdr.msg_iov = &vectors[i];
      messages[i].msg_hdr.msg_iovlen = 1;
    }
    const int count = sendmmsg(fd_.get(), messages.data(), static_cast<unsigned>(batch), 0);
    if (count < 0 && errno != EINTR) return errno_error("send frames", {});
    if (count > 0) sent += static_cast<std::size_t>(count);
  }
  return {};
}

}  // namespace erar
