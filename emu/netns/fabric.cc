// Fabrics: when what is built, kept, reclaimed and removed.
#include "emu/netns/fabric.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "emu/netns/builder.h"
#include "emu/netns/fault_boxes.h"
#include "emu/netns/layout.h"
#include "emu/netns/processes.h"
#include "emu/netns/state_file.h"
#include "emu/netns/xdp_switch.h"

namespace erar {
namespace {

// The state file goes last: as long as anything is left, it says so.
Result<void> remove_fabric(const std::string& name, int lock_fd) {
  auto removed = remove_namespaces(existing_namespaces(name), lock_fd);
  if (!removed) return removed;
  return remove_state(name);
}

bool has_state(const std::string& name) {
  auto state = read_state(name);
  return state || state.error().code != ENOENT;
}

// Fabrics of processes that were killed before they could remove them. One that resists must not
// keep others from being made; it stays in the list.
void reclaim_orphans(int lock_fd) {
  for (const std::string& name : names_with_state()) {
    auto state = read_state(name);
    if (state && owner_is_gone(*state)) (void)remove_fabric(name, lock_fd);
  }
}

Result<void> make_room(const std::string& name, int lock_fd) {
  auto state = read_state(name);
  if (state && state->complete) {
    if (!state->spec.ephemeral) return Error{EEXIST, "make fabric", name};
    bool living = state->owner_pid != getpid() && !owner_is_gone(*state);
    if (living) {
      return Error{EEXIST, fmt::format("make fabric (process {} uses it)", state->owner_pid), name};
    }
  }
  return remove_fabric(name, lock_fd);
}

// Ranks of a command that has just been killed are gone in a moment.
bool stay_inhabited(const std::vector<std::string>& namespaces) {
  for (int look = 0; look < 20; ++look) {
    if (processes_in(namespaces).empty()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

Result<void> build(const FabricSpec& spec, int lock_fd) {
  auto built = build_network(spec, lock_fd);
  if (!built) return built;
  if (spec.faults) {
    auto attached = FaultBoxes::attach(spec);
    if (!attached) return attached.error();
  }
  if (spec.kind == FabricKind::kSwitch) return attach_xdp_switch(spec);
  return {};
}

}  // namespace

Result<Fabric> Fabric::up(const FabricSpec& spec) {
  auto checked = check_fabric_spec(spec);
  if (!checked) return checked.error();
  auto lock = take_fabric_lock();
  if (!lock) return lock.error();
  reclaim_orphans(lock->get());
  auto room = make_room(checked->name, lock->get());
  if (!room) return room.error();

  // The file comes before the first namespace: if we are killed, the next command knows what to
  // look for.
  FabricState state{*checked, false, getpid(), process_start_ticks(getpid())};
  auto result = write_state(state);
  if (result) result = build(*checked, lock->get());
  if (result) {
    state.complete = true;
    result = write_state(state);
  }
  if (!result) {
    (void)remove_fabric(checked->name, lock->get());  // the first error is the one to tell
    return result.error();
  }
  return Fabric(*checked);
}

Result<Fabric> Fabric::open(const std::string& name) {
  if (!valid_fabric_name(name)) return Error{ENOENT, "open fabric", name};
  auto lock = take_fabric_lock();
  if (!lock) return lock.error();
  auto found = read_state(name);
  reclaim_orphans(lock->get());
  auto state = read_state(name);
  if (!state) {
    if (state.error().code != ENOENT) return state.error();
    if (!found || found->complete) return Error{ENOENT, "open fabric", name};
    return refusal(fmt::format(
        "fabric {} was left half-made by a killed command, and has been removed", name));
  }
  if (!state->complete) {
    return refusal(
        fmt::format("fabric {0} is incomplete: remove it with erar fabric down {0}", name));
  }
  return Fabric(state->spec);
}

Result<std::vector<FabricSpec>> Fabric::list() {
  std::vector<FabricSpec> specs;
  for (const std::string& name : names_with_state()) {
    auto state = read_state(name);
    if (state) {
      specs.push_back(state->spec);
    } else if (state.error().code != ENOENT) {  // ENOENT: removed since we looked
      return state.error();
    }
  }
  return specs;
}

Result<void> Fabric::down(const std::string& name) {
  if (!valid_fabric_name(name)) return Error{ENOENT, "remove fabric", name};
  auto lock = take_fabric_lock();
  if (!lock) return lock.error();
  bool known = has_state(name) || !existing_namespaces(name).empty();
  reclaim_orphans(lock->get());
  if (!known) return Error{ENOENT, "remove fabric", name};
  return remove_fabric(name, lock->get());
}

std::string Fabric::rank_namespace(unsigned rank) const {
  return rank_namespace_name(spec_.name, rank);
}

RingEndpoint Fabric::endpoint(unsigned rank) const { return endpoint_of(spec_, rank); }

std::uint32_t Fabric::rank_ipv4(unsigned rank) const { return rank_ipv4_of(spec_, rank); }

Result<void> Fabric::set_xdp_switch(bool on) {
  if (spec_.kind != FabricKind::kSwitch) return {};
  auto lock = take_fabric_lock();
  if (!lock) return lock.error();
  return on ? attach_xdp_switch(spec_) : detach_xdp_switch(spec_);
}

Result<void> Fabric::restore() {
  auto lock = take_fabric_lock();
  if (!lock) return lock.error();
  std::vector<std::string> namespaces;
  for (unsigned rank = 0; rank < spec_.ranks; ++rank) namespaces.push_back(rank_namespace(rank));
  if (auto ended = end_orphans_in(namespaces); !ended) return ended;
  if (stay_inhabited(namespaces)) return {};
  if (auto reset = reset_receive_offload(spec_, lock->get()); !reset) return reset;
  if (spec_.faults) {
    auto boxes = FaultBoxes::open(spec_);
    if (!boxes) return boxes.error();
    if (auto cleared = boxes->set(Faults{}); !cleared) return cleared;
  }
  return spec_.kind == FabricKind::kSwitch ? attach_xdp_switch(spec_) : Result<void>();
}

}  // namespace erar
