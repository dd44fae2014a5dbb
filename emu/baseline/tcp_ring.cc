// The TCP baseline as a Backend: memory, the plan of each operation, counters.
#include "emu/baseline/tcp_ring.h"

#include <sys/mman.h>

#include <cstring>
#include <optional>
#include <utility>

#include "emu/baseline/ring_link.h"
#include "emu/baseline/ring_plan.h"
#include "emu/baseline/ring_transfer.h"
#include "emu/baseline/sum_kernel.h"

namespace erar {
namespace {

// Anonymous memory, every page of it present: a page fault costs more than summing the page.
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
    const DataType type = reduction.type;
    const ReduceOp op = reduction.op;
    const std::size_t element_bytes = size_of(type);
    if (!transfer_) {
      if (count > 0 && input != output) std::memcpy(output, input, count * element_bytes);
      return {};
    }
    OperationHeader header;
    header.sequence = ++sequence_;
    header.count = count;
    header.type = static_cast<std::uint32_t>(type);
    header.op = static_cast<std::uint32_t>(op);
    plan_allreduce(plan_, rank_, ranks_, static_cast<const std::byte*>(input),
                   static_cast<std::byte*>(output), count, element_bytes);
    return transfer_->run(plan_, header, sum_kernel(type), element_bytes);
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
