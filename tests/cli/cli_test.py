#!/usr/bin/env python3
"""The command `erar` from outside: exit statuses, one-line errors, reports, and nothing left behind.

Usage: cli_test.py PATH_OF_ERAR [unittest options]. Needs root.
"""
import csv
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

from commands import take_commands

ERAR = ""
ROW_FIELDS = ("backend fabric ranks mtu offloads cc buffers dtype bytes iters time_us_p50 "
              "time_us_min time_us_max algbw_GBps busbw_GBps wrong cpu_s_per_GB redop pre_scale "
              "compressed not_finite checksum agreement_us_p50 window_frames").split()
TYPES = ("int8 uint8 int32 uint32 int64 uint64 float16 float32 float64 bfloat16").split()
OPERATIONS = "sum avg min max".split()
BAD_BENCH_ARGUMENTS = [
    # option, value, what the refusal must also say
    ("--ranks", "1", "2 to 64"),
    ("--ranks", "65", "2 to 64"),
    ("--ranks", "x", "2 to 64"),
    ("--mtu", "100", "576 to 65535"),
    ("--mtu", "3507", "3506"),
    ("--backends", "erar,nccl", "tcp"),
    ("--sizes", "1Q", "bytes"),
    ("--sizes", "1M:1K", "range"),
    ("--iters", "0", "1 to"),
    ("--warmup", "-1", "0 to"),
    ("--dtype", "half", "float16, float32, float64, bfloat16"),
    ("--dtype", "double", "int8, uint8, int32, uint32, int64, uint64"),
    ("--op", "prod", "sum, avg, min, max"),
    ("--pre-scale", "half", "number"),
    ("--pre-scale", "nan", "number"),
    ("--not-finite", "ignore", "propagate"),
    ("--checksum", "maybe", "off"),
    ("--buffers", "none", "registered"),
    ("--offloads", "maybe", "on"),
    ("--mode", "skb", "native"),
    ("--group", "3", "4K"),
    ("--group", "1G", "256M"),
    ("--timeout", "0", "seconds"),
    ("--ranks", "", "empty"),
    ("--mtu", "", "empty"),
    ("--window", "1", "2 to 128"),
    ("--window", "129", "2 to 128"),
]
CONTRADICTIONS = [
    # arguments, what the refusal must say
    (["--pre-scale", "2", "--op", "avg"], ["--pre-scale 2", "--op sum", "avg"]),
    (["--pre-scale", "0.5", "--op", "max"], ["--pre-scale 0.5", "--op sum", "max"]),
    (["--pre-scale", "0.5", "--dtype", "int32"], ["--pre-scale 0.5", "whole number", "int32"]),
    (["--pre-scale", "5", "--dtype", "float16"], ["--pre-scale 5", "-4 to 4", "float16"]),
    (["--compressed"], ["--compressed", "tcp", "--backends erar"]),
    (["--compressed", "--backends", "tcp"], ["--compressed", "tcp", "--backends erar"]),
    (["--compressed", "--dtype", "int8"], ["--compressed", "bfloat16", "not int8"]),
    (["--compressed", "--dtype", "float64"], ["--compressed", "bfloat16", "not float64"]),
    (["--compressed", "--op", "min"], ["--compressed", "sum and avg", "not min"]),
    (["--in-place", "--buffers", "registered"], ["--in-place", "caller"]),
    (["--window", "4", "--backends", "tcp"], ["--window 4", "tcp", "--backends erar"]),
    (["--backends", "tcp", "--mtu", "9000", "--loss", "0"], ["--mtu 9000", "fault boxes", "3506"]),
]


def erar(*arguments, prefix=(), timeout=60):
    return subprocess.run([*prefix, ERAR, *arguments], capture_output=True, text=True,
                          timeout=timeout, check=False)


def bench(*arguments, **options):
    return erar("bench", "allreduce", *arguments, **options)


