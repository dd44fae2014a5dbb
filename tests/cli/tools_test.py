#!/usr/bin/env python3
"""simulate, explore and the scripts from outside: what they refuse in one line and with status 2.

Usage: tools_test.py PATH_OF_SIMULATE PATH_OF_EXPLORE [unittest options].
"""
import pathlib
import subprocess
import unittest

from commands import take_commands

TOOLS = {}
BAD_SEEDS = ("-1", "18446744073709551615", "0:18446744073709551616", "3:3", "3:-1", "-2:-1", "+1",
             " 1", "1:", ":1", "", "1:2:3", "x")


def run(tool, *arguments):
    return subprocess.run([TOOLS[tool], *arguments], capture_output=True, text=True, timeout=60,
                          check=False)


class Tools(unittest.TestCase):
    """What both programs say of their arguments."""

    def assert_refused(self, tool, arguments, *parts):
        done = run(tool, *arguments)
        said = f"{tool} {arguments}: status {done.returncode}, {done.stdout!r}, {done.stderr!r}"
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), said)
        self.assertTrue(done.stderr.startswith(f"{tool}: "), said)
        for part in parts:
            self.assertIn(part, done.stderr)

    def test_seeds_that_are_none(self):
        for seeds in BAD_SEEDS:
            with self.subTest(seeds=seeds):
                self.assert_refused("simulate", [f"--seeds={seeds}"], "--seeds")

    def test_seeds_are_run(self):
        for seeds, said in (("7", "seeds 7:8: "), ("3:5", "seeds 3:5: "),
                            ("18446744073709551614", "seeds 18446744073709551614:")):
            done = run("simulate", "--seeds", seeds)
            self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
            self.assertTrue(done.stdout.startswith(said), done.stdout)

    def test_arguments_that_are_none(self):
        for tool in TOOLS:
            self.assert_refused(tool, ["--nonsense", "1"], "not expected: --nonsense 1\n")
            self.assert_refused(tool, ["nonsense"], "not expected: nonsense\n")
        self.assert_refused("simulate", ["--seeds"], "--seeds: a value is missing\n")
        self.assert_refused("explore", ["--ranks"], "--ranks: a value is missing\n")
        for option, value in (("--ranks", "5"), ("--ranks", "x"), ("--losses", "x"),
                              ("--losses", "-1"), ("--segments", "0"), ("--max-states", "-1")):
            self.assert_refused("explore", [option, value], option)

    def test_help_is_no_error(self):
        for tool in TOOLS:
            done = run(tool, "--help")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("Usage: " + tool, done.stdout)


class Scripts(unittest.TestCase):
    """The two commands of the README, as far as they go without building."""

    def run_script(self, name, *arguments):
        root = pathlib.Path(__file__).resolve().parents[2]
        return subprocess.run([str(root / name), *arguments], capture_output=True, text=True,
                              timeout=60, check=False)

    def test_help_and_list(self):
        for script in ("experiments/reproduce", "tests/check", "experiments/setup/build.sh",
                       "experiments/setup/install_dependencies.sh"):
            done = self.run_script(script, "--help")
            self.assertEqual((done.returncode, done.stderr), (0, ""), script)
            self.assertIn("Usage: ", done.stdout)
        configurations = self.run_script("experiments/reproduce", "--list").stdout.splitlines()
        self.assertEqual([line.split(":")[0] for line in configurations],
                         ["int32-registered", "float32-caller", "float32-offloads-off",
                          "loss", "numerics"])

    def test_bad_arguments(self):
        for command in (["experiments/reproduce", "--fast"], ["experiments/reproduce", "--only"],
                        ["experiments/reproduce", "--only", "x"], ["tests/check", "--quick"],
                        ["experiments/setup/build.sh", "debug"],
                        ["experiments/setup/install_dependencies.sh", "all"]):
            done = self.run_script(*command)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), command)


if __name__ == "__main__":
    TOOLS["simulate"], TOOLS["explore"] = take_commands(__doc__, 2, needs_root=False)
    unittest.main(verbosity=2)
