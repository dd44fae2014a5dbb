// Retention: areas and the turns that used them last.
#include "core/collective/retention.h"

#include <cassert>

namespace erar {

unsigned Retention::take_area() {
  unsigned area = 0;
  // A turn that nothing was begun after says nothing about itself.
  while (area < kAreas &&
         (uses_[area].in_work || (uses_[area].turn != 0 && uses_[area].turn >= ended_)))
    area++;
  assert(area < kAreas);
  for (const std::uint32_t operation : uses_[area].operations) device_.close(operation);
  uses_[area].operations.clear();
  uses_[area].in_work = true;
  return area;
}

unsigned Retention::take_other(Pair& pair, std::uint32_t operation) {
  const unsigned taken = pair.next;
  pair.next = 1 - taken;
  device_.close(pair.operations[taken]);
  pair.operations[taken] = operation;
  return taken;
}

void Retention::serve(unsigned area, std::uint32_t operation) {
  uses_[area].operations.push_back(operation);
}

void Retention::forget_all() {
  for (Use& use : uses_) {
    for (const std::uint32_t operation : use.operations) device_.close(operation);
    use = {};
  }
  ended_ = begun_;
}

}  // namespace erar
