// The TCP baseline as a Backend: memory, the plan of each operation, counters.
#include "emu/baseline/tcp_ring.h"

#include <fmt/format.h>

#include <sys/mman.h>

#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "emu/baseline/reduce_kernel.h"
#include "emu/baseline/ring_link.h"
#include "emu/baseline/ring_plan.h"
#include "emu/baseline/ring_transfer.h"

namespace erar {
namespace {

// Anonymous memory, every page of it present: a page fault costs more than reducing the page.
class Mapping {
 public:
  static Result<Mapping> open(std::size_t bytes) {
    void* address =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address == MAP_FAILED) return errno_error("map memory of bytes", std::to_string(bytes));
    Mapping mapping(address, bytes);
    ::madvise(address, bytes, MADV_HUGEPAGE);  // fewer TLB misses; without them it works as well
    std::memset(address, 0, bytes);
    return mapping;
  }

  Mapping(Mapping&& other) noexcept
      : address_(std::exchange(other.address_, nullptr)), bytes_(other.bytes_) {}
  Mapping& operator=(Mapping&&) = delete;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (address_ != nullptr) ::munmap(address_, bytes_);
  }

  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(address_); }

 private:
  Mapping(void* address, std::size_t bytes) : address_(address), bytes_(bytes) {}

  void* address_;
  std::size_t bytes_;
};

// What cannot be done is refused before anything is sent; ranks that call alike are refused alike.
Result<void> check(const Reduction& reduction) {
  if (reduction.compressed) return refusal("tcp: compressed reductions are not supported");
  const double factor = reduction.pre_scale;
  if (factor == 1) return {};
  const std::string what = fmt::format("tcp: pre_scale {}", factor);
  if (reduction.op != ReduceOp::kSum) {
    return refusal(what + " is for sums, not for " + std::string(name_of(reduction.op)));
  }
  if (!std::isfinite(factor)) return refusal(what + " is not finite");
  if (!is_float(reduction.type) && factor != std::trunc(factor)) {
    return refusal(what + " is no whole number, as " + std::string(name_of(reduction.type)) +
                   " wants");
  }
  return {};
}

class TcpRing final : public Backend {
 public:
  explicit TcpRing(const RingEndpoint& endpoint) : rank_(endpoint.rank), ranks_(endpoint.ranks) {}

  // Of one rank alone there is no link.
  void connect(RingLink link, std::uint64_t timeout_ns) {
    transfer_.emplace(std::move(link), rank_, ranks_, timeout_ns);
  }

  Result<std::span<std::byte>> allocate(std::size_t bytes) override {
    if (bytes == 0) return std::span<std::byte>();
    auto mapping = Mapping::open(bytes);
    if (!mapping) return mapping.error();
    mappings_.push_back(std::move(*mapping));
    return std::span<std::byte>(mappings_.back().data(), bytes);
  }

  Result<void> allreduce(const void* input, void* output, std::size_t count,
                         const Reduction& reduction) override {
    if (auto checked = check(reduction); !checked) return checked;
    const DataType type = reduction.type;
    // Scaled values need a place of their own, from where they may be sent: the output, in which
    // the ring then reduces in place.
    if (reduction.pre_scale != 1) {
      scale(type, output, input, count, reduction.pre_scale);
      input = output;
    }
    if (!transfer_) {
      if (count > 0 && input != output) std::memcpy(output, input, count * size_of(type));
      return {};
    }
    plan_allreduce(plan_, rank_, ranks_, static_cast<const std::byte*>(input),
                   static_cast<std::byte*>(output), count, size_of(type));
    const unsigned divisor = reduction.op == ReduceOp::kAverage ? ranks_ : 1;
    return transfer_->run(plan_, OperationHeader(++sequence_, count, reduction),
                          {combine_kernel(type, reduction.op), type, divisor});
  }

  std::vector<std::pair<std::string, std::uint64_t>> counters() override {
    if (!transfer_) return {};
    const RingSender& sender = transfer_->sender();
    const RingReceiver& receiver = transfer_->receiver();
    return {{"bytes_sent", sender.bytes_sent()},
            {"bytes_received", receiver.bytes_received()},
            {"poll_calls", transfer_->poll_calls()},
            {"send_calls", sender.calls()},
            {"recv_calls", receiver.calls()}};
  }

 private:
  const unsigned rank_;
  const unsigned ranks_;
  std::vector<Mapping> mappings_;
  std::optional<RingTransfer> transfer_;
  RingPlan plan_;
  std::uint32_t sequence_ = 0;
};

}  // namespace

Result<std::unique_ptr<Backend>> open_tcp_backend(const RingEndpoint& endpoint,
                                                  const TcpOptions& options) {
  if (endpoint.ranks == 0 || endpoint.rank >= endpoint.ranks) {
    return Error{EINVAL, "place in the ring",
                 "rank " + std::to_string(endpoint.rank) + " of " + std::to_string(endpoint.ranks)};
  }
  auto ring = std::make_unique<TcpRing>(endpoint);
  if (endpoint.ranks > 1) {
    auto link = open_ring_link(endpoint, options);
    if (!link) return link.error();
    ring->connect(std::move(*link), options.timeout_ns);
  }
  return std::unique_ptr<Backend>(std::move(ring));
}

}  // namespace erar
