// The judge: frames by offsets, rings by walking them, lanes one by one.
#include "tests/fuzz/judge.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace erar::fuzz {
namespace {

std::uint32_t big_endian(const std::uint8_t* at, unsigned bytes) {
  std::uint32_t value = 0;
  for (unsigned i = 0; i < bytes; i++) value = value << 8 | at[i];
  return value;
}

std::uint64_t word_at(const std::uint8_t* at) {
  std::uint64_t word = 0;
  std::memcpy(&word, at, 8);  // the hosts are little-endian, as the lanes are
  return word;
}

bool is_ours(const Bytes& frame) {
  return frame.size() >= 42 && big_endian(&frame[12], 2) == 0x0800 && frame[14] == 0x45 &&
         frame[23] == 17 && (big_endian(&frame[20], 2) & 0x3fff) == 0 &&
         big_endian(&frame[36], 2) == 18520;
}

// Walks the ring from the block's origin.
bool ends_here(const erar_config& config, const Header& header) {
  const std::uint32_t links = header.hop, ranks = config.ranks;
  std::uint32_t least = 1, most = 0;
  switch (header.type) {
    case 2:
    case 4:
      most = ranks - 1;
      break;
    case 3:
    case 5:
      least = ranks;
      most = 2 * ranks - 2;
      break;
    case 6:
      most = ranks;
      break;
    default:
      return false;
  }
  if (header.block >= ranks || links < least || links > most) return false;
  std::uint32_t at = header.block;
  for (std::uint32_t link = 0; link < links; link++) at = at + 1 == ranks ? 0 : at + 1;
  return at == config.rank;
}

std::uint64_t lane_of(std::uint64_t word, unsigned at, unsigned bits) {
  return bits == 64 ? word : word >> at & ((1ULL << bits) - 1);
}

std::uint64_t combine_word(std::uint32_t loop, unsigned bits, std::uint64_t flip, std::uint64_t a,
                           std::uint64_t b) {
  std::uint64_t result = 0;
  for (unsigned at = 0; at < 64; at += bits) {
    const std::uint64_t mine = lane_of(a, at, bits), theirs = lane_of(b, at, bits);
    std::uint64_t lane = mine + theirs;
    if (loop == ERAR_MAX_LANES) {
      const std::uint64_t turned = lane_of(flip, at, bits);
      lane = (mine ^ turned) >= (theirs ^ turned) ? mine : theirs;
    }
    result |= lane_of(lane, 0, bits) << at;
  }
  return result;
}

unsigned lane_bits(const erar_combine& way) {
  if (way.loop == ERAR_ADD_WORDS) return 64;
  if (way.loop == ERAR_ADD_LANES32) return 32;
  unsigned bits = 1;
  while ((way.lane_high >> (bits - 1) & 1) == 0) bits++;
  return bits;
}

std::uint64_t sum_of_words(const std::uint8_t* payload, std::uint32_t bytes) {
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < bytes; i += 8) sum += word_at(payload + i);
  return sum;
}

class Judgement {
 public:
  explicit Judgement(GuardedRank& rank) : rank_(rank), config_(rank.config()) {}

  Expectation frame(const Bytes& frame) {
    if (!is_ours(frame)) {
      end(ERAR_COUNT_FOREIGN);
      said_.verdict = Verdict::kPass;
      return said_;
    }
    if (frame.size() < 72) return end(ERAR_DROP_SHORT);
    const Header header = read_header(frame);
    const std::uint32_t bytes = header.payload_bytes;
    if (header.magic != kMagic) return end(ERAR_DROP_MALFORMED);
    if (header.job != config_.job || header.token != config_.token) return end(ERAR_DROP_JOB);
    if (header.type == 1) return end(ERAR_DROP_KICK);
    if (bytes == 0 || bytes % 64 != 0 || bytes > config_.segment_bytes ||
        big_endian(&frame[16], 2) != bytes + 58 || big_endian(&frame[38], 2) != bytes + 38)
      return end(ERAR_DROP_MALFORMED);
    if (frame.size() < 72 + bytes) return end(ERAR_DROP_SHORT);
    said_.counts[ERAR_COUNT_PACKETS] = 1;
    said_.counts[ERAR_COUNT_BYTES] = bytes;
    if (!ends_here(config_, header)) return end(ERAR_DROP_MISROUTED);
    const std::uint8_t* payload = &frame[72];
    if (header.type == 6) {
      if (header.checksum != right_checksum(header, nullptr)) return end(ERAR_DROP_CHECKSUM);
      end(ERAR_COUNT_ALIVE);
      if (header.hop < config_.ranks) send(header, Bytes(payload, payload + bytes), true);
      return said_;
    }
    const erar_operation& slot = rank_.operation(header.operation);
    if (slot.open != ERAR_SLOT_OPEN || slot.number != header.operation)
      return not_open(slot, header);
    return arrived(slot, header, payload, frame.size(),
                   header.checksum == right_checksum(header, header.type == 4 ? nullptr : payload));
  }

