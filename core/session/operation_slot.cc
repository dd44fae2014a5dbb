// Operation slots: the process's half of the agreement with steps on other CPUs (struct erar_mark).
#include "core/session/operation_slot.h"

#include <thread>

namespace erar {

void close_operation(NativeMemory& memory, std::uint32_t number) {
  erar_operation& slot = memory.operations[number % ERAR_SLOTS];
  if (slot.number != number || slot.open != ERAR_SLOT_OPEN) return;
  __atomic_store_n(&slot.phase, erar_phase_of(number, ERAR_SLOT_OVER), __ATOMIC_SEQ_CST);
  // A step takes microseconds, unless a hypervisor has taken its CPU away.
  for (unsigned cpu = 0; cpu < memory.mark_count; cpu++)
    while (__atomic_load_n(&memory.marks[cpu].operation, __ATOMIC_SEQ_CST) == erar_mark_of(number))
      std::this_thread::yield();
}

std::uint32_t open_operation(NativeMemory& memory, const erar_start& start) {
  erar_operation& slot = memory.operations[start.number % ERAR_SLOTS];
  close_operation(memory, slot.number);
  return erar_start_operation(&slot, memory.parking + start.number % ERAR_SLOTS * ERAR_PARK_PLACES,
                              memory.config, &start);
}

}  // namespace erar
