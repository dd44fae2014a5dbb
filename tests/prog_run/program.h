// The XDP program run on one frame by BPF_PROG_TEST_RUN, in a fabric of the test program's own.
#pragma once

#include <cstddef>
#include <vector>

#include "core/endpoint.h"
#include "core/result.h"
#include "core/session/native_step.h"
#include "sim/ring/memory_rank.h"

namespace erar {

// Rank 1 of a fabric of four (tests/fixtures), whose namespace the test program has entered.
const RingEndpoint& program_endpoint();

struct RunOutcome {
  int action = -1;
  sim::Frame frame;
};

// As if the frame had come from the NIC: ingress_ifindex is the attached interface, so the program
// cannot take it for a kick, unless it comes `from_process`. Errors end the test.
RunOutcome run_program(int program_fd, const sim::Frame& frame, bool from_process);
// What the program returns for the step's verdict.
int action_of(Verdict verdict);

// A loaded program's arrays as this process sees them, for as long as the object lives.
class ProgramMaps {
 public:
  // segment_bytes, arena_segments: of the configuration it was loaded with.
  explicit ProgramMaps(const erar_config& config) : config_(config) { memory_.config = &config_; }
  ~ProgramMaps();
  ProgramMaps(const ProgramMaps&) = delete;
  ProgramMaps& operator=(const ProgramMaps&) = delete;
  Result<void> map(int program_fd);

  // Without counters, completions and a mark: no step runs through it.
  [[nodiscard]] NativeMemory& memory() { return memory_; }

 private:
  struct Mapping {
    void* memory;
    std::size_t bytes;
  };
  Result<void> map_one(int map_fd);

  erar_config config_;
  NativeMemory memory_;
  std::vector<Mapping> mappings_;
};

}  // namespace erar
