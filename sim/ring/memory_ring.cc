// SPDX-License-Identifier: BSD-2-Clause
// MemoryRing: links as queues of frames and a seeded choice of the next delivery.
#include "sim/ring/memory_ring.h"

#include <algorithm>
#include <utility>

#include "core/session/ring_config.h"

namespace erar::sim {

erar_config memory_ring_config(unsigned rank, unsigned ranks, unsigned mtu,
                               std::uint32_t arena_segments, std::uint32_t token, unsigned window) {
  RingEndpoint endpoint;
  endpoint.rank = rank;
  endpoint.ranks = ranks;
  endpoint.mtu = mtu;
  endpoint.window = window;
  endpoint.source_mac = {0x02, 0, 0, 0, 1, static_cast<std::uint8_t>(rank)};
  endpoint.next_mac = {0x02, 0, 0, 0, 2, static_cast<std::uint8_t>((rank + 1) % ranks)};
  endpoint.source_ipv4 = 0x0a4e0001U + (rank << 8);
  endpoint.next_ipv4 = 0x0a4e0002U + (rank << 8);
  return *make_ring_config(endpoint, arena_segments, 1, token);
}

MemoryRing::MemoryRing(const MemoryRingOptions& options)
    : links_(options.ranks), random_(options.seed), reorder_(options.reorder) {
  for (unsigned rank = 0; rank < options.ranks; rank++) {
    ranks_.push_back(std::make_unique<MemoryRank>(
        memory_ring_config(rank, options.ranks, options.mtu, options.arena_segments, 0x5eed)));
  }
}

void MemoryRing::send(unsigned from_rank, Frame frame) {
  auto& link = links_[(from_rank + 1) % ranks()];
  link.push_back(std::move(frame));
  most_frames_ = std::max(most_frames_, link.size());
}

void MemoryRing::start(unsigned rank, const erar_start& start) {
  const std::uint32_t frames = ranks_[rank]->start(start);
  for (std::uint32_t i = 0; i < frames; i++) {
    Frame frame;
    if (ranks_[rank]->kick(start.number, frame) == Verdict::kForward) send(rank, std::move(frame));
  }
}

bool MemoryRing::deliver_one() {
  std::vector<unsigned> busy;
  for (unsigned rank = 0; rank < ranks(); rank++)
    if (!links_[rank].empty()) busy.push_back(rank);
  if (busy.empty()) return false;
  const unsigned rank = busy[random_() % busy.size()];
  auto& link = links_[rank];
  const auto chosen =
      link.begin() + static_cast<std::ptrdiff_t>(reorder_ ? random_() % link.size() : 0);
  Frame frame = std::move(*chosen);
  link.erase(chosen);
  if (change_) change_(frame);
  if (ranks_[rank]->receive(frame) == Verdict::kForward) send(rank, std::move(frame));
  return true;
}

std::size_t MemoryRing::frames_under_way() const {
  std::size_t frames = 0;
  for (const auto& link : links_) frames += link.size();
  return frames;
}

}  // namespace erar::sim
