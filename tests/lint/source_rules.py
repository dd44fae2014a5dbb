#!/usr/bin/env python3
"""Fails when a file breaks a rule that no formatter checks: purpose line, length, leftovers, tabs.

Usage: source_rules.py [ROOT]. Prints one line per finding; exit code 1 if there is any.

Sources (.h .cc .c .py .sh) say their purpose in the first line, after a shebang or an SPDX line;
they have at most 500 lines, no tab indentation and nothing marked as still to be done. Every text
file ends with a newline.
"""
import os
import pathlib
import re
import sys

MAX_LINES = 500
SOURCES = {".h", ".cc", ".c", ".py", ".sh"}
TEXTS = SOURCES | {".md", ".txt", ".cmake", ".json", ".csv", ".yml", ".yaml", ".toml", ".1"}
TEXT_NAMES = {"LICENSE", "run", ".clang-format", ".clang-tidy", ".gitignore"}
# Not ours to judge: the repository itself, builds, what experiments wrote.
SKIPPED = re.compile(r"^(\.git|build.*|results|__pycache__|node_modules|\.cache)$")
OPENINGS = {
    ".py": re.compile(r'(#|"""|r""")\s*(.*)'),
    ".sh": re.compile(r"(#)\s*(.*)"),
}
C_OPENING = re.compile(r"(//|/\*)\s*(.*)")
# Written so that this file does not find itself.
LEFTOVER = re.compile("|".join(("TO" + "DO", "FIX" + "ME")))


def purpose_missing(suffix, lines):
    """True unless the first line that may hold it says in a few words what the file is for."""
    first = 0
    while first < len(lines) and (
        lines[first].startswith("#!") or "SPDX-License-Identifier" in lines[first]
    ):
        first += 1
    match = OPENINGS.get(suffix, C_OPENING).match(lines[first]) if first < len(lines) else None
    return match is None or len(match[2].split()) < 3


def source_findings(suffix, text):
    """(line number, finding) pairs of one source file."""
    lines = text.splitlines()
    findings = []
    if purpose_missing(suffix, lines):
        findings.append((1, "the first line does not say the file's purpose"))
    if len(lines) > MAX_LINES:
        findings.append((len(lines), f"more than {MAX_LINES} lines"))
    for number, line in enumerate(lines, start=1):
        if "\t" in line[: len(line) - len(line.lstrip())]:
            findings.append((number, "tab indentation"))
        if LEFTOVER.search(line):
            findings.append((number, "left to be done"))
    return findings


def file_findings(path):
    if path.suffix not in TEXTS and path.name not in TEXT_NAMES:
        return []
    content = path.read_bytes()
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return [(1, "not UTF-8")]
    findings = source_findings(path.suffix, text) if path.suffix in SOURCES else []
    if content and not content.endswith(b"\n"):
        findings.append((len(text.splitlines()), "no newline at the end of the file"))
    return findings


def findings_under(root):
    """One line of text per finding under root; and how many sources were read."""
    findings = []
    sources = 0
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = sorted(name for name in subfolders if not SKIPPED.match(name))
        for name in sorted(names):
            path = pathlib.Path(folder) / name
            if path.is_symlink() or not path.is_file():
                continue
            sources += path.suffix in SOURCES
            for number, finding in file_findings(path):
                findings.append(f"{path.relative_to(root)}:{number}: {finding}")
    return findings, sources


def main():
    default = pathlib.Path(__file__).resolve().parents[2]
    root = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else default
    findings, sources = findings_under(root)
    print("\n".join(findings + [f"source_rules: {sources} sources, {len(findings)} findings"]))
    return 1 if findings or sources == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
