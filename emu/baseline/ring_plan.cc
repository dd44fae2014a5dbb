// Lays out the byte streams of a ring allreduce.
#include "emu/baseline/ring_plan.h"

#include <algorithm>

namespace erar {
namespace {

// Chunks begin on a cache line, so that no line is reduced in two steps.
constexpr std::size_t kChunkAlignBytes = 64;

std::size_t chunk_elements(std::size_t count, unsigned ranks, std::size_t element_bytes) {
  const std::size_t align = kChunkAlignBytes / element_bytes;
  const std::size_t even = (count + ranks - 1) / ranks;
  return (even + align - 1) / align * align;
}

}  // namespace

void RingPlan::clear() {
  send.clear();
  reduce.clear();
  receive.clear();
  own_bytes = send_bytes = reduce_bytes = receive_bytes = 0;
}

// Empty segments (fewer elements than ranks) are left out: cursors never stand on one.
void RingPlan::add_send(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  send.push_back(bytes);
  send_bytes += bytes.size();
}

void RingPlan::add_reduce(const ReduceSegment& segment) {
  if (segment.bytes == 0) return;
  reduce.push_back(segment);
  reduce_bytes += segment.bytes;
}

void RingPlan::add_receive(std::span<std::byte> bytes) {
  if (bytes.empty()) return;
  receive.push_back(bytes);
  receive_bytes += bytes.size();
}

void plan_allreduce(RingPlan& plan, unsigned rank, unsigned ranks, const std::byte* input,
                    std::byte* output, std::size_t count, std::size_t element_bytes) {
  plan.clear();
  const std::size_t per_chunk = chunk_elements(count, ranks, element_bytes);
  const auto begin = [&](unsigned chunk) {
    return std::min(count, per_chunk * chunk) * element_bytes;
  };
  // In step k rank r sends chunk r - k, which it got in step k - 1, and receives chunk r - k - 1.
  const unsigned steps = 2 * (ranks - 1);
  const auto chunk_at = [&](unsigned step) { return (rank + 2 * ranks - step) % ranks; };
  for (unsigned step = 0; step < steps; ++step) {
    const unsigned out = chunk_at(step);
    plan.add_send({(step == 0 ? input : output) + begin(out), begin(out + 1) - begin(out)});
    if (step == 0) plan.own_bytes = plan.send_bytes;
    const unsigned in = chunk_at(step + 1);
    const std::size_t bytes = begin(in + 1) - begin(in);
    if (step < ranks - 1) {
      plan.add_reduce({input + begin(in), output + begin(in), bytes, step == ranks - 2});
    } else {
      plan.add_receive({output + begin(in), bytes});
    }
  }
}

}  // namespace erar