  Expectation kick(std::uint32_t number, const ParkedHeaders& parked) {
    const erar_operation& slot = rank_.operation(number);
    if (slot.open != ERAR_SLOT_OPEN || slot.number != number) return end(ERAR_DROP_KICK);
    said_.counts[ERAR_COUNT_KICKS] = 1;
    if (slot.kicks >= slot.unpark_count)
      return start_own(slot, ERAR_COUNT_FORWARDED, 72U + config_.segment_bytes);
    const std::uint32_t place = number % ERAR_SLOTS * ERAR_PARK_PLACES + slot.unpark[slot.kicks];
    said_.place = place;
    rank_.allow_place(place);
    // A frame of eight operations later may have taken the place meanwhile.
    if (rank_.parked(place).tag != (std::uint64_t{number} << 32 | std::uint64_t{0xffff} << 16))
      return end(ERAR_DROP_KICK);
    said_.counts[ERAR_COUNT_UNPARKED] = 1;
    // It is taken for a frame of the length that its segment must have now; its checksum says
    // whether it is. A forger may have sent it as a shorter one.
    Header header = parked[place];
    const std::uint64_t sum_of_payload = header.checksum - right_checksum(header, nullptr);
    header.operation = number;
    header.payload_bytes = static_cast<std::uint16_t>(bytes_of(slot, header.segment));
    header.checksum = sum_of_payload + right_checksum(header, nullptr);
    const std::uint8_t* payload = rank_.parked_payload(place);
    return arrived(slot, header, payload, 72U + header.payload_bytes,
                   header.checksum == right_checksum(header, payload));
  }

  Expectation resend(std::uint32_t number, std::uint32_t block, std::uint32_t segment) {
    const erar_operation& slot = rank_.operation(number);
    Header header;
    header.type = block == config_.rank ? 2 : 4;
    header.block = static_cast<std::uint16_t>(block);
    header.segment = segment;
    header.operation = number;
    header.hop = static_cast<std::uint8_t>((config_.rank + config_.ranks - block) % config_.ranks);
    header.payload_bytes = static_cast<std::uint16_t>(bytes_of(slot, segment));
    if (header.hop == config_.ranks - 1) return said_;
    if (segment < first_of_block(slot.segments, config_.ranks, block) ||
        segment >= first_of_block(slot.segments, config_.ranks, block + 1))
      return end(ERAR_DROP_INTERNAL);
    said_.share_at = slot.first_segment + segment;
    rank_.allow_segment(*said_.share_at);
    const __u64 state = rank_.state(*said_.share_at);
    if (state == (std::uint64_t{number} << 2 | ERAR_FINAL) ||
        (state >> 2 != number && slot.done != 0))
      return said_;
    const std::uint8_t* share = rank_.segment(*said_.share_at);
    send(header, header.type == 2 ? Bytes(share, share + header.payload_bytes) : Bytes(), true);
    return end(header.type == 2 ? ERAR_COUNT_RESENT : ERAR_COUNT_REQUESTED);
  }

 private:
  std::uint32_t bytes_of(const erar_operation& slot, std::uint32_t segment) const {
    return slot.segments != 0 && segment == slot.segments - 1 ? slot.last_bytes
                                                              : config_.segment_bytes;
  }

  Expectation& end(erar_counter outcome) {
    said_.outcome = outcome;
    said_.counts[outcome]++;
    return said_;
  }

  void send(Header header, Bytes payload, bool sealed) {
    said_.sent_is_sealed = sealed;
    said_.verdict = Verdict::kForward;
    header.hop = static_cast<std::uint8_t>(header.hop + 1);
    said_.sent = header;
    said_.payload = std::move(payload);
  }

  Expectation not_open(const erar_operation& slot, const Header& header) {
    // Slots that were never opened say "changing", and park what is of the number they began with.
    const bool may_come = header.operation == slot.number ? slot.open == ERAR_SLOT_CHANGING
                                                          : header.operation == slot.number + 8;
    if (!may_come)
      return end(static_cast<std::int32_t>(header.operation - slot.number) <= 0 ? ERAR_DROP_STALE
                                                                                : ERAR_DROP_EARLY);
    if (header.type != 2) return end(ERAR_DROP_EARLY);
    const std::uint32_t place =
        (header.block * config_.window + header.segment % config_.window) % ERAR_PARK_PLACES;
    said_.place = header.operation % ERAR_SLOTS * ERAR_PARK_PLACES + place;
    rank_.allow_place(*said_.place);
    // What lies there may be left over from an operation that is over.
    const __u64 tag = rank_.parked(*said_.place).tag;
    if (tag != 0 && static_cast<std::int32_t>((tag >> 32) - header.operation) >= 0)
      return end(ERAR_DROP_EARLY);
    said_.parked_bytes = header.payload_bytes;
    return end(ERAR_COUNT_PARKED);
  }

