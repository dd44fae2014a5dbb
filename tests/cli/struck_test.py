#!/usr/bin/env python3
"""A bench one of whose ranks is stopped or told to end: the row fails in time and names the rank.

Usage: struck_test.py PATH_OF_ERAR [unittest options]. Needs root.
"""
import os
import pathlib
import signal
import subprocess
import time
import unittest

from commands import take_commands

ERAR = ""
RANKS = 3
# Within an operation, TCP's ranks know of their neighbours only: the first to give up may be one that
# waits for another that waits for rank 2.
WHO = {"erar": r"rank \d: .*rank 2",
       "tcp": r"rank \d: (.*rank 2|rank \d (sends no data|takes no data|gives no receipt))"}


def leads_a_group(pid):
    try:
        return os.getpgid(pid) == pid
    except ProcessLookupError:  # gone since it was listed
        return False


def rank_processes(bench):
    """Process ids of the ranks, by rank: unlike the programs that make the fabric, ranks lead groups."""
    children = pathlib.Path(f"/proc/{bench.pid}/task/{bench.pid}/children").read_text().split()
    return [int(pid) for pid in children if leads_a_group(int(pid))]


def strike(backend, signal_number):
    """Sends the signal to rank 2 amid the operations; exit status, output, seconds to the end."""
    command = [ERAR, "bench", "allreduce", "--ranks", str(RANKS), "--backends", backend, "--sizes",
               "1K", "--iters", "1000000", "--timeout", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True) as running:
        ranks = []
        while len(ranks) < RANKS:
            time.sleep(0.05)
            if running.poll() is not None:
                raise AssertionError(f"bench ended early: {running.communicate()[0]}")
            ranks = rank_processes(running)
        time.sleep(1)
        os.kill(ranks[2], signal_number)
        start = time.monotonic()
        printed, _ = running.communicate(timeout=60)
    return running.returncode, printed, time.monotonic() - start


class Struck(unittest.TestCase):
    # Time-out, a second until the rest are sure, 2 s until the stopped rank is killed, the fabric.
    MOST_SECONDS = 10

    def test_a_stopped_rank_ends_the_row_within_the_time_out(self):
        # Where the stop falls, in an operation or between two, is chance; both happen often.
        for backend in ("erar", "tcp"):
            for _ in range(3):
                status, printed, seconds = strike(backend, signal.SIGSTOP)
                self.assertEqual(status, 1, printed)
                self.assertRegex(printed, f"# {backend} 1K failed: {WHO[backend]}")
                self.assertLess(seconds, self.MOST_SECONDS, printed)

    def test_a_rank_that_is_told_to_end_is_no_interruption(self):
        status, printed, seconds = strike("erar", signal.SIGTERM)
        self.assertEqual(status, 1, printed)
        self.assertIn("failed: rank 2: ended by signal 15", printed)
        self.assertLess(seconds, self.MOST_SECONDS, printed)


if __name__ == "__main__":
    (ERAR,) = take_commands(__doc__, 1, needs_root=True)
    unittest.main(verbosity=2)
