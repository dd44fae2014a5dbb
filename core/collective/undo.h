// Undo: what a result buffer held before, for calls that end with an error after all.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>

namespace erar {

// Buffers are written front to back.
class Undo {
 public:
  void clear() { kept_ = 0; }
  // The next `bytes` of the buffer of all_bytes are about to be overwritten.
  void keep(const std::byte* at, std::size_t bytes, std::size_t all_bytes) {
    if (room_ < all_bytes) {
      auto larger = std::make_unique_for_overwrite<std::byte[]>(all_bytes);
      if (kept_ != 0) std::memcpy(larger.get(), bytes_.get(), kept_);
      bytes_ = std::move(larger);
      room_ = all_bytes;
    }
    if (bytes != 0) std::memcpy(bytes_.get() + kept_, at, bytes);
    kept_ += bytes;
  }
  void restore(std::byte* buffer) {
    if (kept_ != 0) std::memcpy(buffer, bytes_.get(), kept_);
    kept_ = 0;
  }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  std::size_t room_ = 0;
  std::size_t kept_ = 0;
};

}  // namespace erar
