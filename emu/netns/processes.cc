// Processes seen from outside, by way of /proc.
#include "emu/netns/processes.h"

#include <dirent.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <thread>
#include <utility>

#include "core/unique_fd.h"
#include "emu/netns/namespace.h"
#include "emu/netns/pidfd.h"

namespace erar {
namespace {

using Inode = std::pair<dev_t, ino_t>;
using Clock = std::chrono::steady_clock;

std::set<Inode> inodes_of(const std::vector<std::string>& namespaces) {
  std::set<Inode> inodes;
  for (const std::string& name : namespaces) {
    struct stat info {};
    std::string path = std::string(kNamespaceDirectory) + "/" + name;
    if (stat(path.c_str(), &info) == 0) inodes.emplace(info.st_dev, info.st_ino);
  }
  return inodes;
}

bool lives_in(pid_t pid, const std::set<Inode>& inodes) {
  struct stat info {};
  std::string path = fmt::format("/proc/{}/ns/net", pid);
  return stat(path.c_str(), &info) == 0 && inodes.count({info.st_dev, info.st_ino}) != 0;
}

std::vector<pid_t> processes_in_inodes(const std::set<Inode>& inodes) {
  std::vector<pid_t> pids;
  std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir("/proc"), closedir);
  if (!directory || inodes.empty()) return pids;
  while (const dirent* entry = readdir(directory.get())) {
    std::string name = entry->d_name;
    pid_t pid = 0;
    auto [end, code] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (code != std::errc() || end != name.data() + name.size()) continue;
    if (pid != getpid() && lives_in(pid, inodes)) pids.push_back(pid);
  }
  return pids;
}

// Whether a command started the process that is no more. A process may have changed its environment
// since; /proc has the one that it began with.
bool is_orphan(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/environ", pid), std::ios::binary);
  const std::string name = std::string(kCommandVariable) + "=";
  for (std::string entry; std::getline(file, entry, '\0');) {
    if (!entry.starts_with(name)) continue;
    std::istringstream value(entry.substr(name.size()));
    pid_t command = 0;
    std::uint64_t start_ticks = 0;
    char colon = 0;
    if (!(value >> command >> colon >> start_ticks) || colon != ':') return false;
    return process_start_ticks(command) != start_ticks;
  }
  return false;
}

bool is_any(pid_t) { return true; }

// The id may have been given to another process since it was found: hold the process, look again.
void signal_if_inside(pid_t pid, int signal, const std::set<Inode>& inodes,
                      bool (*is_meant)(pid_t)) {
  UniqueFd process = open_process(pid);
  if (process.valid() && lives_in(pid, inodes) && is_meant(pid)) {
    signal_process(process, signal);
  }
}

Result<void> end_meant(const std::vector<std::string>& namespaces, bool (*is_meant)(pid_t)) {
  const std::set<Inode> inodes = inodes_of(namespaces);
  const Clock::time_point start = Clock::now();
  std::set<pid_t> terminated;
  for (;;) {
    std::vector<pid_t> pids = processes_in_inodes(inodes);
    std::erase_if(pids, [&](pid_t pid) { return !is_meant(pid); });
    if (pids.empty()) return {};
    auto waited = Clock::now() - start;
    if (waited > std::chrono::seconds(5)) {
      return Error{ETIMEDOUT, "end process", std::to_string(pids.front())};
    }
    bool killing = waited > std::chrono::seconds(2);
    for (pid_t pid : pids) {
      // SIGTERM once: a process that is busy ending itself need not be told again.
      if (killing || terminated.insert(pid).second) {
        signal_if_inside(pid, killing ? SIGKILL : SIGTERM, inodes, is_meant);
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

}  // namespace

std::uint64_t process_start_ticks(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  if (!std::getline(file, line)) return 0;
  // The second field is the program's name in parentheses and may hold spaces and parentheses; the
  // start time is field 22, the state is field 3.
  std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(line.substr(name_end + 1));
  std::string field;
  for (int index = 3; index <= 22; ++index) {
    if (!(fields >> field)) return 0;
    if (index == 3 && (field == "Z" || field == "X")) return 0;
  }
  std::uint64_t ticks = 0;
  std::from_chars(field.data(), field.data() + field.size(), ticks);
  return ticks;
}

std::vector<pid_t> processes_in(const std::vector<std::string>& namespaces) {
  return processes_in_inodes(inodes_of(namespaces));
}

Result<void> end_processes_in(const std::vector<std::string>& namespaces) {
  return end_meant(namespaces, is_any);
}

std::string command_text() { return fmt::format("{}:{}", getpid(), process_start_ticks(getpid())); }

Result<void> end_orphans_in(const std::vector<std::string>& namespaces) {
  return end_meant(namespaces, is_orphan);
}

}  // namespace erar
