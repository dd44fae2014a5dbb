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
  EXPECT_EQ(options->reduction.type, DataType::kFloat32);
  EXPECT_EQ(options->reduction.op, ReduceOp::kSum);
  EXPECT_EQ(options->reduction.pre_scale, 1);
  EXPECT_EQ(options->reduction.not_finite, NotFinite::kRefuse);
  EXPECT_FALSE(options->reduction.compressed);
  EXPECT_TRUE(options->checksum);
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
                      Refusal{&BenchArguments::dtype, "half", "--dtype",
                              "float16, float32, float64, bfloat16"},
                      Refusal{&BenchArguments::dtype, "", "--dtype", "must be int8, uint8"},
                      Refusal{&BenchArguments::op, "prod", "--op", "sum, avg, min, max"},
                      Refusal{&BenchArguments::pre_scale, "two", "--pre-scale", "a number"},
                      Refusal{&BenchArguments::pre_scale, "nan", "--pre-scale", "a number"},
                      Refusal{&BenchArguments::pre_scale, "inf", "--pre-scale", "a number"},
                      Refusal{&BenchArguments::pre_scale, "1e31", "--pre-scale", "1e-30 to 1e30"},
                      Refusal{&BenchArguments::not_finite, "keep", "--not-finite", "propagate"},
                      Refusal{&BenchArguments::checksum, "yes", "--checksum", "off"},
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
                      Refusal{&BenchArguments::loss, "1.5", "--loss", "0 to 1"},
                      Refusal{&BenchArguments::loss, "nan", "--loss", "0 to 1"},
                      Refusal{&BenchArguments::duplicate, "-0.1", "--dup", "0 to 1"},
                      Refusal{&BenchArguments::reorder, "x", "--reorder", "0 to 1"},
                      Refusal{&BenchArguments::truncate, "2", "--truncate", "0 to 1"},
                      Refusal{&BenchArguments::burst, "1001", "--burst", "1 to 1000"},
                      Refusal{&BenchArguments::hold, "0", "--hold", "1 to 15"},
                      Refusal{&BenchArguments::hold, "16", "--hold", "1 to 15"},
                      Refusal{&BenchArguments::fabric, "", "--fabric", "ring"}));

std::string refusal_of(const BenchArguments& arguments) {
  const Result<BenchOptions> options = parse_bench_options(arguments);
  return options ? "" : options.error().message();
}

TEST(BenchOptions, EveryTypeWithEveryOperation) {
  for (const DataType type : kDataTypes) {
    for (const ReduceOp op : kReduceOps) {
      BenchArguments arguments;
      arguments.dtype = name_of(type);
      arguments.op = name_of(op);
      const Result<BenchOptions> options = parse_bench_options(arguments);
      ASSERT_TRUE(static_cast<bool>(options)) << options.error().message();
      EXPECT_EQ(options->reduction.type, type);
      EXPECT_EQ(options->reduction.op, op);
    }
  }
}

TEST(BenchOptions, PreScaleFitsTypeAndOperation) {
  BenchArguments arguments;
  arguments.pre_scale = "0.25";
  Result<BenchOptions> options = parse_bench_options(arguments);
  ASSERT_TRUE(static_cast<bool>(options));
  EXPECT_EQ(options->reduction.pre_scale, 0.25);
  for (const ReduceOp op : {ReduceOp::kAverage, ReduceOp::kMin, ReduceOp::kMax}) {
    arguments.op = name_of(op);
    EXPECT_THAT(refusal_of(arguments), HasSubstr("--pre-scale 0.25: is for --op sum"));
  }
  arguments.op = "sum";
  for (const char* type : {"int8", "uint8", "int32", "uint32", "int64", "uint64"}) {
    arguments.dtype = type;
    arguments.pre_scale = "-3";
    EXPECT_EQ(refusal_of(arguments), "");
    for (const char* factor : {"2.5", "1e16"}) {
      arguments.pre_scale = factor;
      EXPECT_THAT(refusal_of(arguments), HasSubstr("must be a whole number from -2^53 to 2^53"));
    }
  }
  arguments.dtype = "float16";
  arguments.pre_scale = "4";
  EXPECT_EQ(refusal_of(arguments), "");
  arguments.pre_scale = "-4.5";
  EXPECT_THAT(refusal_of(arguments), HasSubstr("float16"));
}

TEST(BenchOptions, CompressedIsForErarsFloatSums) {
  BenchArguments arguments;
  arguments.compressed = true;
  EXPECT_THAT(refusal_of(arguments), HasSubstr("--compressed: the tcp backend cannot"));
  arguments.backends = "erar";
  for (const char* type : {"float32", "float16", "bfloat16"}) {
    arguments.dtype = type;
    for (const char* op : {"sum", "avg"}) {
      arguments.op = op;
      const Result<BenchOptions> options = parse_bench_options(arguments);
      ASSERT_TRUE(static_cast<bool>(options)) << options.error().message();
      EXPECT_TRUE(options->reduction.compressed);
    }
    for (const char* op : {"min", "max"}) {
      arguments.op = op;
      EXPECT_EQ(refusal_of(arguments),
                std::string("--compressed: is for --op sum and avg, not ") + op);
    }
  }
  arguments.op = "sum";
  for (const char* type : {"int8", "uint8", "int32", "uint32", "int64", "uint64", "float64"}) {
    arguments.dtype = type;
    EXPECT_THAT(refusal_of(arguments), HasSubstr(std::string("bfloat16, not ") + type));
  }
}

TEST(BenchOptions, NotFiniteAndChecksum) {
  BenchArguments arguments;
  arguments.not_finite = "propagate";
  arguments.checksum = "off";
  const Result<BenchOptions> options = parse_bench_options(arguments);
  ASSERT_TRUE(static_cast<bool>(options));
  EXPECT_EQ(options->reduction.not_finite, NotFinite::kPropagate);
  EXPECT_FALSE(options->checksum);
}

TEST(BenchOptions, Faults) {
  BenchArguments arguments;
  EXPECT_FALSE(parse_bench_options(arguments)->fault_boxes);
  arguments.loss = "0";
  ASSERT_TRUE(static_cast<bool>(parse_bench_options(arguments)));
  EXPECT_TRUE(parse_bench_options(arguments)->fault_boxes) << "boxes that do nothing";
  EXPECT_FALSE(parse_bench_options(arguments)->faults.any());
  arguments.burst = "3";
  EXPECT_THAT(refusal_of(arguments), HasSubstr("--burst: is for --loss above 0"));
  arguments.loss = "0.25";
  arguments.hold = "15";
  EXPECT_THAT(refusal_of(arguments), HasSubstr("--hold: is for --reorder above 0"));
  arguments.reorder = "0.5";
  arguments.seed = "9";
  const Result<BenchOptions> options = parse_bench_options(arguments);
  ASSERT_TRUE(static_cast<bool>(options));
  EXPECT_EQ(options->faults.loss, 0.25);
  EXPECT_EQ(options->faults.burst_frames, 3U);
  EXPECT_EQ(options->faults.reorder, 0.5);
  EXPECT_EQ(options->faults.hold_frames, 15U);
  EXPECT_EQ(options->faults.seed, 9U);
  EXPECT_EQ(faults_text(options->faults), "loss 0.25 in bursts of 3, reorder 0.5 behind up to 15");
  EXPECT_EQ(settings_of(options->faults).hold_frames, 15U);
}

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