def namespaces():
    # /run/netns and not `ip netns`: a file that is no namespace any more must not be left either.
    folder = pathlib.Path("/run/netns")
    names = folder.iterdir() if folder.is_dir() else []
    return {path.name for path in names if path.name.startswith("erar-bench-")}


def state_files():
    folder = pathlib.Path("/run/erar/fabrics")
    return {path.name for path in folder.glob("bench-*")} if folder.is_dir() else set()


class CliTest(unittest.TestCase):
    """Helpers; the tests are below by subject."""

    def assert_refused(self, done, status, *parts):
        said = f"status {done.returncode}, stderr: {done.stderr!r}"
        self.assertEqual(done.returncode, status, said)
        self.assertEqual(done.stderr.count("\n"), 1, said)
        self.assertTrue(done.stderr.startswith("erar: "), said)
        for part in parts:
            self.assertIn(part, done.stderr)


class Arguments(CliTest):
    def test_help_and_version_are_no_errors(self):
        for arguments in (["--help"], ["bench", "--help"], ["bench", "allreduce", "--help"],
                          ["fabric", "--help"], ["run", "--help"], ["doctor", "--help"],
                          ["numerics", "--help"], ["--version"]):
            done = erar(*arguments)
            self.assertEqual((done.returncode, done.stderr), (0, ""), arguments)
            self.assertTrue(done.stdout)

    def test_help_lists_every_option_and_its_default(self):
        text = bench("--help").stdout
        for option in ("--backends", "--fabric", "--ranks", "--mtu", "--offloads", "--queues",
                       "--sizes", "--dtype", "--op", "--pre-scale", "--not-finite",
                       "--compressed", "--checksum", "--iters", "--warmup", "--buffers",
                       "--in-place", "--cc", "--mode", "--group", "--timeout", "--pin", "--seed",
                       "--window", "--json", "--csv", "--counters"):
            self.assertIn(option, text)
        for name in TYPES + OPERATIONS:
            self.assertIn(name, text)
        for default in ("1K:64M", "erar,tcp", "cubic"):
            self.assertIn(default, text)

    def test_what_no_command_knows(self):
        for arguments in ([], ["nonsense"], ["bench"], ["bench", "allgather"], ["--nonsense"],
                          ["bench", "allreduce", "--nonsense"],
                          ["bench", "allreduce", "--sizes"]):
            self.assert_refused(erar(*arguments), 2)

    def test_unknown_arguments_are_named_in_the_order_given(self):
        for arguments, said in ((["bench", "allreduce", "--delay", "1"], "--delay 1"),
                                (["bench", "allreduce", "--x=1", "y", "--z"], "--x=1 y --z"),
                                (["numerics", "a", "b", "--c"], "a b --c")):
            self.assert_refused(erar(*arguments), 2, f"erar: not expected: {said}\n")

    def test_a_value_that_is_missing(self):
        for arguments in (["numerics", "--ranks"], ["bench", "allreduce", "--sizes"],
                          ["fabric", "up", "--mtu"]):
            self.assert_refused(erar(*arguments), 2, arguments[-1] + ": a value is missing\n")

    def test_bad_values_name_option_value_and_what_is_allowed(self):
        for option, value, allowed in BAD_BENCH_ARGUMENTS:
            with self.subTest(option=option, value=value):
                self.assert_refused(bench(option, value), 2, option, value, allowed)

    def test_contradictions_are_refused_in_one_line(self):
        for arguments, said in CONTRADICTIONS:
            with self.subTest(arguments=arguments):
                self.assert_refused(bench(*arguments), 2, *said)

    def test_run_takes_no_option_for_its_own_that_it_does_not_know(self):
        self.assert_refused(erar("run", "--fabric", "ring", "--bogus", "--", "echo", "hi"), 2,
                            "--bogus")

    def test_a_fabric_that_is_not_up(self):
        self.assert_refused(bench("--fabric", "no-such-fabric"), 2, "--fabric", "no-such-fabric",
                            "ring, bridge, switch")


