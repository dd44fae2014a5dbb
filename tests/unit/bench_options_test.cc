// The bench's options: what is taken, and that each refusal names option, value and what is
// allowed.
#include "experiments/bench/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace erar::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::size_t> sizes(const std::string& text) {
  const Result<std::vector<std::size_t>> parsed = parse_sizes("--sizes", text);
  EXPECT_TRUE(static_cast<bool>(parsed)) << text;
  return parsed ? *parsed : std::vector<std::size_t>{};
}

TEST(BenchOptions, Sizes) {
  EXPECT_THAT(sizes("0"), ElementsAre(0));
  EXPECT_THAT(sizes("1000"), ElementsAre(1000));
  EXPECT_THAT(sizes("64k"), ElementsAre(65536));
  EXPECT_THAT(sizes("4G"), ElementsAre(std::size_t{1} << 32U));
  EXPECT_THAT(sizes("1K:1M"), ElementsAre(1024, 4096, 16384, 65536, 262144, 1048576));
  EXPECT_THAT(sizes("1K:10K:2"), ElementsAre(1024, 2048, 4096, 8192));
  EXPECT_THAT(sizes("4:4"), ElementsAre(4));
  EXPECT_THAT(sizes("7,1K:4K,0"), ElementsAre(7, 1024, 4096, 0));
}

TEST(BenchOptions, BadSizes) {
  for (const char* text :
       {"", "x", "1X", "-1", "1.5M", "K", "5G", "99999999999999999999", "1K:", ":1K", "0:1K",
        "4K:1K", "1K:1M:1", "1K:1M:0", "1K:1M:x", "1:2:3:4", "1,,2", "1K:4G:2,,", " 1K"}) {
    const Result<std::vector<std::size_t>> parsed = parse_sizes("--sizes", text);
    ASSERT_FALSE(static_cast<bool>(parsed)) << "'" << text << "'";
    EXPECT_THAT(parsed.error().message(), HasSubstr("--sizes "));
    EXPECT_THAT(parsed.error().message(), Not(HasSubstr("\n")));
  }
}

TEST(BenchOptions, SizeText) {
  EXPECT_EQ(size_text(0), "0");
  EXPECT_EQ(size_text(1000), "1000");
  EXPECT_EQ(size_text(1024), "1K");
  EXPECT_EQ(size_text(1536), "1536");
  EXPECT_EQ(size_text(3U << 20U), "3M");
  EXPECT_EQ(size_text(std::size_t{4} << 30U), "4G");
}

