"""What the test scripts of this folder are given on their command line: the commands to test."""
import os
import sys


def take_commands(usage, count, needs_root):
    """Absolute paths of the first `count` arguments, which are taken out of sys.argv for unittest.

    Ends the script with status 2 and `usage` when there are fewer, with 1 when it lacks root.
    """
    if len(sys.argv) <= count:
        print(usage, file=sys.stderr)
        sys.exit(2)
    paths = [os.path.abspath(sys.argv.pop(1)) for _ in range(count)]
    if needs_root and os.geteuid() != 0:
        name = os.path.basename(sys.argv[0])
        print(f"{name}: needs root (network namespaces, BPF)", file=sys.stderr)
        sys.exit(1)
    return paths
