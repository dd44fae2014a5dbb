#!/usr/bin/env python3
"""Breaks the packet step on purpose, one rule at a time, and says what the explorer finds.

Usage: mutants.py BUILD [NAME...]. Needs a build with `explore` and its libraries. Each mutant is the
protocol with one piece of text replaced, in a scratch copy. Exit code 1 when one that should be found
is not, or one that changes nothing that can be seen is.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
STEP = "core/protocol/step.h"
RESEND = "core/protocol/resend.h"
OPERATION = "core/protocol/operation.h"
# What is compiled from the protocol's headers.
UNITS = ("core/session/native_step", "core/session/operation_slot", "core/session/ring_watch",
         "sim/explore/interrupted_step")

# What is tried on each mutant, until something is found.
SCENARIOS = (
    "--ranks 2 --losses 1 --duplicates 1 --early-resends 1",
    "--ranks 2 --segments 4 --window 1 --losses 1 --duplicates 1",
    "--ranks 2 --segments 6 --window 1 --duplicates 1",
    "--ranks 3 --segments 1 --losses 2 --duplicates 1 --early-resends 1",
    "--ranks 3 --segments 2 --losses 1 --duplicates 1",
    "--ranks 4 --segments 1 --losses 2 --duplicates 1",
    "--ranks 2 --operations 3 --losses 1 --duplicates 1",
    "--ranks 2 --operations 3 --losses 1 --duplicates 1 --same-slot --split-kicks",
    "--ranks 2 --operations 3 --losses 1 --duplicates 1 --stay-open",
    "--ranks 2 --losses 1 --duplicates 1 --early-resends 1 --two-cpus",
    "--ranks 3 --segments 1 --losses 1 --duplicates 1 --early-resends 1 --two-cpus",
)

# Name, file, text, its replacement, and whether it must be found.
MUTANTS = (
    ("answer a request as all-gather", STEP,
     "packet->type == ERAR_REQUEST ? ERAR_REPAIR : ERAR_ALL_GATHER", "ERAR_ALL_GATHER", True),
    ("never answer", STEP,
     "if (found != ERAR_SHARE_FINAL || packet->hop", "if (1 || packet->hop", True),
    ("a repair ends at the first that has the sum", STEP,
     "if (!stored && (last || packet->type == ERAR_ALL_GATHER))", "if (!stored)", True),
    ("recycle on a duplicate", STEP,
     "if (!stored && (last || packet->type == ERAR_ALL_GATHER))",
     "if (!stored && !last && packet->type == ERAR_ALL_GATHER)", True),
    ("store again over a sum", STEP,
     "if (erar_share_of(operation, packet->operation, seen) != ERAR_SHARE_OWN ||", "if (", True),
    ("turn one rank early", STEP,
     "if (packet->hop == erar_turn_hop(config->ranks)) packet->type = ERAR_ALL_GATHER;",
     "if (packet->hop + 1 >= erar_turn_hop(config->ranks)) packet->type = ERAR_ALL_GATHER;", True),
    ("add to a request", STEP,
     "    if (packet->type == ERAR_REQUEST) {\n      if (packet->hop ==",
     "    if (0) {\n      if (packet->hop ==", True),
    ("park requests", STEP,
     "if (packet->type != ERAR_REDUCE_SCATTER || !parked", "if (!parked", True),
    ("park for any operation", STEP,
     "if (packet->operation == number ? phase >> 32 == ERAR_SLOT_OVER\n"
     "                                  : packet->operation != number + ERAR_SLOTS) {", "if (0) {",
     True),
    ("a closed slot takes frames", STEP,
     "return ERAR_READ_ONCE(operation->phase) == erar_phase_of(number, ERAR_SLOT_OPEN);",
     "return operation->number == number;", True),
    ("resend with one hop too many", RESEND,
     "config->ranks) + 1;\n", "config->ranks) + 2;\n", True),
    ("own segments are not sent again", RESEND,
     "  if (packet->hop > erar_turn_hop(config->ranks)) return ERAR_DROP;\n  if (!share",
     "  if (packet->hop == 1) return ERAR_DROP;\n  if (!share", True),
    ("others' segments are not asked for", RESEND,
     "  if (packet->hop > erar_turn_hop(config->ranks)) return ERAR_DROP;\n  if (!share",
     "  if (packet->hop != 1) return ERAR_DROP;\n  if (!share", True),
    ("a sum is added to as if it were a share", STEP,
     "if (found != ERAR_SHARE_OWN) return erar_answer(env, packet, found, share);", "", True),
    ("done means nothing to a share", OPERATION,
     "return ERAR_READ_ONCE(operation->done) ? ERAR_SHARE_GONE : ERAR_SHARE_OWN;",
     "return ERAR_SHARE_OWN;", True),
    ("no second look after adding", STEP,
     "if (erar_share_of(operation, packet->operation, ERAR_READ_ONCE(*state)) != ERAR_SHARE_OWN) {",
     "if (0) {", True),
    ("no second look after taking", RESEND,
     "  if (erar_share_of(operation, packet->operation, ERAR_READ_ONCE(*state)) != ERAR_SHARE_OWN)\n"
     "    return ERAR_DROP;\n", "", True),
    ("park over what lies there", STEP,
     "if (!erar_park_is_free(was, packet->operation) ||\n"
     "      __sync_val_compare_and_swap(&parked->tag, was, filling) != was) {", "if (0) {", True),
    ("no second look after parking", STEP,
     "  if (!erar_is_open(operation, packet->operation)) return 0;\n  if (__sync",
     "  return 0;\n  if (__sync", True),
    ("no claim before storing", STEP,
     "      __sync_val_compare_and_swap(state, seen, erar_state_of(packet->operation, "
     "ERAR_STORING)) !=\n          seen)", "      0)", True),
    # The next rank drops such an answer: its type and hop do not end there.
    ("answer anywhere", STEP,
     " || packet->hop != erar_turn_hop(erar_env_config(env)->ranks))\n    return", ")\n    return",
     False),
    # Costs a frame that goes round for nothing.
    ("an unanswered request goes on", STEP,
     "if (packet->hop == erar_turn_hop(config->ranks)) return erar_drop(env, ERAR_DROP_UNANSWERED);",
     "", False),
)


def build(scratch, libraries, mutant):
    """The explorer over the mutant; None when the compiler refuses it."""
    _, file, text, replacement, _ = mutant
    shutil.copytree(ROOT / "core", scratch / "core")
    source = (scratch / file).read_text(encoding="utf-8")
    if source.count(text) != 1:
        raise SystemExit(f"{file}: {source.count(text)} times: {text}")
    (scratch / file).write_text(source.replace(text, replacement), encoding="utf-8")
    objects = []
    for unit in UNITS:
        objects.append(scratch / (unit.replace("/", "_") + ".o"))
        command = ["c++", "-std=c++20", "-O2", "-w", f"-I{scratch}", f"-I{ROOT}", "-c",
                   (scratch if unit.startswith("core/") else ROOT) / f"{unit}.cc",
                   "-o", objects[-1]]
        if subprocess.run(command, check=False).returncode:
            return None
    main = libraries / "tests/explore/CMakeFiles/explore.dir/explore_main.cc.o"
    archives = [libraries / f"sim/lib{name}.a" for name in ("erar_explore", "erar_sim")]
    archives.append(libraries / "core/liberar_core.a")
    subprocess.run(["c++", main, *objects, *archives, "-o", scratch / "explore"], check=True)
    return scratch / "explore"


def find(explorer):
    """Scenario, violation and number of actions to it; or None."""
    for scenario in SCENARIOS:
        run = subprocess.run([explorer, *scenario.split(), "--max-states", "2000000"],
                             capture_output=True, text=True, check=False)
        if run.returncode == 0:
            continue
        found = re.search(r"VIOLATION: (.*)\n((?:  .*\n)*)", run.stdout)
        if found is None:
            return scenario, (run.stdout + run.stderr).strip(), 0
        return scenario, found[1], found[2].count("\n")
    return None


def main():
    libraries = pathlib.Path(sys.argv[1]).resolve()
    names = sys.argv[2:]
    wrong = 0
    for mutant in MUTANTS:
        if names and mutant[0] not in names:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            explorer = build(pathlib.Path(scratch), libraries, mutant)
            found = explorer and find(explorer)
        wrong += (found is not None) != mutant[4]
        print(f"{mutant[0]}: ", end="")
        print(f"after {found[2]} actions: {found[1]} [{found[0]}]" if found else "not found",
              flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
