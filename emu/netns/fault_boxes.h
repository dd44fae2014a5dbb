// The fault boxes of a fabric, one in every rank's link: their places, their attachment, all at
// once.
#pragma once

#include <vector>

#include "bpf/host/fault_box.h"
#include "bpf/host/faults.h"
#include "core/result.h"
#include "emu/netns/fabric.h"

namespace erar {

// Ring: box r is in the link from rank r to the next, and both ways are subject: data and what TCP
// sends back. Bridge, switch: box r is before rank r's port, and what rank r sends is subject. So
// each frame from a rank to its neighbour meets faults once, on every kind of fabric.
class FaultBoxes {
 public:
  // Loads and attaches all of them, in the middle namespace.
  static Result<FaultBoxes> attach(const FabricSpec& spec);
  // Those of a fabric that is up; one that was built without faults is refused.
  static Result<FaultBoxes> open(const FabricSpec& spec);

  // See FaultBox::set(). The boxes' decisions differ by their numbers.
  Result<void> set(const Faults& faults);
  // Sums over all boxes.
  [[nodiscard]] Result<FaultCounts> counts() const;

  [[nodiscard]] std::size_t size() const { return boxes_.size(); }
  [[nodiscard]] FaultBox& box(unsigned rank) { return boxes_[rank]; }

 private:
  explicit FaultBoxes(FabricSpec spec) : spec_(std::move(spec)) {}
  static Result<FaultBoxes> make(const FabricSpec& spec, bool attach);

  FabricSpec spec_;
  std::vector<FaultBox> boxes_;
};

}  // namespace erar