TEST(BenchOptions, Defaults) {
  const Result<BenchOptions> options = parse_bench_options({});
  ASSERT_TRUE(static_cast<bool>(options)) << options.error().message();
  EXPECT_THAT(options->backends, ElementsAre("erar", "tcp"));
  EXPECT_EQ(options->sizes.size(), 9U);
  EXPECT_EQ(options->type, DataType::kFloat32);
  EXPECT_FALSE(options->registered);
  EXPECT_FALSE(options->in_place);
  EXPECT_FALSE(options->pin);
  EXPECT_EQ(options->timeout_ns, 10'000'000'000U);
  EXPECT_EQ(options->group_bytes, 1U << 20U);
  const FabricSpec spec = new_fabric_spec(*options);
  EXPECT_EQ(spec.kind, FabricKind::kRing);
  EXPECT_EQ(spec.ranks, 4U);
  EXPECT_EQ(spec.mtu, 3498U);
  EXPECT_TRUE(spec.offloads);
  EXPECT_TRUE(spec.ephemeral);
  EXPECT_THAT(spec.name, HasSubstr("bench-"));
}

TEST(BenchOptions, RegisteredIsInPlace) {
  BenchArguments arguments;
  arguments.buffers = "registered";
  const Result<BenchOptions> options = parse_bench_options(arguments);
  ASSERT_TRUE(static_cast<bool>(options));
  EXPECT_TRUE(options->in_place);
  arguments.in_place = true;
  EXPECT_FALSE(static_cast<bool>(parse_bench_options(arguments)));
}

struct Refusal {
  std::string BenchArguments::*field;
  const char* value;
  const char* option;
  const char* allowed;
};

class BenchRefusals : public ::testing::TestWithParam<Refusal> {};

TEST_P(BenchRefusals, NamesOptionValueAndWhatIsAllowed) {
  BenchArguments arguments;
  arguments.*GetParam().field = GetParam().value;
  const Result<BenchOptions> options = parse_bench_options(arguments);
  ASSERT_FALSE(static_cast<bool>(options));
  const std::string message = options.error().message();
  EXPECT_THAT(message, HasSubstr(GetParam().option));
  EXPECT_THAT(message, HasSubstr(GetParam().value));
  EXPECT_THAT(message, HasSubstr(GetParam().allowed));
  EXPECT_THAT(message, Not(HasSubstr("\n")));
}

INSTANTIATE_TEST_SUITE_P(
    All, BenchRefusals,
    ::testing::Values(Refusal{&BenchArguments::ranks, "1", "--ranks", "2 to 64"},
                      Refusal{&BenchArguments::ranks, "65", "--ranks", "2 to 64"},
                      Refusal{&BenchArguments::ranks, "four", "--ranks", "2 to 64"},
                      Refusal{&BenchArguments::ranks, "-4", "--ranks", "2 to 64"},
                      Refusal{&BenchArguments::mtu, "575", "--mtu", "576 to 65535"},
                      Refusal{&BenchArguments::mtu, "65536", "--mtu", "576 to 65535"},
                      Refusal{&BenchArguments::mtu, "3507", "--mtu", "3506"},
                      Refusal{&BenchArguments::offloads, "yes", "--offloads", "on"},
                      Refusal{&BenchArguments::queues, "65", "--queues", "0 to 64"},
                      Refusal{&BenchArguments::backends, "mpi", "--backends", "erar"},
                      Refusal{&BenchArguments::backends, "tcp,tcp", "--backends", "twice"},
                      Refusal{&BenchArguments::backends, "", "--backends", "tcp"},
                      Refusal{&BenchArguments::sizes, "1Q", "--sizes", "64K"},
                      Refusal{&BenchArguments::dtype, "float64", "--dtype", "float32"},
                      Refusal{&BenchArguments::op, "max", "--op", "sum"},
                      Refusal{&BenchArguments::iters, "0", "--iters", "1 to"},
                      Refusal{&BenchArguments::iters, "1000001", "--iters", "1 to"},
                      Refusal{&BenchArguments::warmup, "-1", "--warmup", "0 to"},
                      Refusal{&BenchArguments::buffers, "mine", "--buffers", "registered"},
                      Refusal{&BenchArguments::cc, "", "--cc", "cubic"},
                      Refusal{&BenchArguments::mode, "skb", "--mode", "generic"},
                      Refusal{&BenchArguments::group, "1", "--group", "4K"},
                      Refusal{&BenchArguments::timeout, "0", "--timeout", "86400"},
                      Refusal{&BenchArguments::timeout, "nan", "--timeout", "86400"},
                      Refusal{&BenchArguments::pin, "1", "--pin", "on"},
                      Refusal{&BenchArguments::seed, "0x1", "--seed", "0 to"},
                      Refusal{&BenchArguments::fabric, "", "--fabric", "ring"}));

TEST(BenchOptions, LargeMtuIsForGenericModeAndTcp) {
  BenchArguments arguments;
  arguments.mtu = "9000";
  EXPECT_FALSE(static_cast<bool>(parse_bench_options(arguments)));
  arguments.mode = "generic";
  EXPECT_TRUE(static_cast<bool>(parse_bench_options(arguments)));
  arguments.mode = "native";
  arguments.backends = "tcp";
  EXPECT_TRUE(static_cast<bool>(parse_bench_options(arguments)));
}

TEST(BenchOptions, MustAgreeWithTheFabricThatIsUp) {
  BenchArguments arguments;
  arguments.fabric = "mine";
  arguments.ranks = "4";
  const Result<BenchOptions> options = parse_bench_options(arguments);
  ASSERT_TRUE(static_cast<bool>(options));
  FabricSpec fabric;
  fabric.name = "mine";
  EXPECT_TRUE(static_cast<bool>(check_against_fabric(*options, fabric)));
  fabric.mtu = 9000;
  EXPECT_FALSE(static_cast<bool>(check_against_fabric(*options, fabric)));
  fabric.mtu = 1500;
  fabric.ranks = 8;
  const Result<void> refused = check_against_fabric(*options, fabric);
  ASSERT_FALSE(static_cast<bool>(refused));
  EXPECT_THAT(refused.error().message(), HasSubstr("--ranks 4: fabric mine has 8"));
}

TEST(BenchOptions, OneFileCannotBeBothReports) {
  BenchArguments arguments;
  arguments.json = arguments.csv = "x";
  EXPECT_FALSE(static_cast<bool>(parse_bench_options(arguments)));
}

}  // namespace
}  // namespace erar::bench
