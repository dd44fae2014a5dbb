// State files of fabrics: JSON, written to a temporary name and renamed.
#include "emu/netns/state_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "emu/netns/layout.h"
#include "emu/netns/processes.h"

namespace erar {
namespace {

constexpr const char* kRunDirectory = "/run/erar";
constexpr const char* kStateDirectory = "/run/erar/fabrics";
constexpr const char* kLockFile = "/run/erar/lock";
constexpr const char* kSuffix = ".json";

std::string path_of(const std::string& name) {
  return std::string(kStateDirectory) + "/" + name + kSuffix;
}

std::string temporary_path_of(const std::string& name) { return path_of(name) + ".new"; }

Result<void> make_directories() {
  for (const char* directory : {kRunDirectory, kStateDirectory}) {
    if (mkdir(directory, 0755) != 0 && errno != EEXIST) return errno_error("create", directory);
  }
  return {};
}

std::string to_text(const FabricState& state) {
  nlohmann::ordered_json json = {
      {"name", state.spec.name},
      {"kind", name_of(state.spec.kind)},
      {"ranks", state.spec.ranks},
      {"mtu", state.spec.mtu},
      {"queues", state.spec.queues},
      {"offloads", state.spec.offloads},
      {"faults", state.spec.faults},
      {"ephemeral", state.spec.ephemeral},
      {"complete", state.complete},
      {"owner_pid", state.owner_pid},
      {"owner_start_ticks", state.owner_start_ticks},
  };
  return json.dump(2) + "\n";
}

Result<FabricState> from_text(const std::string& text, const std::string& path) {
  try {
    auto json = nlohmann::json::parse(text);
    FabricState state;
    state.spec.name = json.at("name").get<std::string>();
    auto kind = parse_fabric_kind(json.at("kind").get<std::string>());
    if (!kind) return kind.error();
    state.spec.kind = *kind;
    state.spec.ranks = json.at("ranks").get<unsigned>();
    state.spec.mtu = json.at("mtu").get<unsigned>();
    state.spec.queues = json.at("queues").get<unsigned>();
    state.spec.offloads = json.at("offloads").get<bool>();
    state.spec.faults = json.value("faults", false);  // not in files of before there were any
    state.spec.ephemeral = json.at("ephemeral").get<bool>();
    state.complete = json.at("complete").get<bool>();
    state.owner_pid = json.at("owner_pid").get<pid_t>();
    state.owner_start_ticks = json.at("owner_start_ticks").get<std::uint64_t>();
    auto checked = check_fabric_spec(state.spec);
    if (!checked) return checked.error();
    return state;
  } catch (const nlohmann::json::exception& failure) {
    return Error{EINVAL, std::string("read (") + failure.what() + ")", path};
  }
}

}  // namespace

bool owner_is_gone(const FabricState& state) {
  return (state.spec.ephemeral || !state.complete) &&
         process_start_ticks(state.owner_pid) != state.owner_start_ticks;
}

Result<UniqueFd> take_fabric_lock() {
  auto made = make_directories();
  if (!made) return made.error();
  UniqueFd lock(open(kLockFile, O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock.valid()) return errno_error("open", kLockFile);
  // Bounded: a command that hangs while it holds the lock should not make others hang in silence.
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return errno_error("lock", kLockFile);
    if (std::chrono::steady_clock::now() > deadline) {
      return Error{ETIMEDOUT, "wait for another fabric command, lock", kLockFile};
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return lock;
}

Result<void> write_state(const FabricState& state) {
  auto made = make_directories();
  if (!made) return made.error();
  std::string temporary = temporary_path_of(state.spec.name);
  {
    std::ofstream file(temporary, std::ios::trunc);
    file << to_text(state) << std::flush;
    if (!file) return errno_error("write", temporary);
  }
  std::string path = path_of(state.spec.name);
  if (rename(temporary.c_str(), path.c_str()) != 0) return errno_error("write", path);
  return {};
}

Result<FabricState> read_state(const std::string& name) {
  std::string path = path_of(name);
  errno = 0;
  std::ifstream file(path);
  if (!file) return Error{errno != 0 ? errno : EIO, "open", path};
  std::ostringstream text;
  text << file.rdbuf();
  auto state = from_text(text.str(), path);
  if (state && state->spec.name != name) return Error{EINVAL, "read (another fabric's name)", path};
  return state;
}

Result<void> remove_state(const std::string& name) {
  for (const std::string& path : {path_of(name), temporary_path_of(name)}) {
    if (unlink(path.c_str()) != 0 && errno != ENOENT) return errno_error("remove", path);
  }
  return {};
}

std::vector<std::string> names_with_state() {
  std::vector<std::string> names;
  std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(kStateDirectory), closedir);
  if (!directory) return names;
  const std::string suffix = kSuffix;
  while (const dirent* entry = readdir(directory.get())) {
    std::string file = entry->d_name;
    if (file.size() <= suffix.size() || !file.ends_with(suffix)) continue;
    std::string name = file.substr(0, file.size() - suffix.size());
    if (valid_fabric_name(name)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace erar
