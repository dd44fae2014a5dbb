// FrameMaker: what a rank may be met with, chosen by the bytes of a history.
#pragma once

#include <cstdint>

#include "core/protocol/start.h"
#include "core/session/native_step.h"
#include "tests/fuzz/history.h"
#include "tests/fuzz/judge.h"

namespace erar::fuzz {

// Whole words.
void fill(std::uint8_t* to, std::uint32_t bytes, std::uint32_t seed);
// Makes the checksum right for what the frame says now, if it is long enough to say anything.
void seal(Bytes& frame);

// Reads configuration, slots and segment states only; both references must outlive it.
class FrameMaker {
 public:
  FrameMaker(const NativeMemory& memory, Reader& reader)
      : memory_(memory), config_(*memory.config), reader_(reader) {}

  // The next operation of some slot.
  erar_start start();
  // Of any type for any operation that may meet this rank; hop and length are right for it.
  Bytes made_frame();
  // The first segment of a block that is not final, so that operations come to their end.
  Bytes sum_frame();
  Bytes raw_frame();
  // Up to three changes; the checksum is made right after them, or is not.
  Bytes changed(Bytes frame);

 private:
  [[nodiscard]] const erar_operation& operation(std::uint32_t number) const {
    return memory_.operations[number % ERAR_SLOTS];
  }
  [[nodiscard]] Bytes frame_of(const Header& header, std::uint32_t seed) const;
  void place_segment(Header& header, std::uint32_t offset) const;

  const NativeMemory& memory_;
  const erar_config& config_;
  Reader& reader_;
};

}  // namespace erar::fuzz
