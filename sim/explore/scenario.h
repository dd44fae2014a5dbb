// SPDX-License-Identifier: BSD-2-Clause
// Scenario: what an exhaustive exploration starts from and which faults it may add.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/protocol/operation.h"

namespace erar::sim {

// Operations are turns: a rank begins one when it has completed the one before.
struct Scenario {
  static constexpr unsigned kMaxRanks = 4;
  static constexpr unsigned kMaxOperations = 6;
  static constexpr unsigned kMaxSegments = 16;

  unsigned ranks = 2;
  unsigned segments = 2;  // of each operation
  unsigned operations = 1;
  unsigned window = 2;
  bool short_last = false;   // the last segment is shorter than the others
  bool split_kicks = false;  // frames arrive between opening and each kick, too

  // While a rank is in a step, another CPU of it does one more step, or its process opens an
  // operation or sends a segment again. Payloads are added as chunks, which can be interrupted.
  bool two_cpus = false;

  // Whether frames under way must carry what type and hop say, not only what is stored.
  bool check_frames = true;

  // Frames that links may lose, deliver twice; and resends of segments that are still under way.
  unsigned losses = 0;
  unsigned duplicates = 0;
  unsigned early_resends = 0;

  // Operation i uses memory i mod `areas`. Two is what Retention's pairs have; one is a rank that
  // forgets an operation as soon as it is complete there.
  unsigned areas = 2;
  bool same_slot = false;          // operation i+2 in the slot of i, else each in its own
  bool close_before_reuse = true;  // false: the slot stays open over other memory

  // States that only differ in which rank is called rank 0 are one, where all ranks are alike.
  bool rotations = true;
  std::size_t max_states = 40'000'000;

  // Whether turning the ring by a rank makes the same scenario of it. A step knows its rank by
  // where blocks begin and how far they have come, and blocks of equal length turn with the ranks.
  // The order in which one rank resumes parked frames does not turn, but that shows between two
  // kicks only. Frames that should not be are told by ranks' names.
  [[nodiscard]] bool can_rotate() const {
    return rotations && segments % ranks == 0 && !short_last && !split_kicks && !two_cpus &&
           check_frames;
  }

  [[nodiscard]] std::uint32_t number(unsigned operation) const {
    return ERAR_FIRST_OPERATION +
           (same_slot ? operation % 2 + operation / 2 * ERAR_SLOTS : operation);
  }
  [[nodiscard]] unsigned slots() const { return same_slot && operations > 2 ? 2 : operations; }
  [[nodiscard]] unsigned segment_bytes() const { return ERAR_CHUNK_BYTES * (short_last ? 2 : 1); }
  [[nodiscard]] unsigned payload_bytes(unsigned segment) const {
    return short_last && segment + 1 == segments ? ERAR_CHUNK_BYTES : segment_bytes();
  }
  [[nodiscard]] erar_combine combine() const {
    erar_combine combine{};
    combine.word_chunks = two_cpus ? 1 : 0;
    return combine;
  }
  [[nodiscard]] unsigned block_begin(unsigned block) const {
    return erar_block_begin(segments, ranks, block);
  }
  [[nodiscard]] unsigned block_of(unsigned segment) const {
    unsigned block = 0;
    while (block_begin(block + 1) <= segment) block++;
    return block;
  }
};

}  // namespace erar::sim
