#!/usr/bin/env python3
"""Fails when a folder includes what it must not: the tree's arrows, as docs/design.md draws them.

Usage: include_arrows.py [ROOT]. Prints one line per wrong include; exit code 1 if there is any.

A quoted include is looked up beside the including file, then from the root. <...> is a package or
the system, unless a file of ours has that path: <bpf/libbpf.h> is libbpf's, not our bpf/.
"""
import pathlib
import re
import sys

ALLOWED = {
    "core": {"core"},
    "bpf": {"bpf", "core"},
    "sim": {"sim", "core"},
    "workloads": {"workloads", "core"},
    "emu": {"emu", "core", "bpf"},
    "experiments": {"experiments", "core", "bpf", "emu", "sim", "workloads"},
    "tests": {"tests", "core", "bpf", "emu", "experiments", "sim", "workloads"},
}
SOURCES = {".h", ".hpp", ".c", ".cc", ".cpp"}
PROTOCOL = "core/protocol/"
# Fixed-width types are all that the protocol may ask for, since BPF has no libc.
PROTOCOL_SYSTEM = {"linux/types.h", "stdint.h"}
# No kernel interfaces, no sockets in core.
KERNEL_AND_SOCKETS = re.compile(r"^(bpf|linux|net|netinet|arpa)/|^sys/(socket|epoll|un)\.h$")
# ns-3 writes its own headers in quotes.
NS3 = "ns3/"
NS3_USERS = ("sim/", "tests/sim/")
SKELETON = re.compile(r"(^|/)[a-z_]+\.skel\.h$")
SKELETON_USERS = ("bpf/", "emu/netns/xdp_switch.cc")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def resolve(root, source, name):
    """Path of the included file from the root, or None where no folder of ours is meant."""
    beside = (source.parent / name).resolve()
    if beside.is_file() and beside.is_relative_to(root):
        return beside.relative_to(root).as_posix()
    # Generated headers have a path as if they lay in their folder; they need not exist.
    return name if pathlib.PurePosixPath(name).parts[0] in ALLOWED else None


def wrong_package(source, name):
    """Why `source` (path from the root) must not include the package header, or None."""
    if source.startswith(PROTOCOL) and name not in PROTOCOL_SYSTEM:
        return "core/protocol has no libc"
    in_core = source.startswith("core/") and not source.startswith(PROTOCOL)
    if in_core and KERNEL_AND_SOCKETS.search(name):
        return "core is free of kernel interfaces and sockets"
    return None


def wrong_include(root, path, quoted, name):
    """Why the file at `path` must not include `name`, or None."""
    source = path.relative_to(root).as_posix()
    if SKELETON.search(name):
        allowed = source.startswith(SKELETON_USERS)
        return None if allowed else "skeletons belong to bpf and emu/netns/xdp_switch.cc"
    if not quoted and not (root / name).is_file():
        return wrong_package(source, name)
    if name.startswith(NS3):
        return None if source.startswith(NS3_USERS) else "only sim knows ns-3"
    target = resolve(root, path, name)
    if target is None:
        return "no such file beside it or from the root; packages go in <>"
    if source.startswith(PROTOCOL) and not target.startswith(PROTOCOL):
        return "core/protocol includes only itself"
    folder, target_folder = source.split("/")[0], target.split("/")[0]
    if target_folder not in ALLOWED[folder]:
        return f"{folder} must not know {target_folder}"
    return None


def wrong_includes(root):
    """One line of text per wrong include under root; and how many files were read."""
    complaints = []
    files = 0
    for folder in sorted(ALLOWED):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in SOURCES or not path.is_file():
                continue
            files += 1
            lines = path.read_text(encoding="utf-8").splitlines()
            for number, line in enumerate(lines, start=1):
                match = INCLUDE.match(line)
                reason = match and wrong_include(root, path, match[1] == '"', match[2])
                if reason:
                    complaints.append(f"{path.relative_to(root)}:{number}: {match[2]}: {reason}")
    return complaints, files


def main():
    default = pathlib.Path(__file__).resolve().parents[2]
    root = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else default
    complaints, files = wrong_includes(root)
    print("\n".join(complaints + [f"include_arrows: {files} files, {len(complaints)} wrong"]))
    return 1 if complaints or files == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
