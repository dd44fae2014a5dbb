// The fault boxes of a fabric, in its middle namespace.
#include "emu/netns/fault_boxes.h"

#include <fmt/format.h>

#include "emu/netns/layout.h"
#include "emu/netns/namespace.h"

namespace erar {

Result<FaultBoxes> FaultBoxes::make(const FabricSpec& spec, bool attach) {
  FaultBoxes all(spec);
  auto made = in_namespace(middle_namespace_name(spec.name), [&]() -> Result<void> {
    for (unsigned rank = 0; rank < spec.ranks; ++rank) {
      const FaultBox::Place place{rank, box_port_a(rank), box_port_b(rank)};
      auto box = attach ? FaultBox::attach(place) : FaultBox::open(place);
      if (!box) return box.error();
      all.boxes_.push_back(*std::move(box));
    }
    return {};
  });
  if (!made) return made.error();
  return all;
}

Result<FaultBoxes> FaultBoxes::attach(const FabricSpec& spec) {
  auto all = make(spec, true);
  if (!all) return all;
  if (auto set = all->set(Faults{}); !set) return set.error();
  return all;
}

Result<FaultBoxes> FaultBoxes::open(const FabricSpec& spec) {
  if (!spec.faults) {
    return refusal(fmt::format("fabric {} has no fault boxes: make it with --faults", spec.name));
  }
  return make(spec, false);
}

Result<void> FaultBoxes::set(const Faults& faults) {
  erar_fault_settings settings = settings_of(faults);
  if (spec_.kind != FabricKind::kRing) settings.subject[ERAR_FROM_B] = 0;
  for (FaultBox& box : boxes_) {
    auto set = box.set(settings);
    if (!set) return set;
  }
  return {};
}

Result<FaultCounts> FaultBoxes::counts() const {
  FaultCounts sum;
  for (const FaultBox& box : boxes_) {
    auto counts = box.counts();
    if (!counts) return counts.error();
    sum += *counts;
  }
  return sum;
}

}  // namespace erar
