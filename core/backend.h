// Backend: one rank's end of a group of ranks that aggregate. eRAR and every baseline implement it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/endpoint.h"
#include "core/result.h"

namespace erar {

enum class DataType { kInt32, kFloat32 };
enum class ReduceOp { kSum };

constexpr std::size_t size_of(DataType type) {
  switch (type) {
    case DataType::kInt32:
    case DataType::kFloat32:
      return 4;
  }
  return 0;
}

constexpr const char* name_of(DataType type) {
  return type == DataType::kInt32 ? "int32" : "float32";
}

constexpr const char* name_of(ReduceOp) { return "sum"; }

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
  // input and output hold count elements each; they are the same buffer or do not overlap. On error
  // the output's content is unspecified unless the backend says more.
  virtual Result<void> allreduce(const void* input, void* output, std::size_t count, DataType type,
                                 ReduceOp op) = 0;

  // Named event counters since open(), for people; empty where a backend keeps none.
  virtual std::vector<std::pair<std::string, std::uint64_t>> counters() { return {}; }
};

}  // namespace erar
