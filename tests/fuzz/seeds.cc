// Seeds: each packet fixture at its rank, and short histories of all commands.
#include "tests/fuzz/seeds.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "core/protocol/wire.h"
#include "tests/fixtures/frame_fixtures.h"
#include "tests/fuzz/history.h"

namespace erar::fuzz {
namespace {

template <class Table>
std::uint8_t index_of(const Table& table, std::uint32_t value) {
  std::uint8_t index = 0;
  while (table[index] != value) index++;
  return index;
}

Bytes place(std::uint32_t ranks, std::uint32_t rank, std::uint32_t mtu) {
  return {index_of(kRanks, ranks), static_cast<std::uint8_t>(rank), index_of(kMtus, mtu)};
}

void add(Bytes& history, std::initializer_list<unsigned> bytes) {
  for (const unsigned byte : bytes) history.push_back(static_cast<std::uint8_t>(byte));
}

// Whole segments in slot 0 from the arena's first on; words are added and checked.
void open(Bytes& history, std::uint32_t segments, std::uint32_t segment_bytes) {
  add(history, {kOpen, 0, segments - 1, 0, segment_bytes / 64 - 1, 1});
}

// The headers as they are; behind them, the fuzzer writes the fixtures' payload itself.
void receive(Bytes& history, const Bytes& frame) {
  const auto given = static_cast<unsigned>(std::min<std::size_t>(frame.size(), 80));
  add(history, {kRawFrame, static_cast<unsigned>(frame.size() & 0xff),
                static_cast<unsigned>(frame.size() >> 8), given});
  history.insert(history.end(), frame.begin(), frame.begin() + given);
}

// Every kind of frame for every block, right, to an operation that is open and one that is not.
Bytes all_types(std::uint32_t ranks, std::uint32_t rank, std::uint32_t mtu) {
  Bytes history = place(ranks, rank, mtu);
  const std::uint32_t bytes = erar_segment_bytes(mtu);
  for (unsigned turn = 0; turn < 2; turn++) {
    for (unsigned kind = 0; kind < 5; kind++)
      for (unsigned block = 0; block < ranks; block++)
        add(history, {kMadeFrame, 130 - 130 % 5 + kind, 0, block, 0, 7, 0});
    open(history, 2 * ranks, bytes);
    for (unsigned i = 0; i < ranks; i++) add(history, {kKick, 0});
    for (unsigned kind = 0; kind < 5; kind++)
      for (unsigned block = 0; block < ranks; block++) {
        add(history, {kMadeFrame, kind, 0, block, 1, 9, 0});
        add(history, {kAgainFrame, 0, 0});
      }
    for (unsigned i = 0; i < 2 * ranks; i++) add(history, {kSumFrame, i, 0, 0});
    for (unsigned block = 0; block < ranks; block++) add(history, {kResend, 0, block, 0});
    add(history, {kAlive});
    for (unsigned block = 0; block < ranks; block++)
      add(history, {kMadeFrame, 2, 0, block, 0, 1, 0});
  }
  add(history, {kClose, 0, kAgainFrame, 0, 0});
  return history;
}

}  // namespace

std::map<std::string, Bytes> make_seeds() {
  std::map<std::string, Bytes> seeds;
  const std::uint32_t bytes = erar_segment_bytes(tests::kFixtureMtu);
  for (const tests::FrameFixture& fixture : tests::frame_fixtures()) {
    Bytes history = place(tests::kFixtureRanks, 1, tests::kFixtureMtu);
    open(history, tests::kFixtureSegments, bytes);
    sim::Frame frame = tests::fixture_frame();
    fixture.change(frame);
    receive(history, frame);
    seeds["fixture_" + fixture.name] = history;
  }
  seeds["types_2_ranks"] = all_types(2, 0, 122);
  seeds["types_3_ranks"] = all_types(3, 1, 122);
  seeds["types_4_ranks"] = all_types(4, 3, 250);
  seeds["types_5_ranks"] = all_types(5, 2, 186);
  return seeds;
}

}  // namespace erar::fuzz
