// Running a scenario: a process per rank, and the rules that must hold.
#include <algorithm>
#include <cstring>
#include <memory>
#include <set>

#include "core/collective/ring_allreduce.h"
#include "sim/network/simulated_device.h"
#include "tests/simulation/scenario.h"

namespace erar::tests {
namespace {

constexpr std::uint64_t kTimeout_ns = 5'000'000'000;
constexpr std::uint64_t kSecond_ns = 1'000'000'000;
// A rank that waits looks at the time more often than this.
constexpr std::uint64_t kLook_ns = 50'000'000;

struct Ended {
  bool returned = false;
  std::uint64_t called_ns = 0;
  std::optional<Error> error;
  std::uint64_t at_ns = 0;
  std::uint64_t progress_ns = 0;  // when a sum was stored last
  Bytes output;
  bool untouched = false;  // as it was before the call
};

class Run {
 public:
  explicit Run(const Scenario& scenario)
      : scenario_(scenario), random_(scenario.seed), ring_(ring_options()) {
    for (const SimulatedCall& call : scenario.calls) {
      std::vector<Bytes> inputs;
      for (unsigned rank = 0; rank < scenario.ranks; rank++)
        inputs.push_back(draw(call.reduction.type, call.inputs, call.count, rank, random_));
      inputs_.push_back(std::move(inputs));
    }
    ended_.assign(scenario.calls.size(), std::vector<Ended>(scenario.ranks));
    progress_.resize(scenario.ranks);
    ring_.on_delivery([this](unsigned rank, const sim::Frame&) { note_progress(rank); });
  }

  ScenarioResult result() {
    place_fault();
    run_group();
    if (!result_.wrong) check_calls();
    if (!result_.wrong && failed_) run_again();
    for (unsigned rank = 0; rank < ring_.ranks(); rank++) count(ring_.rank(rank));
    if (result_.wrong) result_.wrong = scenario_.describe() + ": " + *result_.wrong;
    return result_;
  }

 private:
  sim::SimulatedRingOptions ring_options() const {
    sim::SimulatedRingOptions options;
    options.ranks = scenario_.ranks;
    options.mtu = scenario_.mtu;
    options.seed = scenario_.seed;
    options.timeout_ns = kTimeout_ns;
    options.faults = scenario_.faults;
    options.window = scenario_.window;
    options.queue_frames = scenario_.queue_frames;
    std::size_t registered = 0;
    for (const SimulatedCall& call : scenario_.calls)
      registered += call.count * size_of(call.reduction.type) + erar_segment_bytes(scenario_.mtu);
    options.arena_segments = static_cast<std::uint32_t>(RingAllreduce::arena_segments(
        scenario_.group_bytes, registered, erar_segment_bytes(scenario_.mtu)));
    return options;
  }

  void place_fault() {
    switch (scenario_.rank_fault) {
      case RankFault::kNone:
        break;
      case RankFault::kPause:
        ring_.pause(scenario_.fault_rank, scenario_.fault_at_ns,
                    scenario_.fault_at_ns + scenario_.pause_ns);
        break;
      case RankFault::kStop:
        ring_.pause(scenario_.fault_rank, scenario_.fault_at_ns, 1000 * kSecond_ns);
        break;
      case RankFault::kKill:
        ring_.kill(scenario_.fault_rank, scenario_.fault_at_ns);
        break;
    }
  }

  void wrong(std::string what) {
    if (!result_.wrong) result_.wrong = std::move(what);
  }

  // No rank may give away what another still needs.
  void check_close(unsigned rank, std::uint32_t number) {
    // A rank that has died, or given up, keeps nothing.
    if (may_fail() && ring_.now_ns() >= scenario_.fault_at_ns + kTimeout_ns - kSecond_ns) return;
    if (ring_.is_killed(rank) || broken_.count(rank) != 0) return;
    for (unsigned other = 0; other < ring_.ranks(); other++) {
      const erar_operation& operation = ring_.rank(other).operation(number);
      if (operation.number == number && operation.open == ERAR_SLOT_OPEN &&
          operation.segments != 0 && operation.done == 0)
        wrong("rank " + std::to_string(rank) + " closes operation " + std::to_string(number) +
              ", which rank " + std::to_string(other) + " has not completed");
    }
  }