BAD_NUMERICS_ARGUMENTS = [
    ("--ranks", "1", "2 to 64"),
    ("--ranks", "2,65", "2 to 64"),
    ("--ranks", "2,x", "2 to 64"),
    ("--ranks", "4,4", "twice"),
    ("--ranks", "", "empty"),
    ("--count", "0", "1 to"),
    ("--count", "1G", "1 to"),
    ("--seed", "-1", "0 to"),
]


class Numerics(CliTest):
    METHODS = ["erar", "erar-compressed", "float32-ring", "scaled-int32"]

    def test_bad_values_name_option_value_and_what_is_allowed(self):
        for option, value, allowed in BAD_NUMERICS_ARGUMENTS:
            with self.subTest(option=option, value=value):
                self.assert_refused(erar("numerics", option, value), 2, option, value, allowed)
        self.assert_refused(erar("numerics", "--nonsense"), 2, "--nonsense")

    def test_unwritable_report_is_told_first(self):
        done = erar("numerics", "--csv", "/nowhere/rows.csv")
        self.assert_refused(done, 1, "/nowhere/rows.csv")
        self.assertEqual(done.stdout, "")

    def test_threads_or_memory_that_cannot_be_had(self):
        done = erar("numerics", "--ranks", "64", "--count", "1024",
                    prefix=("prlimit", "--as=400000000"))
        self.assert_refused(done, 1, "64 ranks", "1024 elements")

    def test_one_file_for_both_reports(self):
        with tempfile.TemporaryDirectory() as folder:
            for command in (["numerics"], ["bench", "allreduce"]):
                path = f"{folder}/file"
                done = erar(*command, "--json", path, "--csv", f"{folder}/./file")
                self.assert_refused(done, 2, f"--json {path} --csv", "the same file")

    def test_rows_of_all_three_reports(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            done = erar("numerics", "--ranks", "3,4", "--count", "5000", "--seed", "7", "--json",
                        str(path / "rows.json"), "--csv", str(path / "rows.csv"))
            self.assertEqual(done.stderr, "")
            report = json.loads((path / "rows.json").read_text(encoding="utf-8"))
            with open(path / "rows.csv", encoding="utf-8", newline="") as file:
                csv_rows = list(csv.DictReader(file))
            figure = self.figure(path / "rows.json", path / "figure.png")
            self.assertEqual((figure.returncode, figure.stderr), (0, ""))
            self.assertTrue((path / "figure.png").read_bytes().startswith(b"\x89PNG"))
            figure = self.figure(path / "rows.csv", path / "none.png")
            self.assertEqual((figure.returncode, figure.stderr.count("\n")), (1, 1), figure.stderr)
            self.assertFalse((path / "none.png").exists())
        lines = done.stdout.splitlines()
        table = [line.split() for line in lines if not line.startswith("#")]
        self.assertEqual(len(table), 5 * 2 * 4)
        for cells, row, csv_row in zip(table, report["rows"], csv_rows, strict=True):
            self.assertEqual(cells[:3], [row["input"], str(row["ranks"]), row["method"]])
            self.assertEqual(list(csv_row), list(row))
            self.assertEqual(float(csv_row["largest_error"]), row["largest_error"])
            self.assertTrue(row["ranks_agree"])
            if row["method"].startswith("erar"):
                self.assertLessEqual(row["share_of_bound"], 1)
            else:
                self.assertIsNone(row["share_of_bound"])
        self.assertEqual([row["method"] for row in report["rows"][:4]], self.METHODS)
        # What the exit status says is what the last lines say, and follows from the rows.
        lost = [line for line in lines if line.startswith("# LOSES: ")]
        errors = [row["largest_error"] for row in report["rows"]]
        self.assertEqual(len(lost), sum(errors[i] > errors[i + 2] for i in range(0, 40, 4)))
        self.assertEqual(done.returncode, 0)
        self.assertEqual(lines[-1], "# all checks hold")

    def figure(self, report, output):
        script = pathlib.Path(__file__).resolve().parents[2] / "experiments/figures/numerics.py"
        return subprocess.run(["/usr/bin/python3", str(script), "--output", str(output),
                               str(report)],
                              capture_output=True, text=True, timeout=60, check=False)

    def test_verdict(self):
        for ranks in ("2", "64"):
            done = erar("numerics", "--ranks", ranks, "--count", "3000")
            self.assertEqual((done.returncode, done.stdout.splitlines()[-1]),
                             (0, "# all checks hold"), done.stdout)


class WithoutRoot(CliTest):
    def setUp(self):
        # The build folder may be closed to others, so the file is handed over as standard input is:
        # opened by us, executed by them.
        self.folder = tempfile.TemporaryDirectory()
        os.chmod(self.folder.name, 0o755)
        self.copy = pathlib.Path(self.folder.name) / "erar"
        self.copy.write_bytes(pathlib.Path(ERAR).read_bytes())
        self.copy.chmod(0o755)

    def tearDown(self):
        self.folder.cleanup()

    def as_nobody(self, *arguments):
        return subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                               str(self.copy), *arguments],
                              capture_output=True, text=True, timeout=60, check=False)

    def test_bench_says_that_it_needs_root(self):
        self.assert_refused(self.as_nobody("bench", "allreduce"), 1, "needs root", "sudo")

    def test_arguments_are_judged_first(self):
        self.assert_refused(self.as_nobody("bench", "allreduce", "--iters", "0"), 2, "--iters")

    def test_numerics_need_no_root(self):
        self.assertEqual(self.as_nobody("numerics", "--ranks", "2", "--count", "1").stderr, "")

    def test_help_needs_no_root(self):
        self.assertEqual(self.as_nobody("bench", "allreduce", "--help").returncode, 0)


