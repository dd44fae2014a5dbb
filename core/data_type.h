// What can be reduced: element types, operations, and the options of one reduction.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace erar {

// Names as NCCL's; the numbers are our own.
enum class DataType : std::uint8_t {
  kInt8,
  kUint8,
  kInt32,
  kUint32,
  kInt64,
  kUint64,
  kFloat16,   // IEEE 754 binary16
  kFloat32,   // IEEE 754 binary32
  kFloat64,   // IEEE 754 binary64
  kBfloat16,  // the upper half of a binary32
};
inline constexpr std::array kDataTypes = {
    DataType::kInt8,    DataType::kUint8,   DataType::kInt32,   DataType::kUint32,
    DataType::kInt64,   DataType::kUint64,  DataType::kFloat16, DataType::kFloat32,
    DataType::kFloat64, DataType::kBfloat16};

enum class ReduceOp : std::uint8_t { kSum, kAverage, kMin, kMax };
inline constexpr std::array kReduceOps = {ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kMin,
                                          ReduceOp::kMax};

constexpr std::size_t size_of(DataType type) {
  switch (type) {
    case DataType::kInt8:
    case DataType::kUint8:
      return 1;
    case DataType::kFloat16:
    case DataType::kBfloat16:
      return 2;
    case DataType::kInt32:
    case DataType::kUint32:
    case DataType::kFloat32:
      return 4;
    case DataType::kInt64:
    case DataType::kUint64:
    case DataType::kFloat64:
      return 8;
  }
  return 0;
}

constexpr bool is_float(DataType type) {
  return type == DataType::kFloat16 || type == DataType::kBfloat16 || type == DataType::kFloat32 ||
         type == DataType::kFloat64;
}

constexpr std::string_view name_of(DataType type) {
  constexpr std::array<std::string_view, kDataTypes.size()> kNames = {
      "int8",   "uint8",   "int32",   "uint32",  "int64",
      "uint64", "float16", "float32", "float64", "bfloat16"};
  return kNames[static_cast<std::size_t>(type)];
}

constexpr std::string_view name_of(ReduceOp op) {
  constexpr std::array<std::string_view, kReduceOps.size()> kNames = {"sum", "avg", "min", "max"};
  return kNames[static_cast<std::size_t>(op)];
}

// What becomes of a NaN or an infinity in the input of a float reduction.
enum class NotFinite : std::uint8_t {
  kRefuse,     // an error that all ranks raise alike, naming rank and index of the first
  kPropagate,  // the element is NaN on every rank; with min and max an infinity is a value
};

// One reduction; equal on all ranks. What a backend cannot do it refuses with an error.
struct Reduction {
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  // Every rank's values are multiplied by it first; sum only. The products of float64 are rounded
  // to it, those of other floats to float32 once they are a double (and over TCP then to the type);
  // integers want a whole number and wrap.
  double pre_scale = 1;
  NotFinite not_finite = NotFinite::kRefuse;
  // Half the traffic: 16 bits per element on the wire, with error feedback. float32, float16 and
  // bfloat16, sum and average.
  bool compressed = false;
};

}  // namespace erar
