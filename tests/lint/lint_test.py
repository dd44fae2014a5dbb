#!/usr/bin/env python3
"""Plants one wrong thing at a time into a copy of the sources and sees the lint scripts find it."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FOLDERS = ("core", "bpf", "emu", "sim", "workloads", "experiments", "tests")


class LintTest(unittest.TestCase):
    """What the copied tree itself breaks is of no interest here, only what is said of the plant."""

    @classmethod
    def setUpClass(cls):
        cls.copy_owner = tempfile.TemporaryDirectory()
        cls.copy = pathlib.Path(cls.copy_owner.name)
        for folder in FOLDERS:
            if (ROOT / folder).is_dir():
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(ROOT / folder, cls.copy / folder, ignore=ignored)

    @classmethod
    def tearDownClass(cls):
        cls.copy_owner.cleanup()

    def run_script(self, script):
        command = [sys.executable, str(HERE / script), str(self.copy)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def plant(self, script, name, content):
        """The script's run over a copy with one more file, and what it said of that file."""
        path = self.copy / name
        self.assertFalse(path.exists(), name)
        folder_is_new = not path.parent.is_dir()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
        try:
            done = self.run_script(script)
        finally:
            path.unlink()
            if folder_is_new:
                path.parent.rmdir()
        return done, [line for line in done.stdout.splitlines() if line.startswith(name + ":")]

    def assert_finds(self, script, name, content, reason):
        done, found = self.plant(script, name, content)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertEqual(len(found), 1, done.stdout)
        self.assertIn(reason, found[0])

    def assert_accepts(self, script, name, content):
        done, found = self.plant(script, name, content)
        self.assertEqual(found, [], done.stdout)
        self.assertEqual(done.stderr, "")

    def test_wrong_arrows_are_found(self):
        cases = (
            ("core/planted.h", '"bpf/config.h"', "core must not know bpf"),
            ("core/planted.h", "<bpf/libbpf.h>", "core is free of kernel"),
            ("core/planted.h", "<sys/socket.h>", "core is free of kernel"),
            ("core/protocol/planted.h", '"core/result.h"', "only itself"),
            ("core/protocol/planted.h", '"../result.h"', "only itself"),
            ("core/protocol/planted.h", "<string.h>", "no libc"),
            ("bpf/planted.bpf.c", '"emu/netns/fabric.h"', "bpf must not know emu"),
            ("workloads/planted.cc", '"experiments/version.h"', "must not know experiments"),
            ("sim/planted.cc", '"bpf/config.h"', "sim must not know bpf"),
            ("emu/planted.cc", '"workloads/generator/values.h"', "emu must not know workloads"),
            ("emu/planted.cc", "<workloads/generator/values.h>", "emu must not know workloads"),
            ("emu/planted.cc", '"switch.skel.h"', "skeletons"),
            ("emu/planted.cc", '"ns3/packet.h"', "only sim"),
            ("experiments/planted.cc", '"tests/unit/planted.h"', "must not know tests"),
            ("experiments/planted.cc", '"nowhere.h"', "no such file"),
        )
        for name, included, reason in cases:
            with self.subTest(name=name, included=included):
                content = f"// A planted file.\n#  include {included}\n"
                self.assert_finds("include_arrows.py", name, content, reason)

    def test_right_arrows_are_accepted(self):
        cases = (
            ("tests/planted.cc", '"experiments/version.h"'),
            ("sim/planted.cc", '"ns3/packet.h"'),
            ("bpf/planted.cc", '"erar.skel.h"'),
            ("emu/planted.cc", "<bpf/libbpf.h>"),
            ("core/planted.cc", '"result.h"'),
        )
        for name, included in cases:
            with self.subTest(name=name, included=included):
                self.assert_accepts("include_arrows.py", name, f"#include {included}\n")

    def test_broken_source_rules_are_found(self):
        purpose = "// A planted file.\n"
        cases = (
            ("core/planted.h", "#pragma once\n", "purpose"),
            ("core/planted.h", "// Short.\n", "purpose"),
            ("core/planted.h", "", "purpose"),
            ("tests/planted.sh", "#!/bin/sh\ntrue\n", "purpose"),
            ("tests/planted.py", "import os\n", "purpose"),
            ("core/planted.cc", purpose + "int a;\n" * 500, "500 lines"),
            ("core/planted.cc", purpose + "// TO" + "DO: more\n", "left to be done"),
            ("core/planted.cc", purpose + "\tint a;\n", "tab"),
            ("core/planted.md", "# Planted", "newline"),
        )
        for name, content, reason in cases:
            with self.subTest(name=name, reason=reason):
                self.assert_finds("source_rules.py", name, content, reason)

    def test_good_sources_are_accepted(self):
        spdx = "// SPDX-License-Identifier: BSD-2-Clause\n// A planted file.\n"
        self.assert_accepts("source_rules.py", "bpf/planted.bpf.c", spdx)
        self.assert_accepts("source_rules.py", "tests/planted.sh", "#!/bin/sh\n# A planted file.\n")

    def test_an_empty_tree_is_no_success(self):
        with tempfile.TemporaryDirectory() as empty:
            for script in ("include_arrows.py", "source_rules.py"):
                command = [sys.executable, str(HERE / script), empty]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 1, done.stdout)


if __name__ == "__main__":
    unittest.main()
