// GuardedRank: exact allocations, and poison over what no frame in hand has to do with.
#include "tests/fuzz/guarded_rank.h"

#include <sanitizer/asan_interface.h>

#include <cstring>

namespace erar::fuzz {
namespace {

constexpr std::size_t kTagBytes = ERAR_PARK_PLACES * sizeof(erar_parked);

}  // namespace

GuardedRank::GuardedRank(std::uint32_t segment_bytes, std::uint32_t arena_segments)
    : arena_segments_(arena_segments),
      arena_(new std::uint8_t[std::size_t{arena_segments} * segment_bytes]()),
      states_(new __u64[arena_segments]()),
      operations_(new erar_operation[ERAR_SLOTS]()),
      parked_payloads_(new std::uint8_t[std::size_t{kPlaces} * segment_bytes]()),
      parking_(new erar_parked[kPlaces]()),
      counters_(new std::uint64_t[ERAR_COUNTERS]()),
      completions_(new std::uint64_t(0)),
      heard_(new __u64[ERAR_MAX_RANKS]()),
      mark_(new erar_mark()) {
  config_.segment_bytes = segment_bytes;
  memory_.config = &config_;
  memory_.arena = arena_.get();
  memory_.states = states_.get();
  memory_.operations = operations_.get();
  memory_.parked_payloads = parked_payloads_.get();
  memory_.parking = parking_.get();
  memory_.counters = counters_.get();
  memory_.completions = completions_.get();
  memory_.heard = heard_.get();
  memory_.mark = mark_.get();
  memory_.marks = mark_.get();
  memory_.mark_count = 1;
  ASAN_POISON_MEMORY_REGION(arena_.get(), arena_bytes());
  ASAN_POISON_MEMORY_REGION(parked_payloads_.get(), parked_bytes());
  ASAN_POISON_MEMORY_REGION(parking_.get(), kPlaces * sizeof(erar_parked));
}

GuardedRank::~GuardedRank() {
  ASAN_UNPOISON_MEMORY_REGION(arena_.get(), arena_bytes());
  ASAN_UNPOISON_MEMORY_REGION(parked_payloads_.get(), parked_bytes());
  ASAN_UNPOISON_MEMORY_REGION(parking_.get(), kPlaces * sizeof(erar_parked));
}

void GuardedRank::reset(const erar_config& config) {
  guard();
  for (const std::uint32_t place : places_used_) {
    ASAN_UNPOISON_MEMORY_REGION(parked_payload(place), config_.segment_bytes);
    std::memset(parked_payload(place), 0, config_.segment_bytes);
    ASAN_POISON_MEMORY_REGION(parked_payload(place), config_.segment_bytes);
  }
  places_used_.clear();
  ASAN_UNPOISON_MEMORY_REGION(parking_.get(), kPlaces * sizeof(erar_parked));
  std::memset(parking_.get(), 0, kPlaces * sizeof(erar_parked));
  ASAN_POISON_MEMORY_REGION(parking_.get(), kPlaces * sizeof(erar_parked));
  std::memset(states_.get(), 0, arena_segments_ * sizeof(__u64));
  std::memset(counters_.get(), 0, ERAR_COUNTERS * sizeof(std::uint64_t));
  std::memset(heard_.get(), 0, ERAR_MAX_RANKS * sizeof(__u64));
  for (std::uint32_t i = 0; i < ERAR_SLOTS; i++) {
    operations_[i] = {};
    operations_[i].number = i;
  }
  *completions_ = 0;
  config_ = config;
}

void GuardedRank::guard() {
  for (const std::uint32_t index : segments_allowed_)
    ASAN_POISON_MEMORY_REGION(segment(index), config_.segment_bytes);
  for (const std::uint32_t place : places_allowed_) {
    ASAN_POISON_MEMORY_REGION(parked_payload(place), config_.segment_bytes);
    ASAN_POISON_MEMORY_REGION(&parking_[place], sizeof(erar_parked));
  }
  for (const std::uint32_t slot : slots_allowed_)
    ASAN_POISON_MEMORY_REGION(&parking_[slot * ERAR_PARK_PLACES], kTagBytes);
  segments_allowed_.clear();
  places_allowed_.clear();
  slots_allowed_.clear();
}

void GuardedRank::allow_segment(std::uint32_t index) {
  segments_allowed_.push_back(index);
  ASAN_UNPOISON_MEMORY_REGION(segment(index), config_.segment_bytes);
}

void GuardedRank::allow_place(std::uint32_t place) {
  places_allowed_.push_back(place);
  places_used_.push_back(place);
  ASAN_UNPOISON_MEMORY_REGION(parked_payload(place), config_.segment_bytes);
  ASAN_UNPOISON_MEMORY_REGION(&parking_[place], sizeof(erar_parked));
}

void GuardedRank::allow_tags_of(std::uint32_t slot) {
  slots_allowed_.push_back(slot);
  ASAN_UNPOISON_MEMORY_REGION(&parking_[slot * ERAR_PARK_PLACES], kTagBytes);
}

GuardedRank::Counters GuardedRank::counters() const {
  Counters copy;
  std::memcpy(copy.data(), counters_.get(), sizeof(copy));
  return copy;
}

void GuardedRank::take(Snapshot& snapshot) const {
  std::memcpy(snapshot.operations.data(), operations_.get(), sizeof(snapshot.operations));
  std::memcpy(snapshot.heard.data(), heard_.get(), sizeof(snapshot.heard));
  snapshot.states.assign(states_.get(), states_.get() + arena_segments_);
  snapshot.completions = *completions_;
}

}  // namespace erar::fuzz
