// ReceiveOffload: ETHTOOL_GGRO and ETHTOOL_SGRO (linux/ethtool.h) by ioctl.
#include "bpf/host/receive_offload.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "core/unique_fd.h"

namespace erar {
namespace {

Result<std::uint32_t> gro_command(const std::string& interface, std::uint32_t command,
                                  std::uint32_t data) {
  const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return errno_error("open a socket for", interface);
  ethtool_value value{command, data};
  ifreq request{};
  interface.copy(request.ifr_name, IFNAMSIZ - 1);
  request.ifr_data = reinterpret_cast<char*>(&value);
  if (ioctl(socket.get(), SIOCETHTOOL, &request) != 0) return errno_error("set GRO of", interface);
  return value.data;
}

}  // namespace

Result<void> ReceiveOffload::enable(const std::string& interface) {
  const auto before = gro_command(interface, ETHTOOL_GGRO, 0);
  if (!before) return before.error();
  if (*before != 0) return {};
  if (const auto set = gro_command(interface, ETHTOOL_SGRO, 1); !set) return set.error();
  interface_ = interface;
  return {};
}

ReceiveOffload::~ReceiveOffload() {
  // The interface may be gone by now, and with it what there was to restore.
  if (!interface_.empty()) (void)gro_command(interface_, ETHTOOL_SGRO, 0);
}

}  // namespace erar
