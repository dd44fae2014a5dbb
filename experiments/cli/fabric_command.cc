// `erar fabric up|down|list`.
#include "experiments/cli/fabric_command.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>

#include "emu/netns/fabric.h"
#include "emu/netns/layout.h"
#include "emu/netns/state_file.h"
#include "experiments/cli/privilege.h"
#include "experiments/cli/reporting.h"

namespace erar::cli {
namespace {

struct UpOptions {
  FabricSpec spec;
  std::string kind = "ring";
  std::string offloads;  // empty: not given
};

int fabric_up(const UpOptions& options) {
  if (!have_root()) return 1;
  FabricSpec spec = options.spec;
  auto kind = parse_fabric_kind(options.kind);
  if (!kind) return complain(kind.error(), 2);
  spec.kind = *kind;
  spec.offloads = options.offloads.empty() ? !spec.faults : options.offloads == "on";
  auto checked = check_fabric_spec(spec);
  if (!checked) return complain(checked.error(), 2);
  auto fabric = Fabric::up(spec);
  if (!fabric) return complain(fabric.error(), 1);
  fmt::print("fabric {}: {} of {} ranks, MTU {}, namespaces {} to {}{}\n", spec.name,
             name_of(spec.kind), spec.ranks, spec.mtu, fabric->rank_namespace(0),
             fabric->rank_namespace(spec.ranks - 1), spec.faults ? ", with fault boxes" : "");
  return 0;
}

int fabric_down(const std::string& name) {
  if (!have_root()) return 1;
  auto removed = Fabric::down(name);
  if (!removed) return complain(removed.error(), 1);
  return 0;
}

std::string state_text(const FabricState& state) {
  if (!state.complete) return "incomplete";
  if (!state.spec.ephemeral) return state.spec.faults ? "up, with fault boxes" : "up";
  if (owner_is_gone(state)) return "orphan";
  return fmt::format("up while process {} runs", state.owner_pid);
}

int fabric_list() {
  const char* format = "{:<24}  {:<6}  {:>5}  {:>5}  {}\n";
  fmt::print(fmt::runtime(format), "name", "kind", "ranks", "mtu", "state");
  for (const std::string& name : names_with_state()) {
    auto state = read_state(name);
    if (state) {
      fmt::print(fmt::runtime(format), name, name_of(state->spec.kind), state->spec.ranks,
                 state->spec.mtu, state_text(*state));
    } else if (state.error().code != ENOENT) {  // ENOENT: removed since we looked
      fmt::print(fmt::runtime(format), name, "?", "?", "?", "unreadable state file");
    }
  }
  return 0;
}

void add_up(CLI::App& fabric, int& exit_status) {
  auto options = std::make_shared<UpOptions>();
  CLI::App* up = fabric.add_subcommand("up", "Make a fabric: one network namespace per rank");
  up->add_option("--name", options->spec.name, "Name: 1 to 24 of a-z, 0-9 and '-'")->required();
  up->add_option("--kind", options->kind, "How the ranks are joined")
      ->check(CLI::IsMember({"ring", "bridge", "switch"}))
      ->required();
  up->add_option("--ranks", options->spec.ranks, "Number of ranks")
      ->check(CLI::Range(2, 64))
      ->required();
  up->add_option("--mtu", options->spec.mtu, "MTU of all links; native XDP takes up to 3506")
      ->check(CLI::Range(576, 65535))
      ->capture_default_str();
  up->add_option("--queues", options->spec.queues, "Queues of each NIC; 0: one per CPU, at most 8")
      ->check(CLI::Range(0, 64))
      ->capture_default_str();
  up->add_option("--offloads", options->offloads,
                 "TSO, GSO, GRO and checksum offloads (default on; off with --faults)")
      ->check(CLI::IsMember({"on", "off"}));
  up->add_flag("--faults", options->spec.faults,
               "A fault box in every rank's link, for erar bench's --loss and the like");
  up->callback([options, &exit_status] { exit_status = fabric_up(*options); });
}

void add_down(CLI::App& fabric, int& exit_status) {
  auto name = std::make_shared<std::string>();
  CLI::App* down = fabric.add_subcommand("down", "End what runs in a fabric and remove it");
  down->add_option("name", *name, "Name of the fabric")->required();
  down->callback([name, &exit_status] { exit_status = fabric_down(*name); });
}

}  // namespace

void add_fabric_command(CLI::App& app, int& exit_status) {
  CLI::App* fabric = app.add_subcommand("fabric", "Make, remove and list emulated networks");
  fabric->require_subcommand(1);
  add_up(*fabric, exit_status);
  add_down(*fabric, exit_status);
  CLI::App* list = fabric->add_subcommand("list", "List the fabrics of this machine");
  list->callback([&exit_status] { exit_status = fabric_list(); });
}

}  // namespace erar::cli
