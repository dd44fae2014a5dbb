// `erar doctor`: checks that only read.
#include <fmt/format.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>

#include "core/unique_fd.h"
#include "experiments/cli/doctor_checks.h"

namespace erar::cli {
namespace {

constexpr std::uint64_t kMegabytesPerRank = 64;
constexpr std::uint64_t kDefaultRanks = 4;

// The text behind "key:" in a file like /proc/meminfo.
std::optional<std::string> field_of(const char* path, const std::string& key) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (line.compare(0, key.size() + 1, key + ":") == 0) return line.substr(key.size() + 1);
  }
  return std::nullopt;
}

Check check_kernel() {
  utsname name{};
  uname(&name);
  unsigned major = 0;
  unsigned minor = 0;
  if (std::sscanf(name.release, "%u.%u", &major, &minor) != 2) {
    return {Health::kWarn, "kernel", fmt::format("version {} not understood", name.release)};
  }
  unsigned version = major * 1000 + minor;
  if (version < 5018) {
    return {Health::kMissing, "kernel",
            fmt::format("{}: 5.18 added live-frame test runs; 6.1 or newer is best", name.release)};
  }
  if (version < 6001) {
    return {Health::kWarn, "kernel", fmt::format("{}: not tried below 6.1", name.release)};
  }
  return {Health::kOk, "kernel", name.release};
}

Check check_btf() {
  const char* path = "/sys/kernel/btf/vmlinux";
  if (access(path, R_OK) == 0) return {Health::kOk, "BTF", path};
  return {Health::kWarn, "BTF",
          fmt::format("no {}: use a kernel with CONFIG_DEBUG_INFO_BTF=y", path)};
}

Check check_privileges() {
  std::uint64_t effective = 0;
  if (auto text = field_of("/proc/self/status", "CapEff")) {
    effective = std::strtoull(text->c_str(), nullptr, 16);
  }
  auto has = [&](unsigned capability) { return ((effective >> capability) & 1) != 0; };
  if (geteuid() != 0) return {Health::kMissing, "root", "not root: run with sudo"};
  std::string lacking;
  if (!has(CAP_NET_ADMIN)) lacking += " CAP_NET_ADMIN";
  if (!has(CAP_SYS_ADMIN)) {
    lacking += " CAP_SYS_ADMIN";
    if (!has(CAP_BPF)) lacking += " CAP_BPF";
  }
  if (lacking.empty()) return {Health::kOk, "root", "with CAP_NET_ADMIN, CAP_SYS_ADMIN, CAP_BPF"};
  return {Health::kMissing, "root",
          fmt::format("lacks{}: in a container, run it with --privileged", lacking)};
}

Check check_jit() {
  const char* path = "/proc/sys/net/core/bpf_jit_enable";
  int value = -1;
  std::ifstream(path) >> value;
  if (value > 0) return {Health::kOk, "BPF JIT", "on"};
  if (value == 0) {
    return {Health::kWarn, "BPF JIT",
            "off, many times slower: sysctl -w net.core.bpf_jit_enable=1"};
  }
  return {Health::kWarn, "BPF JIT", fmt::format("not checked: {} cannot be read", path)};
}

Check check_bpffs() {
  std::ifstream mounts("/proc/mounts");
  std::string device, directory, type, rest;
  while (mounts >> device >> directory >> type && std::getline(mounts, rest)) {
    if (type == "bpf") return {Health::kInfo, "bpffs", fmt::format("at {}, not used", directory)};
  }
  return {Health::kInfo, "bpffs", "not mounted, not needed"};
}

Check check_memory() {
  std::uint64_t available_mb = 0;
  if (auto text = field_of("/proc/meminfo", "MemAvailable")) {
    available_mb = std::strtoull(text->c_str(), nullptr, 10) / 1024;
  }
  auto ranks = available_mb / kMegabytesPerRank;
  std::string detail =
      fmt::format("{} MB available: {} ranks at {} MB", available_mb, ranks, kMegabytesPerRank);
  if (ranks < kDefaultRanks) return {Health::kWarn, "memory", detail + ": use fewer or free some"};
  return {Health::kOk, "memory", detail};
}

Check check_memlock() {
  rlimit limit{};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  if (limit.rlim_cur == RLIM_INFINITY) return {Health::kOk, "RLIMIT_MEMLOCK", "unlimited"};
  // Kernels that eRAR runs on charge BPF maps to the memory cgroup instead.
  return {Health::kInfo, "RLIMIT_MEMLOCK",
          fmt::format("{} kB; does not bound BPF maps since kernel 5.11", limit.rlim_cur / 1024)};
}

Check check_cubic() {
  UniqueFd socket_fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const char name[] = "cubic";
  if (setsockopt(socket_fd.get(), IPPROTO_TCP, TCP_CONGESTION, name, sizeof(name) - 1) == 0) {
    return {Health::kOk, "TCP cubic", "can be set on a socket"};
  }
  if (errno == EPERM) {
    return {Health::kWarn, "TCP cubic", "only root may set it here: not checked"};
  }
  return {Health::kMissing, "TCP cubic",
          fmt::format("{}; the TCP baselines need it: modprobe tcp_cubic", std::strerror(errno))};
}

bool in_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream directories(path != nullptr ? path : "/usr/sbin:/usr/bin:/sbin:/bin");
  std::string directory;
  while (std::getline(directories, directory, ':')) {
    if (access(fmt::format("{}/{}", directory, program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

Check check_tool(const std::string& program, const std::string& package) {
  if (in_path(program)) return {Health::kOk, program, "found"};
  return {Health::kMissing, program,
          fmt::format("not in PATH: install {} (or add /usr/sbin to PATH)", package)};
}

}  // namespace

std::vector<Check> system_checks() {
  return {check_kernel(),
          check_btf(),
          check_privileges(),
          check_jit(),
          check_bpffs(),
          check_memory(),
          check_memlock(),
          check_cubic(),
          check_tool("ip", "iproute2"),
          check_tool("bridge", "iproute2"),
          check_tool("ethtool", "ethtool")};
}

}  // namespace erar::cli
