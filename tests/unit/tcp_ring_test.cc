// The TCP baseline over loopback: exact sums, and errors that name the peer in place of hanging.
#include "emu/baseline/tcp_ring.h"

#include "core/clock.h"
#include "core/unique_fd.h"
#include "tests/unit/loopback_ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <type_traits>
#include <vector>

namespace erar {
namespace {

// Large values, so that int32 sums wrap around from two ranks on.
std::int32_t int_input(unsigned rank, std::size_t i) {
  return static_cast<std::int32_t>(0x7fff0000U + 2654435761U * static_cast<std::uint32_t>(i) +
                                   rank * 40503U);
}

// Small integers, whose float sums are exact in any order.
float float_input(unsigned rank, std::size_t i) {
  return static_cast<float>(static_cast<int>((i * 31 + rank * 17) % 2001) - 1000);
}

template <class T>
T input_value(unsigned rank, std::size_t i) {
  if constexpr (std::is_same_v<T, float>) return float_input(rank, i);
  if constexpr (std::is_same_v<T, std::int32_t>) return int_input(rank, i);
}

template <class T>
T expected_value(unsigned ranks, std::size_t i) {
  if constexpr (std::is_same_v<T, float>) {
    float sum = 0;
    for (unsigned rank = 0; rank < ranks; ++rank) sum += float_input(rank, i);
    return sum;
  } else {
    std::uint32_t sum = 0;
    for (unsigned rank = 0; rank < ranks; ++rank) {
      sum += static_cast<std::uint32_t>(int_input(rank, i));
    }
    return static_cast<T>(sum);
  }
}

template <class T>
constexpr DataType kTypeOf = std::is_same_v<T, float> ? DataType::kFloat32 : DataType::kInt32;

template <class T>
void fill(T* data, unsigned rank, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) data[i] = input_value<T>(rank, i);
}

template <class T>
std::size_t wrong_sums(const T* data, unsigned ranks, std::size_t count) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i) wrong += !(data[i] == expected_value<T>(ranks, i));
  return wrong;
}

template <class T>
std::size_t wrong_inputs(const T* data, unsigned rank, std::size_t count) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i) wrong += !(data[i] == input_value<T>(rank, i));
  return wrong;
}

class TcpRingSums : public testing::TestWithParam<std::tuple<unsigned, std::size_t>> {
 protected:
  template <class T>
  void check_rank(Backend& backend, unsigned rank) const {
    const auto [ranks, count] = GetParam();
    std::vector<T> input(count);
    std::vector<T> output(count);
    fill(input.data(), rank, count);
    auto done = backend.allreduce(input.data(), output.data(), count, {kTypeOf<T>, ReduceOp::kSum});
    ASSERT_TRUE(done) << done.error().message();
    EXPECT_EQ(wrong_sums(output.data(), ranks, count), 0U) << "out of place, rank " << rank;
    EXPECT_EQ(wrong_inputs(input.data(), rank, count), 0U) << "input of rank " << rank;

    done = backend.allreduce(input.data(), input.data(), count, {kTypeOf<T>, ReduceOp::kSum});
    ASSERT_TRUE(done) << done.error().message();
    EXPECT_EQ(wrong_sums(input.data(), ranks, count), 0U) << "in place, rank " << rank;

    // Registered, and not at a page's begin.
    auto memory = backend.allocate((count + 1) * sizeof(T));
    ASSERT_TRUE(memory) << memory.error().message();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory->data()) % 64, 0U);
    T* registered = reinterpret_cast<T*>(memory->data()) + 1;
    EXPECT_TRUE(std::all_of(memory->begin(), memory->end(),
                            [](std::byte value) { return value == std::byte{0}; }));
    fill(registered, rank, count);
    done = backend.allreduce(registered, registered, count, {kTypeOf<T>, ReduceOp::kSum});
    ASSERT_TRUE(done) << done.error().message();
    EXPECT_EQ(wrong_sums(registered, ranks, count), 0U) << "registered, rank " << rank;
  }
};

