// Rows, table, JSON and CSV: definitions of the numbers, and what a reader is told.
#include "experiments/bench/table.h"
#include "experiments/bench/report.h"
#include "experiments/bench/row.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace erar::bench {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

Row row_of(const std::string& backend, std::size_t bytes, std::vector<std::uint64_t> times_ns) {
  Row row;
  row.backend = backend;
  row.bytes = bytes;
  row.count = bytes / 4;
  set_times(row, std::move(times_ns), 4);
  return row;
}

Row failed_row(const std::string& backend, std::size_t bytes, const std::string& error) {
  Row row;
  row.backend = backend;
  row.bytes = bytes;
  row.error = error;
  return row;
}

Conditions conditions() {
  Conditions made;
  made.host = {"host", "6.1.0", "A CPU, of \"some\" kind", 2, "2024-01-01T00:00:00Z", 0.5};
  made.version = "1.2.3";
  made.commit = "abcdef0";
  made.options = *parse_bench_options({});
  made.fabric = new_fabric_spec(made.options);
  return made;
}

TEST(Row, MedianRangeAndBandwidths) {
  const Row odd = row_of("erar", 1'000'000, {3000, 1000, 2000});
  EXPECT_DOUBLE_EQ(odd.p50_us, 2);
  EXPECT_DOUBLE_EQ(odd.min_us, 1);
  EXPECT_DOUBLE_EQ(odd.max_us, 3);
  EXPECT_DOUBLE_EQ(odd.algbw_gbps, 500);  // 1 MB in 2 us
  EXPECT_DOUBLE_EQ(odd.busbw_gbps, 750);  // times 2 * 3 / 4
  EXPECT_DOUBLE_EQ(row_of("erar", 4, {1000, 4000, 2000, 3000}).p50_us, 2.5);
  EXPECT_DOUBLE_EQ(row_of("erar", 0, {1000}).algbw_gbps, 0);
}

TEST(Row, RatiosAreAgainstTcpAndOnlyWhereBothHaveNumbers) {
  const std::vector<Row> rows{row_of("erar", 1024, {100}), row_of("tcp", 1024, {250}),
                              row_of("erar", 4096, {100}), failed_row("tcp", 4096, "no"),
                              row_of("tcp", 16384, {100})};
  const std::vector<RatioLine> lines = ratios_to_reference(rows);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0].backend, "erar");
  ASSERT_EQ(lines[0].by_bytes.size(), 1U);
  EXPECT_EQ(lines[0].by_bytes[0].first, 1024U);
  EXPECT_DOUBLE_EQ(lines[0].by_bytes[0].second, 2.5);
  EXPECT_TRUE(ratios_to_reference({row_of("erar", 1024, {100})}).empty());
}

TEST(Row, WrongFailedOrNoRowsAreAFailure) {
  Row wrong = row_of("tcp", 4, {1});
  EXPECT_EQ(exit_status_of({wrong}), 0);
  wrong.wrong = 1;
  EXPECT_EQ(exit_status_of({row_of("tcp", 4, {1}), wrong}), 1);
  EXPECT_EQ(exit_status_of({failed_row("erar", 4, "no")}), 1);
  EXPECT_EQ(exit_status_of({}), 1);
}

TEST(Table, HeaderNamesTheConditionsAndUnits) {
  const std::string header = table_header(conditions());
  for (const char* part : {"1.2.3", "abcdef0", "6.1.0", "fabric ring", "4 ranks", "MTU 3498",
                           "offloads on", "cubic", "seed 1", "window of 16 frames\n", "size", "(B)",
                           "(us)", "(GB/s)", "(s/GB)", "#wrong", "agree"}) {
    EXPECT_THAT(header, HasSubstr(part));
  }
  std::istringstream lines(header);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_EQ(line.front(), '#') << line;
    EXPECT_LE(line.size(), 130U) << line;
  }
}

TEST(Table, RowHasACellForEachColumn) {
  std::istringstream cells(table_row(conditions(), row_of("erar", 1 << 20, {1'500'000})));
  std::vector<std::string> found;
  for (std::string cell; cells >> cell;) found.push_back(cell);
  EXPECT_THAT(found,
              ::testing::ElementsAre("1048576", "262144", "float32", "sum", "erar", "1500.0",
                                     "1500.0", "1500.0", "0.699", "1.05", "-", "0", "0.000"));
}