  // What has been stored was stored when the last frame before this one came.
  void note_progress(unsigned rank) {
    Progress& progress = progress_[rank];
    if (const auto stored = ring_.rank(rank).counter(ERAR_COUNT_STORED);
        stored != progress.stored) {
      progress.stored = stored;
      progress.at_ns = progress.frame_ns;
    }
    progress.frame_ns = ring_.now_ns();
  }

  void run_group() {
    for (unsigned rank = 0; rank < ring_.ranks(); rank++)
      ring_.spawn(rank, 1 + random_() % (scenario_.late_ns + 1), [this, rank] { process(rank); });
    // Long enough for every rank to time out once after the last thing that can happen.
    const std::uint64_t until_ns = 100 * kSecond_ns;
    if (auto endless = ring_.run(until_ns); endless && scenario_.rank_fault != RankFault::kStop)
      wrong(*endless);
  }

  void process(unsigned rank) {
    sim::SimulatedDevice device(ring_, rank);
    device.on_close(
        [this](unsigned closing, std::uint32_t number) { check_close(closing, number); });
    RingAllreduceOptions options;
    options.group_bytes = scenario_.group_bytes;
    options.checksum = scenario_.checksum;
    auto ring = RingAllreduce::open(device, options);
    if (!ring) return wrong("open: " + ring.error().message());
    std::mt19937_64 lateness(scenario_.seed * 64 + rank);
    for (std::size_t call = 0; call < scenario_.calls.size(); call++) {
      if (scenario_.late_ns != 0 && lateness() % 3 == 0 &&
          !ring_.sleep(rank, lateness() % scenario_.late_ns))
        return;
      if (!run_call(rank, call, **ring)) return;
    }
  }

  bool run_call(unsigned rank, std::size_t index, RingAllreduce& ring) {
    const SimulatedCall& call = scenario_.calls[index];
    const Bytes& input = inputs_[index][rank];
    Ended& ended = ended_[index][rank];
    ended.output = input;
    std::byte* output = ended.output.data();
    if (call.memory == Memory::kRegistered && !input.empty()) {
      auto registered = ring.allocate(input.size());
      if (!registered) {
        wrong("allocate: " + registered.error().message());
        return false;
      }
      std::copy(input.begin(), input.end(), registered->begin());
      output = registered->data();
    }
    const std::byte* from = call.memory == Memory::kApart ? input.data() : output;
    ended.called_ns = ring_.now_ns();
    auto done = ring.allreduce(from, output, call.count, call.reduction);
    ended.returned = true;
    ended.at_ns = ring_.now_ns();
    note_progress(rank);
    ended.progress_ns = progress_[rank].at_ns;
    if (!done) {
      broken_.insert(rank);
      ended.error = done.error();
    }
    if (call.memory == Memory::kRegistered && !input.empty())
      std::memcpy(ended.output.data(), output, input.size());
    ended.untouched = ended.output == input || call.memory != Memory::kInPlace;
    return !ended.error;
  }

  void check_calls() {
    for (std::size_t call = 0; call < ended_.size() && !result_.wrong; call++) check_call(call);
  }

  void check_call(std::size_t index) {
    const SimulatedCall& call = scenario_.calls[index];
    const std::string where = "call " + std::to_string(index) + ", rank ";
    const Bytes* first = nullptr;
    bool all_returned = true;
    for (unsigned rank = 0; rank < ring_.ranks(); rank++) {
      const Ended& ended = ended_[index][rank];
      all_returned = all_returned && ended.returned;
      if (!ended.returned) continue;
      if (ended.error) {
        check_error(where + std::to_string(rank), rank, ended);
        failed_ = true;
        continue;
      }
      if (first == nullptr) {
        first = &ended.output;
        // The residual of compressed calls is on top of the bound; what counts is that ranks agree.
        if (!call.reduction.compressed)
          if (auto text = what_is_wrong(call.reduction, inputs_[index], ended.output);
              !text.empty())
            return wrong(where + std::to_string(rank) + ": " + text);
      }
      if (ended.output != *first) return wrong(where + std::to_string(rank) + ": other bits");
    }
    if (all_returned) result_.calls++;
    if (!all_returned && !failed_ && !may_fail())
      wrong("call " + std::to_string(index) + ": not all ranks returned");
  }