  Expectation start_own(const erar_operation& slot, erar_counter counter, std::size_t room) {
    if (room < 72U + config_.segment_bytes || slot.own_next >= slot.own_count)
      return end(ERAR_COUNT_RETIRED);
    Header header;
    header.type = 2;
    header.block = static_cast<std::uint16_t>(config_.rank);
    header.segment = slot.own_begin + slot.own_next;
    header.operation = slot.number;
    header.payload_bytes = static_cast<std::uint16_t>(bytes_of(slot, header.segment));
    said_.next_at = slot.first_segment + header.segment;
    rank_.allow_segment(*said_.next_at);
    const std::uint8_t* share = rank_.segment(*said_.next_at);
    Bytes leaves(share, share + header.payload_bytes);
    // Nobody can have the sum of a segment that was not started, unless a forger said so.
    if (said_.next_at == said_.stored_at) leaves = said_.stored;
    send(header, std::move(leaves), true);
    return end(counter);
  }

  void store(std::uint32_t index, Bytes bytes) {
    said_.stored_at = index;
    said_.stored = std::move(bytes);
    said_.counts[ERAR_COUNT_STORED] = 1;
  }

  Expectation arrived(const erar_operation& slot, Header header, const std::uint8_t* payload,
                      std::size_t frame_bytes, bool checksum_is_right) {
    const std::uint32_t ranks = config_.ranks, bytes = header.payload_bytes;
    if (header.segment < first_of_block(slot.segments, ranks, header.block) ||
        header.segment >= first_of_block(slot.segments, ranks, header.block + 1U) ||
        bytes != bytes_of(slot, header.segment))
      return end(ERAR_DROP_RANGE);
    const std::uint32_t index = slot.first_segment + header.segment;
    said_.share_at = index;
    rank_.allow_segment(index);
    const std::uint8_t* share = rank_.segment(index);
    const __u64 state = rank_.state(index);
    const bool is_final = state == (std::uint64_t{slot.number} << 2 | ERAR_FINAL);
    const bool is_gone = state >> 2 != slot.number && slot.done != 0;
    const bool turns = header.hop == ranks - 1;
    const bool is_last = header.hop == 2 * ranks - 2;
    const bool is_damaged = slot.check != 0 && !checksum_is_right;
    if (header.type == 4 && !checksum_is_right) return end(ERAR_DROP_CHECKSUM);
    if (header.type == 3 || header.type == 5) {
      if (is_damaged) return end(ERAR_DROP_CHECKSUM);
      if (is_final || is_gone) {
        if (is_last || header.type == 3) return end(ERAR_DROP_DUPLICATE);
      } else {
        store(index, Bytes(payload, payload + bytes));
        if (is_last) return start_own(slot, ERAR_COUNT_RECYCLED, frame_bytes);
      }
      send(header, Bytes(payload, payload + bytes), checksum_is_right);
      return end(ERAR_COUNT_FORWARDED);
    }
    if (is_final || is_gone) {
      if (!is_final || !turns) return end(ERAR_DROP_DUPLICATE);
      header.type = header.type == 4 ? 5 : 3;
      send(header, Bytes(share, share + bytes), true);
      return end(ERAR_COUNT_ANSWERED);
    }
    if (header.type == 4) {
      if (turns) return end(ERAR_DROP_UNANSWERED);
      send(header, Bytes(payload, payload + bytes), checksum_is_right);
      return end(ERAR_COUNT_FORWARDED);
    }
    if (is_damaged) return end(ERAR_DROP_CHECKSUM);
    said_.counts[ERAR_COUNT_ADDS] = 1;
    Bytes sum = combined(slot.combine, payload, share, bytes);
    if (turns) {
      store(index, sum);
      header.type = 3;
    }
    send(header, std::move(sum), checksum_is_right);
    return end(ERAR_COUNT_FORWARDED);
  }

  GuardedRank& rank_;
  const erar_config& config_;
  Expectation said_;
};

// The way back of scattered(): Newton's iteration doubles the right bits of an inverse modulo 2^64.
std::uint64_t gathered(std::uint64_t checksum) {
  const std::uint64_t high = checksum >> 32;
  const std::uint64_t product = high << 32 | (high ^ (checksum & 0xffffffffULL));
  const std::uint64_t factor = 0x9e3779b97f4a7c15ULL;
  std::uint64_t inverse = factor;
  for (unsigned i = 0; i < 5; i++) inverse *= 2 - factor * inverse;
  return product * inverse;
}

}  // namespace

