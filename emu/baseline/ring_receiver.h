// RingReceiver: receives a plan's stream from the predecessor and reduces what is to be reduced.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/unique_fd.h"
#include "emu/baseline/reduce_kernel.h"
#include "emu/baseline/ring_plan.h"

namespace erar {

class RingReceiver {
 public:
  // `socket` outlives the receiver; `peer` names the predecessor in errors.
  RingReceiver(const UniqueFd& socket, std::string peer);

  void start(const RingPlan& plan, const OperationHeader& header, const Reducer& reducer);

  // One call into the kernel. False if nothing has arrived. Error: the connection ended, or the
  // predecessor's header differs from ours.
  Result<bool> try_receive();

  // Bytes after the header that are final here: reduced, or received into place.
  [[nodiscard]] std::size_t usable() const { return received_ - header_received_ - unreduced_; }
  [[nodiscard]] bool done() const { return received_ == total_; }

  [[nodiscard]] std::uint64_t bytes_received() const { return bytes_received_; }
  [[nodiscard]] std::uint64_t calls() const { return calls_; }

 private:
  static constexpr std::size_t kMaxParts = 8;

  struct Landing {
    std::byte* data;
    std::size_t bytes;
  };

  std::size_t collect(std::array<iovec, kMaxParts>& parts);
  Result<void> take(std::size_t bytes);
  Landing landing_place();
  void reduce_arrived();
  [[nodiscard]] Result<void> check_header() const;

  const UniqueFd& socket_;
  std::string peer_;
  std::vector<std::byte> stage_;

  const RingPlan* plan_ = nullptr;
  OperationHeader expected_;
  OperationHeader header_;
  Reducer reducer_;
  std::size_t element_bytes_ = 1;
  std::size_t total_ = 0;
  std::size_t received_ = 0;  // of the stream, header included
  std::size_t header_received_ = 0;
  std::size_t unreduced_ = 0;  // bytes at the begin of the landing place
  SegmentCursor reduce_at_;
  SegmentCursor receive_at_;

  std::uint64_t bytes_received_ = 0;
  std::uint64_t calls_ = 0;
};

}  // namespace erar