  [[nodiscard]] bool may_fail() const {
    return scenario_.rank_fault == RankFault::kStop || scenario_.rank_fault == RankFault::kKill;
  }

  void check_error(const std::string& where, unsigned rank, const Ended& ended) {
    const std::string text = ended.error->message();
    if (!may_fail()) return wrong(where + ": " + text);
    if (rank == scenario_.fault_rank) return;
    result_.errors++;
    // Ranks that have failed leave, so others may find them silent, too; the first names the
    // culprit.
    const std::string culprit = "rank " + std::to_string(scenario_.fault_rank) + " is silent";
    if (text.find(culprit) == std::string::npos)
      return wrong(where + ": does not name it: " + text);
    if (ended.at_ns > std::max(ended.called_ns, ended.progress_ns) + kTimeout_ns + kLook_ns)
      return wrong(where + ": too late, at " + std::to_string(ended.at_ns));
    if (!ended.untouched) return wrong(where + ": the caller's buffer was changed");
  }

  // A new group on the same links, where frames of the old one are still under way.
  void run_again() {
    for (unsigned rank = 0; rank < ring_.ranks(); rank++) count(ring_.rank(rank));
    ring_.renew(2);
    progress_.assign(ring_.ranks(), {});
    broken_.clear();
    std::vector<std::optional<std::string>> said(ring_.ranks());
    for (unsigned rank = 0; rank < ring_.ranks(); rank++)
      ring_.spawn(rank, ring_.now_ns() + random_() % 1'000'000, [this, rank, &said] {
        sim::SimulatedDevice device(ring_, rank);
        RingAllreduceOptions options;
        options.group_bytes = scenario_.group_bytes;
        auto ring = RingAllreduce::open(device, options);
        std::vector<std::uint64_t> values(300, rank + 1);
        Reduction sum;
        sum.type = DataType::kUint64;
        auto done = (*ring)->allreduce(values.data(), values.data(), values.size(), sum);
        said[rank] = done ? "" : done.error().message();
        const std::uint64_t all = ring_.ranks() * (ring_.ranks() + 1) / 2;
        if (done && values != std::vector<std::uint64_t>(300, all)) said[rank] = "a wrong sum";
      });
    if (auto endless = ring_.run(ring_.now_ns() + 60 * kSecond_ns)) wrong("new group: " + *endless);
    for (const auto& text : said)
      if (!text || !text->empty()) return wrong("new group: " + text.value_or("no end"));
    result_.calls++;
  }

  void count(const sim::MemoryRank& rank) {
    result_.frames += rank.counter(ERAR_COUNT_PACKETS);
    result_.lost += rank.counter(ERAR_COUNT_LOST);
    result_.resent += rank.counter(ERAR_COUNT_RESENT);
    result_.requested += rank.counter(ERAR_COUNT_REQUESTED);
    result_.answered += rank.counter(ERAR_COUNT_ANSWERED);
    result_.duplicates += rank.counter(ERAR_DROP_DUPLICATE);
    result_.damaged += rank.counter(ERAR_DROP_CHECKSUM) + rank.counter(ERAR_DROP_MALFORMED) +
                       rank.counter(ERAR_DROP_SHORT);
    result_.operations += rank.completions();
  }

  const Scenario& scenario_;
  Random random_;
  sim::SimulatedRing ring_;
  std::vector<std::vector<Bytes>> inputs_;  // by call and rank
  std::vector<std::vector<Ended>> ended_;
  struct Progress {
    std::uint64_t stored = 0;
    std::uint64_t at_ns = 0;
    std::uint64_t frame_ns = 0;
  };
  std::vector<Progress> progress_;  // by rank
  std::set<unsigned> broken_;
  bool failed_ = false;
  ScenarioResult result_;
};

}  // namespace

ScenarioResult run_scenario(const Scenario& scenario) { return Run(scenario).result(); }

}  // namespace erar::tests