class Bench(CliTest):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)
        self.namespaces_before = namespaces()
        self.states_before = state_files()

    def tearDown(self):
        self.assertEqual(namespaces() - self.namespaces_before, set())
        self.assertEqual(state_files() - self.states_before, set())
        self.folder.cleanup()

    def test_rows_of_all_three_reports(self):
        done = bench("--backends", "erar,tcp", "--ranks", "2", "--sizes", "0,1,4,1K,100000",
                     "--iters", "3", "--warmup", "1", "--json", str(self.path / "rows.json"),
                     "--csv", str(self.path / "rows.csv"), "--counters")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stderr, "")
        lines = done.stdout.splitlines()
        self.assertEqual(lines[-1], "# 0 wrong")
        self.assertTrue(any(line.startswith("# tcp/erar time ratio: ") for line in lines))
        table = [line.split() for line in lines if not line.startswith("#")]
        self.assertEqual(len(table), 10)
        report = json.loads((self.path / "rows.json").read_text(encoding="utf-8"))
        with open(self.path / "rows.csv", encoding="utf-8", newline="") as file:
            csv_rows = list(csv.DictReader(file))
        self.assertEqual(len(report["rows"]), 10)
        self.assertEqual(len(csv_rows), 10)
        for cells, row, csv_row in zip(table, report["rows"], csv_rows):
            for field in ROW_FIELDS:
                self.assertIn(field, row)
                self.assertIn(field, csv_row)
            self.assertEqual(cells[0], str(row["bytes"]))
            self.assertEqual(csv_row["backend"], row["backend"])
            self.assertEqual((row["ranks"], row["iters"], row["wrong"]), (2, 3, 0))
            self.assertLessEqual(row["time_us_min"], row["time_us_p50"])
            self.assertLessEqual(row["time_us_p50"], row["time_us_max"])
        # Sizes are rounded down to whole elements.
        self.assertEqual([row["bytes"] for row in report["rows"][::2]], [0, 0, 4, 1024, 100000])
        self.assertEqual(report["context"]["ranks"], 2)
        self.assertEqual({path.name for path in self.path.iterdir()}, {"rows.json", "rows.csv"})

    def test_every_type_and_operation_over_tcp(self):
        for dtype in TYPES:
            for operation in OPERATIONS:
                with self.subTest(dtype=dtype, operation=operation):
                    report = self.path / "rows.json"
                    done = bench("--backends", "tcp", "--ranks", "3", "--sizes", "24,40K",
                                 "--iters", "2", "--warmup", "1", "--dtype", dtype, "--op",
                                 operation, "--json", str(report))
                    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                    self.assertEqual(done.stdout.splitlines()[-1], "# 0 wrong")
                    rows = json.loads(report.read_text(encoding="utf-8"))["rows"]
                    self.assertEqual([(row["dtype"], row["redop"], row["agreement_us_p50"])
                                      for row in rows], [(dtype, operation, None)] * 2)

    def test_scaled_sums_say_so(self):
        for dtype, factor in (("float32", "-0.3"), ("bfloat16", "0.25"), ("uint8", "3"),
                              ("int64", "-7")):
            with self.subTest(dtype=dtype, factor=factor):
                done = bench("--backends", "tcp", "--ranks", "2", "--sizes", "40K", "--iters",
                             "2", "--dtype", dtype, "--pre-scale", factor, "--checksum", "off",
                             "--json", "/dev/stdout")
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertIn(f"# reduction: values scaled by {factor} (--pre-scale); no checksums "
                              "(--checksum)\n", done.stdout)
                self.assertIn("\n# 0 wrong\n", done.stdout)
                context = json.loads(done.stdout[done.stdout.index("\n{") :])["context"]
                self.assertEqual((context["pre_scale"], context["checksum"],
                                  context["compressed"]), (float(factor), "off", False))

    def test_registered_buffers_and_integers(self):
        done = bench("--ranks", "3", "--sizes", "4,10000,1M", "--iters", "3", "--warmup", "1",
                     "--dtype", "int32", "--buffers", "registered", "--mtu", "1500", "--offloads",
                     "off")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stdout.splitlines()[-1], "# 0 wrong")

    def test_switch_fabric_says_what_tcp_ran_over(self):
        done = bench("--fabric", "switch", "--ranks", "2", "--sizes", "64K", "--iters", "2",
                     "--warmup", "0")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("# switch: tcp ran over a Linux bridge", done.stdout)

    def test_unwritable_report_is_told_before_measuring(self):
        for option in ("--json", "--csv"):
            path = str(self.path / "missing" / "file")
            start = time.monotonic()
            done = bench("--sizes", "64M", "--iters", "1000", option, path)
            self.assert_refused(done, 1, path)
            self.assertEqual(done.stdout, "")
            self.assertLess(time.monotonic() - start, 5)

    def test_a_backend_that_cannot_be_opened_fails_its_rows_only(self):
        done = bench("--backends", "tcp,erar", "--ranks", "2", "--sizes", "1K", "--iters", "2",
                     "--cc", "no-such-cc")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("# tcp 1K failed: rank ", done.stdout)
        self.assertTrue(done.stdout.endswith("# 0 wrong, 1 of 2 rows FAILED\n"), done.stdout)

    def test_a_row_that_fails_says_what_the_links_did_below_it(self):
        done = bench("--backends", "erar", "--ranks", "2", "--sizes", "1K", "--iters", "1",
                     "--warmup", "0", "--mtu", "1500", "--loss", "1", "--timeout", "0.3",
                     "--window", "3", "--counters", "--json", "/dev/stdout")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn(", window of 3 frames (--window)\n", done.stdout)
        lines = done.stdout.splitlines()
        row = next(i for i, line in enumerate(lines) if line.split()[5:6] == ["failed"])
        # Which rank it was, and once.
        self.assertRegex(lines[row + 1], "^# erar 1K failed: rank [01]: operation [0-9]+ stopped")
        self.assertRegex(lines[row + 2], "^# erar 1K counters: .* resent=[1-9]")
        self.assertRegex(lines[row + 3], "^#   links: frames [0-9]+ dropped [0-9]+$")
        self.assertFalse(any("links:" in line for line in lines[:row]))
        report = json.loads(done.stdout[done.stdout.index("\n{"):])
        self.assertEqual(report["context"]["window_frames"], 3)
        self.assertEqual(report["rows"][0]["window_frames"], 3)

    def interrupted(self, signal_number):
        """Sends the signal when the first row is there, so in the middle of the sweep."""
        command = [ERAR, "bench", "allreduce", "--ranks", "3", "--sizes", "1K,1M:64M:2",
                   "--iters", "200", "--json", str(self.path / "rows.json")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as running:
            for line in running.stdout:
                if not line.startswith("#"):
                    break
            self.assertTrue(namespaces() - self.namespaces_before)
            running.send_signal(signal_number)
            start = time.monotonic()
            rest, errors = running.communicate(timeout=30)
        self.assertLess(time.monotonic() - start, 10)
        self.assertEqual(running.returncode, 128 + signal_number, rest + errors)
        self.assertEqual(errors.count("\n"), 1, errors)
        self.assertEqual(list(self.path.iterdir()), [])

    def test_interrupt_leaves_nothing(self):
        self.interrupted(signal.SIGINT)

    def test_terminate_leaves_nothing(self):
        self.interrupted(signal.SIGTERM)

    def test_a_reader_that_goes_away_ends_it(self):
        command = [ERAR, "bench", "allreduce", "--ranks", "2", "--sizes", "1K,1M:64M:2", "--iters",
                   "200"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as running:
            running.stdout.readline()
            running.stdout.close()
            running.stdout = None
            _, errors = running.communicate(timeout=60)
        self.assertEqual(running.returncode, 1, errors)

    def test_the_congestion_control_asked_for_is_the_one_in_use(self):
        name = f"cli-cc-{os.getpid()}"
        made = erar("fabric", "up", "--name", name, "--ranks", "2", "--kind", "ring")
        self.assertEqual(made.returncode, 0, made.stderr)
        command = [ERAR, "bench", "allreduce", "--fabric", name, "--backends", "tcp", "--cc",
                   "reno", "--sizes", "1M", "--iters", "100000"]
        try:
            with subprocess.Popen(command, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL) as running:
                sockets = ""
                for _ in range(100):
                    time.sleep(0.1)
                    sockets = subprocess.run(
                        ["ip", "netns", "exec", f"erar-{name}-0", "ss", "-Htin"],
                        capture_output=True, text=True, check=False).stdout
                    if "reno" in sockets or "cubic" in sockets:
                        break
                running.terminate()
            self.assertIn("reno", sockets)
            self.assertNotIn("cubic", sockets)
        finally:
            erar("fabric", "down", name)

    def test_an_existing_fabric_is_used_and_left(self):
        name = f"cli-{os.getpid()}"
        made = erar("fabric", "up", "--name", name, "--ranks", "2", "--kind", "ring")
        self.assertEqual(made.returncode, 0, made.stderr)
        try:
            done = bench("--fabric", name, "--sizes", "1K", "--iters", "2")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assert_refused(bench("--fabric", name, "--ranks", "4"), 2, "--ranks", "4", "2")
            self.assertIn(name, erar("fabric", "list").stdout)
        finally:
            removed = erar("fabric", "down", name)
        self.assertEqual(removed.returncode, 0, removed.stderr)


if __name__ == "__main__":
    (ERAR,) = take_commands(__doc__, 1, needs_root=True)
    unittest.main(verbosity=2)
