// Backend: one rank's end of a group of ranks that aggregate. eRAR and every baseline implement it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/data_type.h"
#include "core/endpoint.h"
#include "core/result.h"

namespace erar {

// Not thread-safe: one thread per Backend at a time. All ranks call the same operations in the same
// order with equal arguments. Constructors run inside the rank's network namespace.
class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  // Memory that the backend can aggregate without copying it first ("registered"). 64-byte aligned
  // at least, zeroed, lives as long as the backend. Error: no memory left in what open() reserved.
  virtual Result<std::span<std::byte>> allocate(std::size_t bytes) = 0;

  // Element-wise reduction of `count` elements over all ranks; every rank gets the whole result.
  // input and output hold count elements each; they are the same buffer or do not overlap. Integer
  // sums wrap around; averages truncate towards zero. On error the output's content is unspecified;
  // eRAR then leaves ordinary memory that was reduced in place as it was. eRAR's errors that
  // concern all ranks (differing arguments, a NaN) are the same on all of them and leave the
  // backend usable.
  virtual Result<void> allreduce(const void* input, void* output, std::size_t count,
                                 const Reduction& reduction) = 0;

  // How long the last allreduce waited for the ranks to agree on scales before its first data
  // could leave; 0 where there is nothing to agree on.
  [[nodiscard]] virtual std::uint64_t agreement_ns() const { return 0; }

  // Named event counters since open(), for people; empty where a backend keeps none.
  virtual std::vector<std::pair<std::string, std::uint64_t>> counters() { return {}; }
};

}  // namespace erar
