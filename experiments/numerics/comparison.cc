// Runs the methods one after the other on the same buffers.
#include "experiments/numerics/comparison.h"

#include <fmt/format.h>

#include <new>
#include <system_error>
#include <utility>

namespace erar::numerics {
namespace {

std::string case_of(const Row& row) {
  return fmt::format("{}, {} ranks: {}", name_of(row.input), row.ranks, name_of(row.method));
}

// Both with the same digits: three, or as many as tell them apart.
std::pair<std::string, std::string> told_apart(double one, double other) {
  std::pair<std::string, std::string> texts;
  for (int digits = 3; digits <= 17 && texts.first == texts.second; digits++)
    texts = {fmt::format("{:.{}g}", one, digits), fmt::format("{:.{}g}", other, digits)};
  return texts;
}

Result<std::vector<Row>> compare_in_memory(Gradients input, unsigned ranks, std::size_t count,
                                           std::uint64_t seed) {
  const Inputs inputs = draw_gradients(input, ranks, count, seed);
  const Truth truth(inputs);
  std::vector<Row> rows;
  for (const Method method : kMethods) {
    const auto sum = sum_by(method, inputs, seed);
    if (!sum) return sum.error();
    Row row;
    row.input = input;
    row.ranks = ranks;
    row.method = method;
    row.errors = errors_of(truth, sum->values);
    row.largest_sum = truth.largest_sum();
    if (method == Method::kErar || method == Method::kErarCompressed)
      row.share_of_bound = share_of_bound(truth, sum->values, method == Method::kErarCompressed);
    row.ranks_agree = sum->ranks_agree;
    rows.push_back(row);
  }
  return rows;
}

}  // namespace

Result<std::vector<Row>> compare(Gradients input, unsigned ranks, std::size_t count,
                                 std::uint64_t seed) {
  std::string lacking;
  try {
    return compare_in_memory(input, ranks, count, seed);
  } catch (const std::bad_alloc&) {
    lacking = "not enough memory";
  } catch (const std::system_error& error) {
    lacking = "threads cannot be started: " + error.code().message();
  }
  return refusal(fmt::format("{} ranks with {} elements each: {}", ranks, count, lacking));
}

std::vector<std::string> failed_checks(const std::vector<Row>& rows) {
  std::vector<std::string> lines;
  for (const Row& row : rows) {
    if (!row.ranks_agree)
      lines.push_back(fmt::format("{}'s bits differ between ranks", case_of(row)));
    if (row.share_of_bound && !(*row.share_of_bound <= 1))
      lines.push_back(
          fmt::format("{}'s error is {:.4g} times its bound", case_of(row), *row.share_of_bound));
  }
  return lines;
}

std::vector<std::string> losses(const std::vector<Row>& rows) {
  std::vector<std::string> lines;
  for (const Row& row : rows) {
    if (row.method != Method::kErar) continue;
    for (const Row& other : rows) {
      if (other.method != Method::kFloatRing || other.input != row.input ||
          other.ranks != row.ranks || row.errors.largest <= other.errors.largest)
        continue;
      const auto [own, rings] = told_apart(row.errors.largest, other.errors.largest);
      lines.push_back(fmt::format("{}'s largest error {} is above float32-ring's {}", case_of(row),
                                  own, rings));
    }
  }
  return lines;
}

}  // namespace erar::numerics