Header read_header(const Bytes& frame) {
  Header header;
  header.type = frame[42];
  header.hop = frame[43];
  header.block = static_cast<std::uint16_t>(big_endian(&frame[44], 2));
  header.job = static_cast<std::uint16_t>(big_endian(&frame[46], 2));
  header.segment = big_endian(&frame[48], 4);
  header.operation = big_endian(&frame[52], 4);
  header.token = big_endian(&frame[56], 4);
  header.payload_bytes = static_cast<std::uint16_t>(big_endian(&frame[60], 2));
  header.magic = static_cast<std::uint16_t>(big_endian(&frame[62], 2));
  header.checksum = gathered(word_at(&frame[64]));
  return header;
}

std::uint64_t scattered(std::uint64_t sum) {
  const std::uint64_t product = sum * 0x9e3779b97f4a7c15ULL;
  return (product & 0xffffffff00000000ULL) | ((product >> 32 ^ product) & 0xffffffffULL);
}

std::uint64_t right_checksum(const Header& header, const std::uint8_t* payload) {
  const std::uint64_t place = std::uint64_t{header.operation} << 32 | header.segment;
  const std::uint64_t way = std::uint64_t{header.type} << 48 | std::uint64_t{header.hop} << 40 |
                            std::uint64_t{header.block} << 16 | header.payload_bytes;
  std::uint64_t sum = place * 0x9e3779b97f4a7c15ULL + way * 0xc2b2ae3d27d4eb4fULL;
  return payload == nullptr ? sum : sum + sum_of_words(payload, header.payload_bytes);
}

std::uint32_t first_of_block(std::uint32_t segments, std::uint32_t ranks, std::uint32_t block) {
  return static_cast<std::uint32_t>(std::uint64_t{segments} * block / ranks);
}

Bytes combined(const erar_combine& way, const std::uint8_t* payload, const std::uint8_t* share,
               std::uint32_t bytes) {
  Bytes sum(bytes);
  for (std::uint32_t i = 0; i < bytes; i += 8) {
    const bool as_word = i < 64 && way.word_chunks != 0;
    const std::uint64_t word = combine_word(as_word ? std::uint32_t{ERAR_ADD_WORDS} : way.loop,
                                            as_word ? 64 : lane_bits(way), way.flip,
                                            word_at(payload + i), word_at(share + i));
    std::memcpy(&sum[i], &word, 8);
  }
  return sum;
}

Expectation judge_frame(GuardedRank& rank, const Bytes& frame) {
  return Judgement(rank).frame(frame);
}

Expectation judge_kick(GuardedRank& rank, std::uint32_t operation, const ParkedHeaders& parked) {
  return Judgement(rank).kick(operation, parked);
}

Expectation judge_resend(GuardedRank& rank, std::uint32_t operation, std::uint32_t block,
                         std::uint32_t segment) {
  return Judgement(rank).resend(operation, block, segment);
}

const char* wrong_about_sent(const GuardedRank& rank, const Expectation& expected,
                             const Bytes& frame) {
  const erar_config& config = rank.config();
  const Header& wanted = expected.sent;
  const std::uint32_t bytes = wanted.payload_bytes;
  if (frame.size() < 72 + bytes) return "too short";
  if (!is_ours(frame)) return "not an eRAR frame";
  if (std::memcmp(frame.data(), config.link, 12) != 0) return "other link addresses";
  if (big_endian(&frame[16], 2) != bytes + 58) return "wrong IPv4 length";
  if (big_endian(&frame[38], 2) != bytes + 38) return "wrong UDP length";
  std::uint32_t sum = 0;
  for (unsigned i = 14; i < 34; i += 2) sum += big_endian(&frame[i], 2);
  sum = (sum & 0xffff) + (sum >> 16);
  if ((sum & 0xffff) + (sum >> 16) != 0xffff) return "wrong IPv4 checksum";
  const Header header = read_header(frame);
  if (header.magic != kMagic || header.job != config.job || header.token != config.token)
    return "wrong magic, job or token";
  if (header.type != wanted.type || header.hop != wanted.hop || header.block != wanted.block ||
      header.segment != wanted.segment || header.operation != wanted.operation ||
      header.payload_bytes != bytes)
    return "other headers than expected";
  if (!std::equal(expected.payload.begin(), expected.payload.end(), frame.begin() + 72))
    return "another payload";
  const bool is_empty = header.type == 4 || header.type == 6;
  if (expected.sent_is_sealed &&
      header.checksum != right_checksum(header, is_empty ? nullptr : &frame[72]))
    return "wrong checksum";
  return nullptr;
}

}  // namespace erar::fuzz