TEST_P(TcpRingSums, AreExact) {
  const unsigned ranks = std::get<0>(GetParam());
  Backends backends = open_ring(ranks, test_options());
  ASSERT_TRUE(complete(backends));
  on_all_ranks(ranks, [&](unsigned rank) {
    check_rank<std::int32_t>(*backends[rank], rank);
    check_rank<float>(*backends[rank], rank);
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, TcpRingSums,
                         testing::Combine(testing::Values(1U, 2U, 3U, 5U, 8U),
                                          testing::Values(0U, 1U, 3U, 1000U, 1000003U)),
                         [](const auto& instance) {
                           return "ranks" + std::to_string(std::get<0>(instance.param)) + "count" +
                                  std::to_string(std::get<1>(instance.param));
                         });

// Large operations send pages by reference, so a result would show what a neighbour wrote after its
// own operation had returned.
TEST(TcpRing, BuffersAreFreeOnReturn) {
  constexpr unsigned kRanks = 4;
  constexpr std::size_t kCount = 700'001;
  Backends backends = open_ring(kRanks, test_options());
  ASSERT_TRUE(complete(backends));
  on_all_ranks(kRanks, [&](unsigned rank) {
    std::vector<float> input(kCount);
    std::vector<float> output(kCount);
    for (int round = 0; round < 12; ++round) {
      const bool in_place = round % 2 == 1;
      fill(input.data(), rank, kCount);
      float* result = in_place ? input.data() : output.data();
      auto done = backends[rank]->allreduce(input.data(), result, kCount,
                                            {DataType::kFloat32, ReduceOp::kSum});
      ASSERT_TRUE(done) << done.error().message();
      const std::vector<float> kept(result, result + kCount);
      std::fill(input.begin(), input.end(), -1e9F);
      std::fill(output.begin(), output.end(), -1e9F);
      ASSERT_EQ(wrong_sums(kept.data(), kRanks, kCount), 0U) << "round " << round;
    }
  });
}

// Operations of all sizes one after the other stay apart, though some ranks run ahead.
TEST(TcpRing, OperationsFollowEachOther) {
  constexpr unsigned kRanks = 3;
  Backends backends = open_ring(kRanks, test_options());
  ASSERT_TRUE(complete(backends));
  on_all_ranks(kRanks, [&](unsigned rank) {
    for (std::size_t count : {5U, 0U, 300'000U, 1U, 17U, 250'000U, 2U, 70'000U, 4'096U}) {
      std::vector<std::int32_t> data(count);
      fill(data.data(), rank, count);
      auto done = backends[rank]->allreduce(data.data(), data.data(), count,
                                            {DataType::kInt32, ReduceOp::kSum});
      ASSERT_TRUE(done) << done.error().message();
      ASSERT_EQ(wrong_sums(data.data(), kRanks, count), 0U) << count;
    }
  });
}

TEST(TcpRing, CountsTheBytesOfTheAlgorithm) {
  constexpr unsigned kRanks = 4;
  constexpr std::size_t kCount = 64'000;
  constexpr std::uint64_t kHeaderBytes = 32;
  Backends backends = open_ring(kRanks, test_options());
  ASSERT_TRUE(complete(backends));
  on_all_ranks(kRanks, [&](unsigned rank) {
    std::vector<float> data(kCount);
    auto done = backends[rank]->allreduce(data.data(), data.data(), kCount,
                                          {DataType::kFloat32, ReduceOp::kSum});
    ASSERT_TRUE(done) << done.error().message();
    for (const auto& [name, value] : backends[rank]->counters()) {
      if (name == "bytes_sent" || name == "bytes_received") {
        EXPECT_EQ(value, kHeaderBytes + kCount * 4 * 2 * (kRanks - 1) / kRanks) << name;
      }
    }
  });
}

// What each rank's allreduce said; nullopt where it succeeded or was not called.
struct Outcome {
  std::vector<std::optional<Error>> errors;
  std::uint64_t took_ns = 0;
};

constexpr std::size_t kAbsent = SIZE_MAX;  // as count: this rank does not call

Outcome call_all(Backends& backends, const std::vector<std::size_t>& counts,
                 const std::vector<DataType>& types) {
  Outcome outcome;
  outcome.errors.resize(counts.size());
  const std::uint64_t begin_ns = monotonic_ns();
  on_all_ranks(static_cast<unsigned>(counts.size()), [&](unsigned rank) {
    if (counts[rank] == kAbsent) return;
    std::vector<float> data(counts[rank]);
    auto done = backends[rank]->allreduce(data.data(), data.data(), counts[rank],
                                          {types[rank], ReduceOp::kSum});
    if (!done) outcome.errors[rank] = done.error();
  });
  outcome.took_ns = monotonic_ns() - begin_ns;
  return outcome;
}

class TcpRingDeadPeer : public testing::TestWithParam<std::size_t> {};

TEST_P(TcpRingDeadPeer, IsNamedByItsNeighbours) {
  const std::size_t count = GetParam();
  for (const unsigned ranks : {2U, 3U, 5U}) {
    const TcpOptions options = test_options();
    Backends backends = open_ring(ranks, options);
    ASSERT_TRUE(complete(backends));
    backends[1].reset();
    std::vector<std::size_t> counts(ranks, count);
    counts[1] = kAbsent;
    Outcome outcome = call_all(backends, counts, std::vector(ranks, DataType::kFloat32));
    EXPECT_LT(outcome.took_ns, options.timeout_ns / 2) << "a closed connection shows at once";
    for (unsigned rank = 0; rank < ranks; ++rank) {
      if (rank == 1) continue;
      ASSERT_TRUE(outcome.errors[rank].has_value()) << "rank " << rank << " of " << ranks;
    }
    // Also where the other neighbour noticed first and has hung up on this one.
    for (const unsigned rank : {0U, 2U % ranks}) {
      const std::string message = outcome.errors[rank]->message();
      EXPECT_NE(message.find("rank 1"), std::string::npos) << message;
    }
    // The first error stays.
    float one = 1;
    auto again = backends[0]->allreduce(&one, &one, 1, {DataType::kFloat32, ReduceOp::kSum});
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().message(), outcome.errors[0]->message());
  }
}

TEST_P(TcpRingDeadPeer, ThatOnlyKeepsSilentIsAnErrorAfterTheTimeout) {
  const std::size_t count = GetParam();
  TcpOptions options = test_options();
  options.timeout_ns = kSecondNs;
  // Rank 0, which hears from the silent one only through rank 2, is more patient: else either may
  // be the first to give up and to close its sockets.
  TcpOptions patient = options;
  patient.timeout_ns = 10 * kSecondNs;
  Backends backends(3);
  on_all_ranks(3, [&](unsigned rank) {
    auto backend = open_tcp_backend(loopback_endpoint(rank, 3), rank == 0 ? patient : options);
    ASSERT_TRUE(backend) << backend.error().message();
    backends[rank] = std::move(*backend);
  });
  ASSERT_TRUE(complete(backends));
  Outcome outcome = call_all(backends, {count, kAbsent, count}, std::vector(3, DataType::kFloat32));
  EXPECT_GE(outcome.took_ns, options.timeout_ns);
  EXPECT_LT(outcome.took_ns, patient.timeout_ns);
  expect_error(outcome.errors[2], ETIMEDOUT, "rank 1 ");
  ASSERT_TRUE(outcome.errors[0].has_value());
}

INSTANTIATE_TEST_SUITE_P(Counts, TcpRingDeadPeer, testing::Values(8U, 4'000'000U));

TEST(TcpRing, DifferingCountsAreErrorsOnTheRanksConcerned) {
  for (const std::size_t odd : {std::size_t{0}, std::size_t{999}, std::size_t{400'000}}) {
    Backends backends = open_ring(4, test_options());
    ASSERT_TRUE(complete(backends));
    Outcome outcome =
        call_all(backends, {1000, odd, 1000, 1000}, std::vector(4, DataType::kFloat32));
    EXPECT_LT(outcome.took_ns, 5 * kSecondNs);
    expect_error(outcome.errors[2], EPROTO, "rank 1 calls sum of " + std::to_string(odd));
    // Rank 2 may have hung up before rank 0 called.
    ASSERT_TRUE(outcome.errors[1].has_value());
    if (outcome.errors[1]->code == EPROTO) {
      expect_error(outcome.errors[1], EPROTO, "rank 0 calls sum of 1000 float32");
    } else {
      expect_error(outcome.errors[1], outcome.errors[1]->code, "rank 2");
    }
    EXPECT_TRUE(outcome.errors[0].has_value());
    EXPECT_TRUE(outcome.errors[3].has_value());
  }
}

TEST(TcpRing, DifferingTypesAreErrors) {
  Backends backends = open_ring(2, test_options());
  ASSERT_TRUE(complete(backends));
  Outcome outcome = call_all(backends, {64, 64}, {DataType::kFloat32, DataType::kInt32});
  expect_error(outcome.errors[0], EPROTO, "rank 1 calls sum of 64 int32");
  expect_error(outcome.errors[1], EPROTO, "this rank sum of 64 int32");
}

TEST(TcpRing, UnknownCongestionControlIsNamed) {
  TcpOptions options = test_options();
  options.congestion_control = "no_such_cc";
  auto backend = open_tcp_backend(loopback_endpoint(0, 2), options);
  ASSERT_FALSE(backend);
  EXPECT_EQ(backend.error().code, ENOENT);
  EXPECT_NE(backend.error().message().find("no_such_cc"), std::string::npos);
}

TEST(TcpRing, MissingSuccessorIsNamed) {
  TcpOptions options = test_options();
  options.timeout_ns = kSecondNs / 5;
  auto backend = open_tcp_backend(loopback_endpoint(1, 3), options);
  ASSERT_FALSE(backend);
  EXPECT_EQ(backend.error().code, ETIMEDOUT);
  EXPECT_NE(backend.error().message().find("rank 2"), std::string::npos)
      << backend.error().message();
}

TEST(TcpRing, TakenPortIsAnError) {
  const TcpOptions options = test_options();
  const UniqueFd taken(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(options.port);
  address.sin_addr.s_addr = htonl(loopback_endpoint(0, 2).listen_ipv4);
  ASSERT_EQ(::bind(taken.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(taken.get(), 1), 0);
  auto backend = open_tcp_backend(loopback_endpoint(0, 2), options);
  ASSERT_FALSE(backend);
  EXPECT_EQ(backend.error().code, EADDRINUSE) << backend.error().message();
}

// Both ends of the wrong connection say who they found in place of whom.
TEST(TcpRing, WrongNeighbourIsRefused) {
  TcpOptions options = test_options();
  options.timeout_ns = 2 * kSecondNs;
  std::vector<std::string> messages(2);
  on_all_ranks(2, [&](unsigned place) {
    RingEndpoint endpoint = loopback_endpoint(place, 2);
    endpoint.ranks = 4;
    endpoint.rank = place == 0 ? 0 : 3;  // of rank 0 the predecessor indeed, but not the successor
    auto backend = open_tcp_backend(endpoint, options);
    if (!backend) messages[place] = backend.error().message();
  });
  EXPECT_NE(messages[0].find("rank 3 of 4 greets where rank 1 of 4 was expected"),
            std::string::npos)
      << messages[0];
  EXPECT_NE(messages[1].find("rank 0 of 4 greets where rank 2 of 4 was expected"),
            std::string::npos)
      << messages[1];
}

TEST(TcpRing, StrangerIsRefused) {
  TcpOptions options = test_options();
  options.timeout_ns = 2 * kSecondNs;
  const RingEndpoint endpoint = loopback_endpoint(0, 2);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(options.port);
  // In place of the successor: listens, so that rank 0 gets on. In place of the predecessor: talks
  // HTTP.
  address.sin_addr.s_addr = htonl(endpoint.next_ipv4);
  const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  std::string message;
  std::thread rank([&] {
    auto backend = open_tcp_backend(endpoint, options);
    if (!backend) message = backend.error().message();
  });
  const UniqueFd caller(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  address.sin_addr.s_addr = htonl(endpoint.listen_ipv4);
  int connected = -1;
  for (int attempt = 0; attempt < 1000 && connected != 0; ++attempt) {
    connected =
        ::connect(caller.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
    if (connected != 0) usleep(1000);
  }
  const std::string request = "GET / HTTP/1.1\r\n\r\n";
  EXPECT_EQ(::send(caller.get(), request.data(), request.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(request.size()));
  rank.join();
  EXPECT_NE(message.find("no eRAR rank greets in place of rank 1"), std::string::npos) << message;
}

}  // namespace
}  // namespace erar
