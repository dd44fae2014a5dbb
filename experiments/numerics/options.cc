// Turns what was typed into numbers, or into one line that says what is wrong with it.
#include "experiments/numerics/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <string_view>

#include "experiments/cli/reporting.h"

namespace erar::numerics {
namespace {

constexpr std::size_t kMostElements = 1U << 24;  // of each of up to 64 ranks, all in memory

template <class T>
std::optional<T> parse_number(std::string_view text, T least, T most) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (value < least || value > most) return std::nullopt;
  return value;
}

Error bad_value(std::string_view option, std::string_view value, std::string_view allowed) {
  return refusal(fmt::format("{} {}: {}", option, value.empty() ? "''" : value, allowed));
}

Result<std::vector<unsigned>> parse_ranks(const std::string& text) {
  std::vector<unsigned> ranks;
  std::string_view rest = text;
  while (true) {
    const std::size_t comma = rest.find(',');
    const auto number = parse_number<unsigned>(rest.substr(0, comma), 2, 64);
    if (!number)
      return bad_value("--ranks", text, "must be a list of whole numbers from 2 to 64, as 2,4,8");
    if (std::find(ranks.begin(), ranks.end(), *number) != ranks.end())
      return bad_value("--ranks", text, fmt::format("names {} twice", *number));
    ranks.push_back(*number);
    if (comma == std::string_view::npos) return ranks;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace

Result<NumericsOptions> parse_numerics_options(const NumericsArguments& arguments) {
  const auto ranks = parse_ranks(arguments.ranks);
  if (!ranks) return ranks.error();
  const auto count = parse_number<std::size_t>(arguments.count, 1, kMostElements);
  if (!count)
    return bad_value("--count", arguments.count,
                     fmt::format("must be a whole number from 1 to {}", kMostElements));
  constexpr auto kLargestSeed = std::numeric_limits<std::uint64_t>::max();
  const auto seed = parse_number<std::uint64_t>(arguments.seed, 0, kLargestSeed);
  if (!seed)
    return bad_value("--seed", arguments.seed,
                     fmt::format("must be a whole number from 0 to {}", kLargestSeed));
  if (auto checked = cli::check_report_paths(arguments.json, arguments.csv); !checked)
    return checked.error();
  return NumericsOptions{*ranks, *count, *seed, arguments.json, arguments.csv};
}

}  // namespace erar::numerics