TEST(Table, AgreementIsTheMedianOrNone) {
  Row row = row_of("erar", 1 << 20, {1'500'000});
  set_agreement(row, {0, 0, 0});
  EXPECT_FALSE(row.agreement_us.has_value());
  set_agreement(row, {});
  EXPECT_FALSE(row.agreement_us.has_value());
  set_agreement(row, {12'000, 0, 12'500});
  EXPECT_EQ(row.agreement_us, 12.0);
  EXPECT_THAT(table_row(conditions(), row), HasSubstr(" 1.05      12.00       0 "));
  set_agreement(row, {0, 0, 12'500});  // most operations had nothing to agree on, but not all
  EXPECT_EQ(row.agreement_us, 0.0);
}

TEST(Table, HeaderSaysWhatIsNotAsByDefault) {
  Conditions asked = conditions();
  EXPECT_THAT(table_header(asked), Not(HasSubstr("# reduction")));
  EXPECT_THAT(table_header(asked), HasSubstr("magnitudes"));
  asked.options.reduction = {DataType::kBfloat16, ReduceOp::kSum, 0.25, NotFinite::kPropagate,
                             true};
  asked.options.checksum = false;
  const std::string header = table_header(asked);
  EXPECT_THAT(header, HasSubstr("# reduction: values scaled by 0.25 (--pre-scale); compressed"));
  EXPECT_THAT(header, HasSubstr("; NaN propagated"));
  EXPECT_THAT(header, HasSubstr("; no checksums"));
  EXPECT_THAT(header, HasSubstr("magnitudes"));
  asked.options.reduction = {DataType::kInt64, ReduceOp::kMax};
  EXPECT_THAT(table_header(asked), HasSubstr("# reduction: no checksums"));
  EXPECT_THAT(table_header(asked), Not(HasSubstr("magnitudes")));
}

TEST(Table, FailedRowSaysWhy) {
  const std::string text = table_row(conditions(), failed_row("erar", 1024, "attach XDP: no"));
  EXPECT_THAT(text, HasSubstr(" failed "));
  EXPECT_THAT(text, EndsWith("# erar 1K failed: attach XDP: no\n"));
}

// What the links did and what the ranks counted is below the row, whatever became of it.
TEST(Table, LinksAndCountersAreBelowTheRow) {
  Conditions asked = conditions();
  asked.options.counters = asked.options.fault_boxes = true;
  for (Row row : {row_of("erar", 1024, {1}), failed_row("erar", 1024, "rank 0: no")}) {
    row.counters = {{"lost", 3}};
    row.faults.values[ERAR_FAULT_DROPPED] = 7;
    const std::string text = table_row(asked, row);
    EXPECT_NE(text.front(), '#') << text;
    EXPECT_THAT(text, EndsWith("# erar 1K counters: lost=3\n#   links: dropped 7\n"));
  }
}

TEST(Table, WindowIsThatOfTheRanksOrTheOneAskedFor) {
  Conditions asked = conditions();
  asked.fabric.ranks = 64;
  EXPECT_THAT(table_header(asked), HasSubstr("window of 2 frames\n"));
  asked.options.window = 128;
  EXPECT_THAT(table_header(asked), HasSubstr("window of 128 frames (--window)\n"));
}

TEST(Table, CountersOnlyWhenAskedFor) {
  Conditions asked = conditions();
  Row row = row_of("erar", 1024, {1});
  row.counters = {{"packets", 12}};
  EXPECT_THAT(table_row(asked, row), Not(HasSubstr("packets")));
  asked.options.counters = true;
  EXPECT_THAT(table_row(asked, row), EndsWith("# erar 1K counters: packets=12\n"));
}

TEST(Table, FooterHasRatiosAndEndsWithTheVerdict) {
  std::vector<Row> rows{row_of("erar", 1024, {100}), row_of("tcp", 1024, {231}),
                        row_of("erar", 4096, {100}), row_of("tcp", 4096, {100})};
  std::string footer = table_footer(conditions(), rows);
  EXPECT_THAT(footer, HasSubstr("# tcp/erar time ratio: 1K 2.31  4K 1.00\n"));
  EXPECT_THAT(footer, EndsWith("\n# 0 wrong\n"));
  EXPECT_THAT(footer, Not(HasSubstr("bridge")));
  rows[0].wrong = 3;
  rows.push_back(failed_row("tcp", 16384, "no"));
  Conditions on_switch = conditions();
  on_switch.fabric.kind = FabricKind::kSwitch;
  footer = table_footer(on_switch, rows);
  EXPECT_THAT(footer, HasSubstr("# switch: tcp ran over a Linux bridge"));
  EXPECT_THAT(footer, EndsWith("\n# 3 WRONG, 1 of 5 rows FAILED\n"));
}

const std::vector<std::string> kRequiredFields{
    "backend",     "fabric",     "ranks",      "mtu",        "offloads",     "cc",
    "buffers",     "dtype",      "bytes",      "iters",      "time_us_p50",  "time_us_min",
    "time_us_max", "algbw_GBps", "busbw_GBps", "wrong",      "cpu_s_per_GB", "agreement_us_p50",
    "redop",       "pre_scale",  "compressed", "not_finite", "checksum",     "window_frames"};

TEST(Report, JsonHasContextAndRows) {
  Row row = row_of("erar", 1024, {2000});
  row.counters = {{"packets", 12}};
  set_agreement(row, {3000});
  Conditions asked = conditions();
  asked.options.reduction = {DataType::kFloat64, ReduceOp::kAverage};
  const auto report =
      nlohmann::json::parse(json_report(asked, {row, failed_row("tcp", 1024, "no\xff route")}));
  EXPECT_EQ(report["context"]["dtype"], "float64");
  EXPECT_EQ(report["context"]["checksum"], "on");
  EXPECT_EQ(report["context"]["window_frames"], 16);
  EXPECT_EQ(report["rows"][0]["window_frames"], 16);
  EXPECT_EQ(report["rows"][0]["agreement_us_p50"], 3.0);
  EXPECT_TRUE(report["rows"][1]["agreement_us_p50"].is_null());
  EXPECT_EQ(report["rows"][0]["redop"], "avg");
  EXPECT_EQ(report["rows"][0]["pre_scale"], 1.0);
  EXPECT_EQ(report["rows"][0]["compressed"], false);
  EXPECT_EQ(report["rows"][0]["not_finite"], "refuse");
  EXPECT_EQ(report["context"]["commit"], "abcdef0");
  EXPECT_EQ(report["context"]["seed"], 1);
  ASSERT_EQ(report["rows"].size(), 2U);
  for (const std::string& field : kRequiredFields) {
    EXPECT_TRUE(report["rows"][0].contains(field)) << field;
    EXPECT_TRUE(report["rows"][1].contains(field)) << field;
  }
  EXPECT_EQ(report["rows"][0]["time_us_p50"], 2.0);
  EXPECT_EQ(report["rows"][0]["offloads"], "on");
  EXPECT_EQ(report["rows"][0]["counters"]["packets"], 12);
  EXPECT_TRUE(report["rows"][1]["time_us_p50"].is_null());
  EXPECT_TRUE(report["rows"][1]["wrong"].is_null());
}

TEST(Report, CsvHasTheSameFields) {
  const std::string csv =
      csv_report(conditions(), {row_of("erar", 1024, {2000}), failed_row("tcp", 1024, "a, \"b\"")});
  std::istringstream lines(csv);
  std::string header, first, second;
  std::getline(lines, header);
  std::getline(lines, first);
  std::getline(lines, second);
  for (const std::string& field : kRequiredFields) {
    EXPECT_THAT("," + header + ",", HasSubstr("," + field + ","));
  }
  EXPECT_EQ(std::count(header.begin(), header.end(), ','),
            std::count(first.begin(), first.end(), ','));
  EXPECT_THAT(first, HasSubstr("erar,ring,4,3498,on,cubic,caller,"));
  // What the links did is said of failed rows, too.
  EXPECT_THAT(second, HasSubstr(",,,,,,,,,0,0,"));
  EXPECT_THAT(second, EndsWith(",\"a, \"\"b\"\"\""));
}

class ReportFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "report_XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(folder_), {}));
  }
  [[nodiscard]] static std::string content(const std::filesystem::path& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

  std::filesystem::path folder_;
};

TEST_F(ReportFiles, AppearsWholeOrNotAtAll) {
  const std::filesystem::path path = folder_ / "rows.csv";
  std::ofstream(path) << "old";
  {
    Result<ReportFile> file = ReportFile::open(path);
    ASSERT_TRUE(static_cast<bool>(file));
    EXPECT_EQ(content(path), "old");
  }
  EXPECT_EQ(files(), 1U);
  Result<ReportFile> file = ReportFile::open(path);
  ASSERT_TRUE(static_cast<bool>(file));
  ASSERT_TRUE(static_cast<bool>(file->commit("new")));
  EXPECT_EQ(content(path), "new");
  EXPECT_EQ(files(), 1U);
}

TEST_F(ReportFiles, FollowsLinksAndKeepsDevices) {
  std::filesystem::create_symlink("target", folder_ / "link");
  std::ofstream(folder_ / "target") << "old";
  Result<ReportFile> file = ReportFile::open(folder_ / "link");
  ASSERT_TRUE(static_cast<bool>(file));
  ASSERT_TRUE(static_cast<bool>(file->commit("new")));
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ / "link"));
  EXPECT_EQ(content(folder_ / "target"), "new");
  Result<ReportFile> device = ReportFile::open("/dev/null");
  ASSERT_TRUE(static_cast<bool>(device));
  ASSERT_TRUE(static_cast<bool>(device->commit("new")));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST_F(ReportFiles, RefusalsNameThePath) {
  for (const std::string& path : {(folder_ / "missing" / "x").string(), folder_.string()}) {
    const Result<ReportFile> file = ReportFile::open(path);
    ASSERT_FALSE(static_cast<bool>(file));
    EXPECT_THAT(file.error().message(), HasSubstr(path));
  }
}

}  // namespace
}  // namespace erar::bench
