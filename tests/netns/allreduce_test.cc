// Allreduce end to end: both backends over all fabrics, ranks as processes, odd sizes, exact sums.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "bpf/host/erar_backend.h"
#include "core/clock.h"
#include "emu/baseline/tcp_ring.h"
#include "emu/netns/fabric.h"
#include "emu/rank/launcher.h"
#include "tests/collective/reduction_oracle.h"

namespace erar {
namespace {

enum class Memory { kCaller, kCallerInPlace, kRegistered };

struct Case {
  std::size_t count;
  DataType type;
  Memory memory;
};

// Sizes that matter: none, one element, fewer than ranks, a chunk and around it, a segment and
// around it, not divisible, many segments, more than one pipeline group.
std::vector<Case> cases() {
  std::vector<Case> made;
  for (const std::size_t count : {0UL, 1UL, 2UL, 15UL, 16UL, 17UL, 352UL, 815UL, 816UL, 817UL,
                                  3264UL, 10'007UL, 262'144UL, 700'001UL})
    for (const DataType type : {DataType::kInt32, DataType::kFloat32})
      for (const Memory memory : {Memory::kCaller, Memory::kCallerInPlace, Memory::kRegistered})
        made.push_back({count, type, memory});
  return made;
}

std::uint32_t int_value(unsigned rank, std::size_t i, std::size_t salt) {
  return static_cast<std::uint32_t>((i + 1) * 2'654'435'761U * (rank + 3) + salt * 977);
}

// Small integers: any float sum of them is exact, and so is the quantised one.
float float_value(unsigned rank, std::size_t i, std::size_t salt) {
  return static_cast<float>(static_cast<int>((i * 7 + rank * 13 + salt) % 2001) - 1000);
}

void fill(void* buffer, const Case& test, unsigned rank, std::size_t salt) {
  for (std::size_t i = 0; i < test.count; i++) {
    if (test.type == DataType::kInt32)
      static_cast<std::uint32_t*>(buffer)[i] = int_value(rank, i, salt);
    else
      static_cast<float*>(buffer)[i] = float_value(rank, i, salt);
  }
}

std::size_t count_wrong(const void* buffer, const Case& test, unsigned ranks, std::size_t salt) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < test.count; i++) {
    if (test.type == DataType::kInt32) {
      std::uint32_t sum = 0;
      for (unsigned rank = 0; rank < ranks; rank++) sum += int_value(rank, i, salt);
      wrong += static_cast<const std::uint32_t*>(buffer)[i] != sum;
    } else {
      float sum = 0;
      for (unsigned rank = 0; rank < ranks; rank++) sum += float_value(rank, i, salt);
      wrong += !(static_cast<const float*>(buffer)[i] == sum);
    }
  }
  return wrong;
}

// One rank's whole run; 0 when every case was right.
int run_cases(Backend& backend, unsigned rank, unsigned ranks) {
  std::size_t salt = 0;
  for (const Case& test : cases()) {
    salt++;
    const std::size_t bytes = test.count * 4;
    std::vector<std::byte> input(bytes + 4), output(bytes + 4, std::byte{0xcd});
    void* in = input.data();
    void* out = test.memory == Memory::kCaller ? output.data() : in;
    if (test.memory == Memory::kRegistered) {
      auto memory = backend.allocate(bytes);
      if (!memory) {
        std::fprintf(stderr, "rank %u: %s\n", rank, memory.error().message().c_str());
        return 1;
      }
      in = out = memory->data();
    }
    fill(in, test, rank, salt);
    // Twice out of place: the second must not see what the first left in the backend.
    const int repeats = test.memory == Memory::kCaller ? 2 : 1;
    for (int repeat = 0; repeat < repeats; repeat++) {
      const auto done = backend.allreduce(in, out, test.count, {test.type, ReduceOp::kSum});
      if (!done) {
        std::fprintf(stderr, "rank %u, %zu elements: %s\n", rank, test.count,
                     done.error().message().c_str());
        return 1;
      }
    }
    const std::size_t wrong = count_wrong(out, test, ranks, salt);
    const bool overrun = test.memory != Memory::kRegistered && bytes != 0 &&
                         (test.memory == Memory::kCaller ? output[bytes] != std::byte{0xcd}
                                                         : input[bytes] != std::byte{0});
    if (wrong != 0 || overrun) {
      std::fprintf(stderr, "rank %u of %u: %zu of %zu %s wrong, memory kind %d%s\n", rank, ranks,
                   wrong, test.count, std::string(name_of(test.type)).c_str(),
                   static_cast<int>(test.memory),
                   overrun ? ", bytes behind the buffer were written" : "");
      return 1;
    }
  }
  return 0;
}

// A NaN of one rank in a group in the middle: all ranks say the same, groups before and behind it
// that are under way do no harm, and the next operations are right. Repeated, since it is a race if
// at all.
int run_not_finite(Backend& backend, unsigned rank, unsigned ranks) {
  const Case large{3'000'000, DataType::kFloat32, Memory::kCaller};
  std::vector<float> input(large.count), output(large.count);
  for (std::size_t round = 0; round < 6; round++) {
    fill(input.data(), large, rank, round);
    if (rank == 1) input[1'300'000] = std::numeric_limits<float>::quiet_NaN();
    const auto refused =
        backend.allreduce(input.data(), output.data(), large.count, {large.type, ReduceOp::kSum});
    if (refused || refused.error().message() !=
                       "allreduce sum of float32: rank 1 has NaN at element 1300000") {
      std::fprintf(stderr, "rank %u: a NaN went through or was misplaced: %s\n", rank,
                   refused ? "" : refused.error().message().c_str());
      return 1;
    }
    fill(input.data(), large, rank, round);
    const auto done =
        backend.allreduce(input.data(), output.data(), large.count, {large.type, ReduceOp::kSum});
    if (!done || count_wrong(output.data(), large, ranks, round) != 0) {
      std::fprintf(stderr, "rank %u: wrong after a NaN: %s\n", rank,
                   done ? "" : done.error().message().c_str());
      return 1;
    }
  }
  return 0;
}

// Every type and operation, out of place, in place and registered, at sizes that travel in the
// first operation, in one group and in several. All ranks draw all inputs, so each can judge its
// own result; the hash of all results is what other fabrics must get as well.
int run_reductions(Backend& backend, unsigned rank, unsigned ranks, std::uint64_t& hash) {
  tests::Random random(11);
  hash = 0;
  for (const DataType type : kDataTypes) {
    for (const ReduceOp op : kReduceOps) {
      for (const std::size_t count : {37UL, 5001UL, 300'003UL}) {
        // Several groups: once for each type is enough to see that they are cut alike.
        if (count > 5001 && op != ReduceOp::kSum) continue;
        Reduction reduction;
        reduction.type = type;
        reduction.op = op;
        reduction.compressed =
            count == 5001 && op == ReduceOp::kAverage && size_of(type) <= 4 && is_float(type);
        if (op == ReduceOp::kSum && count == 5001) reduction.pre_scale = is_float(type) ? 0.7 : 5;
        std::vector<tests::Bytes> inputs;
        const auto kind = static_cast<tests::Inputs>(random() % tests::kInputKinds);
        for (unsigned each = 0; each < ranks; each++)
          inputs.push_back(tests::draw(type, kind, count, each, random));
        tests::Bytes result(count * size_of(type));
        const auto done = backend.allreduce(inputs[rank].data(), result.data(), count, reduction);
        const std::string wrong =
            done ? tests::what_is_wrong(reduction, inputs, result) : done.error().message();
        if (!wrong.empty()) {
          std::fprintf(stderr, "rank %u, %s of %zu %s: %s\n", rank,
                       std::string(name_of(op)).c_str(), count, std::string(name_of(type)).c_str(),
                       wrong.c_str());
          return 1;
        }
        for (const std::byte byte : result)
          hash = (hash ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3U;
      }
    }
  }
  return 0;
}

// Calls that differ: one error on all ranks, at once and not by the time-out.
int run_disagreements(Backend& backend, unsigned rank) {
  std::vector<float> values(100'000, 1.0F);
  const std::size_t counts[] = {3, 5000, 100'000};
  for (const std::size_t count : counts) {
    for (int round = 0; round < 3; round++) {
      const std::size_t mine = rank == 1 ? count - 1 : count;
      const std::uint64_t since_ns = monotonic_ns();
      const auto done = backend.allreduce(values.data(), values.data(), mine, Reduction{});
      const double seconds = static_cast<double>(monotonic_ns() - since_ns) * 1e-9;
      const std::string expected = "allreduce: ranks disagree on count: ";
      if (done || done.error().message().find(expected) != 0 || seconds > 2) {
        std::fprintf(stderr, "rank %u: after %.3f s: %s\n", rank, seconds,
                     done ? "no error" : done.error().message().c_str());
        return 1;
      }
      values.assign(values.size(), 1.0F);
    }
  }
  return 0;
}

// All ranks must be attached before the first frame leaves: a barrier in shared memory.
class SharedBarrier {
 public:
  explicit SharedBarrier(unsigned ranks)
      : barrier_(static_cast<pthread_barrier_t*>(mmap(nullptr, sizeof(pthread_barrier_t),
                                                      PROT_READ | PROT_WRITE,
                                                      MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
    pthread_barrierattr_t shared;
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(barrier_, &shared, ranks);
  }
  SharedBarrier(const SharedBarrier&) = delete;
  SharedBarrier& operator=(const SharedBarrier&) = delete;
  ~SharedBarrier() { munmap(barrier_, sizeof(*barrier_)); }
  void wait() { pthread_barrier_wait(barrier_); }

 private:
  pthread_barrier_t* barrier_;
};

struct Scenario {
  std::string backend;
  FabricKind fabric = FabricKind::kRing;
  unsigned ranks = 4;
  unsigned mtu = 3498;
  bool offloads = true;
  bool generic_mode = false;
  unsigned queues = 0;  // as the fabric's default
  unsigned window = 0;  // as RingEndpoint's
};

Result<std::unique_ptr<Backend>> open_backend(const Scenario& scenario,
                                              const RingEndpoint& endpoint) {
  if (scenario.backend == "tcp") return open_tcp_backend(endpoint, {});
  ErarOptions options;
  options.registered_bytes = 16U << 20;
  options.generic_mode = scenario.generic_mode;
  options.token = 0xfeedbeef;
  return open_erar_backend(endpoint, options);
}

class Allreduce : public testing::TestWithParam<Scenario> {};

TEST_P(Allreduce, EverySizeTypeAndMemoryIsExact) {
  ASSERT_EQ(geteuid(), 0U) << "this test needs root: it makes namespaces and loads BPF programs";
  const Scenario& scenario = GetParam();
  FabricSpec spec;
  spec.name = "t" + std::to_string(getpid()) + "-all";
  spec.kind = scenario.fabric;
  spec.ranks = scenario.ranks;
  spec.mtu = scenario.mtu;
  spec.offloads = scenario.offloads;
  if (scenario.queues != 0) spec.queues = scenario.queues;
  spec.ephemeral = true;
  auto fabric = Fabric::up(spec);
  ASSERT_TRUE(fabric) << fabric.error().message();
  if (scenario.backend == "tcp") {
    const auto plain = fabric->set_xdp_switch(false);
    EXPECT_TRUE(plain) << (plain ? "" : plain.error().message());
  }
  SharedBarrier barrier(scenario.ranks);
  const auto outcome = launch_ranks(*fabric, {}, [&](unsigned rank) {
    RingEndpoint endpoint = fabric->endpoint(rank);
    endpoint.window = scenario.window;
    auto backend = open_backend(scenario, endpoint);
    if (!backend) {
      std::fprintf(stderr, "rank %u: %s\n", rank, backend.error().message().c_str());
      return 1;
    }
    barrier.wait();
    int status = run_cases(**backend, rank, scenario.ranks);
    if (status == 0 && scenario.backend == "erar" && scenario.ranks < 8)
      status = run_not_finite(**backend, rank, scenario.ranks);
    barrier.wait();
    return status;
  });
  EXPECT_TRUE(outcome) << (outcome ? "" : outcome.error().message());
  EXPECT_TRUE(outcome && outcome->status == 0)
      << "failed rank " << (outcome ? outcome->failed_rank : -1);
  const auto down = Fabric::down(spec.name);
  EXPECT_TRUE(down) << (down ? "" : down.error().message());
}

// The same inputs over fabrics that differ in MTU, queues, kind and mode: right, and the same bits.
TEST(AllreduceOfEveryType, IsRightAndTheSameBitsOnEveryFabric) {
  ASSERT_EQ(geteuid(), 0U) << "this test needs root: it makes namespaces and loads BPF programs";
  constexpr unsigned kRanks = 3;
  std::uint64_t first = 0;
  for (const Scenario& scenario :
       {Scenario{"erar", FabricKind::kRing, kRanks, 3498, true, false, 1},
        Scenario{"erar", FabricKind::kRing, kRanks, 1500, true, false, 4},
        Scenario{"erar", FabricKind::kSwitch, kRanks, 576, true, false},
        Scenario{"erar", FabricKind::kBridge, kRanks, 2000, true, true}}) {
    SCOPED_TRACE(testing::Message() << "MTU " << scenario.mtu << ", queues " << scenario.queues);
    FabricSpec spec;
    spec.name = "t" + std::to_string(getpid()) + "-types";
    spec.kind = scenario.fabric;
    spec.ranks = kRanks;
    spec.mtu = scenario.mtu;
    if (scenario.queues != 0) spec.queues = scenario.queues;
    spec.ephemeral = true;
    auto fabric = Fabric::up(spec);
    ASSERT_TRUE(fabric) << fabric.error().message();
    SharedBarrier barrier(kRanks);
    auto* hashes = static_cast<std::uint64_t*>(
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    const auto outcome = launch_ranks(*fabric, {}, [&](unsigned rank) {
      auto backend = open_backend(scenario, fabric->endpoint(rank));
      if (!backend) {
        std::fprintf(stderr, "rank %u: %s\n", rank, backend.error().message().c_str());
        return 1;
      }
      barrier.wait();
      int status = run_reductions(**backend, rank, kRanks, hashes[rank]);
      if (status == 0) status = run_disagreements(**backend, rank);
      // Right again after the errors; compressed calls find residuals, so the bits may be others.
      std::uint64_t again = 0;
      if (status == 0) status = run_reductions(**backend, rank, kRanks, again);
      barrier.wait();
      return status;
    });
    EXPECT_TRUE(outcome && outcome->status == 0)
        << "failed rank " << (outcome ? outcome->failed_rank : -1);
    if (first == 0) first = hashes[0];
    for (unsigned rank = 0; rank < kRanks; rank++) EXPECT_EQ(hashes[rank], first) << rank;
    munmap(hashes, 4096);
    const auto down = Fabric::down(spec.name);
    EXPECT_TRUE(down) << (down ? "" : down.error().message());
  }
}

std::vector<Scenario> setups() {
  std::vector<Scenario> made;
  for (const char* backend : {"erar", "tcp"})
    for (const FabricKind fabric : {FabricKind::kRing, FabricKind::kBridge, FabricKind::kSwitch})
      for (const unsigned ranks : {2U, 3U, 5U, 8U}) made.push_back({backend, fabric, ranks});
  made.push_back({"erar", FabricKind::kRing, 4, 1500, false});
  made.push_back({"tcp", FabricKind::kRing, 4, 1500, false});
  made.push_back({"erar", FabricKind::kBridge, 3, 1500, false});
  made.push_back({"erar", FabricKind::kRing, 3, 1500, true, true});
  made.push_back({"erar", FabricKind::kBridge, 3, 1500, true, true});
  made.push_back({"erar", FabricKind::kRing, 64, 3498});
  // More frames under way than a veth's queue of 256 holds: some are lost and sent again.
  made.push_back({"erar", FabricKind::kRing, 4, 1500, true, false, 1, 128});
  return made;
}

INSTANTIATE_TEST_SUITE_P(Fabrics, Allreduce, testing::ValuesIn(setups()), [](const auto& scenario) {
  const Scenario& s = scenario.param;
  return s.backend + "_" + name_of(s.fabric) + "_" + std::to_string(s.ranks) + "_mtu" +
         std::to_string(s.mtu) + (s.offloads ? "" : "_plain") + (s.generic_mode ? "_generic" : "") +
         (s.window != 0 ? "_window" + std::to_string(s.window) : "");
});

}  // namespace
}  // namespace erar
