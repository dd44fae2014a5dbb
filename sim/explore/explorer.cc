// SPDX-License-Identifier: BSD-2-Clause
// Explorer: breadth-first search forwards, then backwards from the ends.
#include "sim/explore/explorer.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "sim/explore/invariants.h"
#include "sim/explore/ring_state.h"
#include "sim/explore/state_store.h"
#include "sim/explore/successors.h"

namespace erar::sim {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

class Search {
 public:
  explicit Search(const Scenario& scenario) : scenario_(scenario), successors_(scenario) {}

  Exploration run();

 private:
  bool visit(std::uint32_t from);
  bool accept(std::uint32_t from, const Successor& successor);
  void check_ends();
  [[nodiscard]] std::vector<std::uint32_t> reverse(std::vector<std::uint64_t>& begins) const;
  void trace_to(std::uint32_t state);

  Scenario scenario_;
  Successors successors_;
  StateStore store_;
  std::vector<Successor> found_;
  std::vector<std::uint32_t> parents_;
  std::vector<std::uint32_t> depths_;
  std::vector<std::uint32_t> ends_;
  std::vector<std::uint64_t> row_begins_;  // of targets_: steps that are no faults
  std::vector<std::uint32_t> targets_;
  Exploration result_;
};

bool Search::accept(std::uint32_t from, const Successor& successor) {
  std::string error = successor.error;
  std::uint32_t index = kNone;
  if (error.empty()) {
    const auto [found, is_new] = store_.insert(encode(scenario_, successor.state));
    index = found;
    if (is_new) {
      parents_.push_back(from);
      depths_.push_back(depths_[from] + 1);
      error = broken_invariant(scenario_, successor.state);
      if (all_done(scenario_, successor.state)) ends_.push_back(index);
    }
  }
  if (!error.empty()) {
    result_.violation = error;
    trace_to(from);
    result_.trace.push_back(text_of(scenario_, successor.action));
    return false;
  }
  if (!successor.action.is_fault()) targets_.push_back(index);
  return true;
}

bool Search::visit(std::uint32_t from) {
  row_begins_.push_back(targets_.size());
  successors_.list(decode(scenario_, store_.at(from)), found_);
  result_.steps += found_.size();
  return std::all_of(found_.begin(), found_.end(),
                     [&](const Successor& successor) { return accept(from, successor); });
}

// Which action leads from a state to the next is found again by trying.
void Search::trace_to(std::uint32_t state) {
  std::vector<std::uint32_t> way;
  for (; state != kNone; state = parents_[state]) way.push_back(state);
  std::reverse(way.begin(), way.end());
  std::vector<Successor> found;
  for (std::size_t i = 0; i + 1 < way.size(); i++) {
    successors_.list(decode(scenario_, store_.at(way[i])), found);
    for (const Successor& successor : found) {
      if (encode(scenario_, successor.state) != store_.at(way[i + 1])) continue;
      result_.trace.push_back(text_of(scenario_, successor.action));
      break;
    }
  }
}

std::vector<std::uint32_t> Search::reverse(std::vector<std::uint64_t>& begins) const {
  begins.assign(store_.size() + std::size_t{2}, 0);
  for (const std::uint32_t target : targets_) begins[target + std::size_t{2}]++;
  for (std::size_t i = 2; i < begins.size(); i++) begins[i] += begins[i - 1];
  std::vector<std::uint32_t> sources(targets_.size());
  for (std::uint32_t from = 0; from < store_.size(); from++)
    for (std::uint64_t i = row_begins_[from]; i < row_begins_[from + std::size_t{1}]; i++)
      sources[begins[targets_[i] + std::size_t{1}]++] = from;
  return sources;
}

void Search::check_ends() {
  row_begins_.push_back(targets_.size());
  std::vector<std::uint64_t> begins;
  const std::vector<std::uint32_t> sources = reverse(begins);
  std::vector<std::uint32_t> distances(store_.size(), kNone);
  std::vector<std::uint32_t> queue = ends_;
  queue.reserve(store_.size());
  for (const std::uint32_t end : queue) distances[end] = 0;
  for (std::size_t i = 0; i < queue.size(); i++) {
    const std::uint32_t to = queue[i];
    for (std::uint64_t at = begins[to]; at < begins[to + std::size_t{1}]; at++) {
      if (distances[sources[at]] != kNone) continue;
      distances[sources[at]] = distances[to] + 1;
      queue.push_back(sources[at]);
    }
  }
  if (!queue.empty()) result_.farthest = distances[queue.back()];
  const auto stuck = std::find(distances.begin(), distances.end(), kNone);
  if (stuck == distances.end()) return;
  result_.violation = "no end can be reached from here";
  trace_to(static_cast<std::uint32_t>(stuck - distances.begin()));
}

Exploration Search::run() {
  const auto begin = std::chrono::steady_clock::now();
  store_.insert(encode(scenario_, successors_.initial()));
  parents_.push_back(kNone);
  depths_.push_back(0);
  bool fits = true;
  std::uint32_t next = 0;
  while (next < store_.size() && (fits = store_.size() <= scenario_.max_states) && visit(next))
    next++;
  if (fits && result_.violation.empty()) check_ends();
  result_.complete = fits && result_.violation.empty();
  result_.states = store_.size();
  result_.ends = ends_.size();
  result_.depth = depths_.back();
  result_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result_;
}

}  // namespace

Exploration explore(const Scenario& scenario) {
  Exploration found = Search(scenario).run();
  if (found.violation.empty() || !scenario.can_rotate()) return found;
  // For a trace in which ranks keep their names.
  Scenario plain = scenario;
  plain.rotations = false;
  return Search(plain).run();
}

}  // namespace erar::sim
