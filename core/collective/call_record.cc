// Call records: hashing, comparing, and telling a person how they differ.
#include "core/collective/call_record.h"

#include <bit>
#include <charconv>
#include <cstring>
#include <utility>
#include <vector>

#include "core/mix64.h"

namespace erar {
namespace {

// The shortest decimal that reads back as the same double.
std::string text_of(double value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

template <class Enum, std::size_t kNames>
std::string enum_text(std::uint8_t value, const std::array<Enum, kNames>&) {
  if (value < kNames) return std::string(name_of(static_cast<Enum>(value)));
  return "number " + std::to_string(value);
}

struct Field {
  const char* name;
  std::string (*text)(const CallRecord&);
};

// In the order in which a person would look for the reason.
constexpr std::array<Field, 10> kFields = {{
    {"operation", [](const CallRecord& call) { return enum_text(call.op, kReduceOps); }},
    {"type", [](const CallRecord& call) { return enum_text(call.type, kDataTypes); }},
    {"count", [](const CallRecord& call) { return std::to_string(call.count); }},
    {"pre-scale factor",
     [](const CallRecord& call) { return text_of(std::bit_cast<double>(call.pre_scale_bits)); }},
    {"what becomes of NaN",
     [](const CallRecord& call) -> std::string {
       return call.not_finite == 0 ? "refuse" : "propagate";
     }},
    {"compression",
     [](const CallRecord& call) -> std::string { return call.compressed == 0 ? "off" : "on"; }},
    {"memory",
     [](const CallRecord& call) -> std::string {
       return call.whole == 0 ? "ordinary" : "registered";
     }},
    {"checksums",
     [](const CallRecord& call) -> std::string { return call.checksum == 0 ? "off" : "on"; }},
    {"group size in bytes",
     [](const CallRecord& call) { return std::to_string(call.group_bytes); }},
    {"segment size in bytes (the links' MTU)",
     [](const CallRecord& call) { return std::to_string(call.segment_bytes); }},
}};

// Values in the order of the ranks that have them, and those ranks.
using Groups = std::vector<std::pair<std::string, std::vector<unsigned>>>;

Groups group_by_value(std::span<const CallRecord> records, const Field& field) {
  Groups groups;
  for (unsigned rank = 0; rank < records.size(); rank++) {
    const std::string text = field.text(records[rank]);
    auto group = groups.begin();
    while (group != groups.end() && group->first != text) ++group;
    if (group == groups.end()) group = groups.insert(group, {text, {}});
    group->second.push_back(rank);
  }
  return groups;
}

std::string text_of(const Groups& groups) {
  std::string text;
  for (const auto& [value, ranks] : groups) {
    text += (text.empty() ? "" : "; ") + value + " on rank" + (ranks.size() > 1 ? "s" : "");
    const char* separator = " ";
    for (const unsigned rank : ranks) {
      text += separator + std::to_string(rank);
      separator = ", ";
    }
  }
  return text;
}

}  // namespace

CallRecord CallRecord::of(std::size_t count, const Reduction& reduction, std::size_t group_bytes,
                          std::uint32_t segment_bytes, bool checksum) {
  CallRecord record;
  record.count = count;
  record.pre_scale_bits = std::bit_cast<std::uint64_t>(reduction.pre_scale);
  record.group_bytes = group_bytes;
  record.segment_bytes = segment_bytes;
  record.type = static_cast<std::uint8_t>(reduction.type);
  record.op = static_cast<std::uint8_t>(reduction.op);
  record.not_finite = static_cast<std::uint8_t>(reduction.not_finite);
  record.compressed = reduction.compressed ? 1 : 0;
  record.checksum = checksum ? 1 : 0;
  return record;
}

CallSignature signature_of(const CallRecord& record) {
  std::array<std::uint64_t, sizeof(CallRecord) / sizeof(std::uint64_t)> words;
  std::memcpy(words.data(), &record, sizeof(record));
  CallSignature signature;
  for (std::size_t i = 0; i < signature.size(); i++) {
    std::uint64_t hash = mix64(i);
    for (const std::uint64_t word : words) hash = mix64(hash ^ word);
    signature[i] = hash;
  }
  return signature;
}

bool all_equal(const CallSignature& own, const CallSignature& sum, unsigned ranks) {
  for (std::size_t i = 0; i < own.size(); i++)
    if (sum[i] != ranks * own[i]) return false;
  return true;
}

std::string describe_disagreement(std::span<const CallRecord> records) {
  std::string text;
  for (const Field& field : kFields) {
    const Groups groups = group_by_value(records, field);
    if (groups.size() < 2) continue;
    text += (text.empty() ? "ranks disagree on " : ", and on ") + std::string(field.name) + ": " +
            text_of(groups);
  }
  // Cannot be while every field has a line above; better than saying nothing.
  return text.empty() ? "ranks disagree on what they call" : text;
}

}  // namespace erar
