// Network namespaces by name.
#include "emu/netns/namespace.h"

#include <dirent.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <system_error>
#include <thread>

namespace erar {

std::vector<std::string> all_namespace_names() {
  std::vector<std::string> names;
  std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(kNamespaceDirectory), closedir);
  if (!directory) return names;
  while (const dirent* entry = readdir(directory.get())) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  return names;
}

Result<UniqueFd> open_namespace(const std::string& name) {
  std::string path = std::string(kNamespaceDirectory) + "/" + name;
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return errno_error("open network namespace", name);
  return fd;
}

Result<void> in_namespace(const std::string& name, const std::function<Result<void>()>& work) {
  auto fd = open_namespace(name);
  if (!fd) return fd.error();
  Result<void> result;
  auto enter_and_work = [&] {
    if (setns(fd->get(), CLONE_NEWNET) != 0) {
      result = errno_error("enter network namespace", name);
    } else {
      result = work();
    }
  };
  try {
    std::thread(enter_and_work).join();
  } catch (const std::system_error& failure) {
    return Error{failure.code().value(), "start a thread", {}};
  }
  return result;
}

Result<void> write_sysctl(const std::string& path, const std::string& value) {
  std::string file = "/proc/sys/" + path;
  UniqueFd fd(open(file.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd.valid()) {
    if (errno == ENOENT) return {};
    return errno_error("open", file);
  }
  if (write(fd.get(), value.data(), value.size()) < 0) return errno_error("write", file);
  return {};
}

Result<void> wait_until_running(const std::string& device) {
  UniqueFd socket_fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket_fd.valid()) return errno_error("open a socket");
  ifreq request{};
  device.copy(request.ifr_name, IFNAMSIZ - 1);
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  for (;;) {
    if (ioctl(socket_fd.get(), SIOCGIFFLAGS, &request) != 0) {
      return errno_error("read the flags of", device);
    }
    if (request.ifr_flags & IFF_RUNNING) return {};
    if (std::chrono::steady_clock::now() > deadline) return Error{ETIMEDOUT, "wait for", device};
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace erar
