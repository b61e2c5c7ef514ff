#!/usr/bin/env python3
"""Compares libgc and Vellum's libgc.so.1 in programs that are linked with libgc: time, memory and pauses.

    lab/clients/libgc/compare.py [--libgc-folder target/release/libgc] [--rounds 5] [--quick] [--same-only]
                                 [--no-profile] [--json] [client ...]

Each round runs every client's workloads three times, in random order: twice on the distribution's library
(`a` and `b`, whose difference is chance) and once on Vellum's. The table has medians over the rounds of the
CPU time (user and system) and of the peak resident memory, as ratios to `a`, and the spread of `b`. If
outputs differ, the program reports it and ends with status 1. Pauses come from one more run with
GC_PRINT_STATS, which is not timed. The collector's share of the CPU time comes from a profile
(profile_gc.py), if `perf` may be used. Clients that are not installed are named and left out.

workloads.py makes the clients' inputs. `--seed N` repeats the order of a run. `--same-only` runs each
workload once on either library, and reports only whether the outputs are the same.
"""

import argparse
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import profile_gc
from workloads import workloads

TIME = "/usr/bin/time"


def environment(library):
    """The environment of a program on `library`, None for the distribution's."""
    env = {key: value for key, value in os.environ.items() if key not in ("LD_LIBRARY_PATH", "LD_PRELOAD")}
    return {**env, "LD_LIBRARY_PATH": library} if library else env


def run(command, library, statistics_wanted=False):
    """Output, CPU seconds, largest resident set in bytes, what was said on standard error."""
    env = environment(library)
    if statistics_wanted:
        env["GC_PRINT_STATS"] = "1"
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, tempfile.NamedTemporaryFile("r") as peak:
        # A process that this one starts counts this one's resident set as its own until it has a larger one; one that a small one starts does not.
        timed = [TIME, "-f", "%M", "-o", peak.name, *command]
        process = subprocess.Popen(timed, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=env)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        said = err.read().decode(errors="replace")
        if process.returncode != 0:
            raise SystemExit(f"{' '.join(command)} ended with {process.returncode} on {library or 'libgc'}:\n{said[-2000:]}")
        return out.read(), usage.ru_utime + usage.ru_stime, int(peak.read().split()[-1]) * 1024, said


def pauses(command, library):
    """Collections, milliseconds of pauses in all, and of the longest (None where it is not told)."""
    said = run(command, library, True)[3]
    if library:
        figure = lambda name: re.search(name + r"\s+(\d+)", said)
        found = [figure("collections"), figure("paused"), figure("longest pause")]
        count, total, longest = [int(match.group(1)) if match else 0 for match in found]
        return count, total / 1e3, longest / 1e3
    each = [int(ms) + int(ns) / 1e6 for ms, ns in re.findall(r"Complete collection took (\d+) ms (\d+) ns", said)]
    return len(each), sum(each), max(each, default=0.0)


def shares_of(command, library, rounds):
    """CPU seconds of the collector's in a run on libgc and on Vellum; None where there is no profile."""
    found = [profile_gc.seconds(command, environment(where), rounds) for where in (None, library)]
    return None if None in found else [collector for collector, _ in found]


def ratio_of_shares(shares):
    """What of libgc's time Vellum's collector takes, as text."""
    if shares is None:
        return f"{'-':>12}"
    theirs, ours = shares
    return f"{theirs * 1e3:7.1f}" + (f" {ours / theirs:4.2f}" if theirs > 0 else "    -")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument("--libgc-folder", default=os.path.join(here, "../../../target/release/libgc"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--same-only", action="store_true")
    parser.add_argument("--no-profile", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("clients", nargs="*")
    asked = parser.parse_args()
    library = os.path.abspath(asked.libgc_folder)
    if not os.path.isfile(os.path.join(library, "libgc.so.1")):
        parser.error(f"{library} has no libgc.so.1: run ./build, or name its folder with --libgc-folder")
    if not os.access(TIME, os.X_OK):
        parser.error(f"{TIME} is not there: apt-get install time")
    order = random.Random(asked.seed)
    rounds = 1 if asked.quick else asked.rounds
    rows, differ = [], False
    with tempfile.TemporaryDirectory() as folder:
        found, missing = workloads(folder, asked.quick)
        for name in missing:
            print(f"left out: {name} is not installed", file=sys.stderr)
        for name, runs in found.items():
            if asked.clients and name not in asked.clients:
                continue
            for workload, command in runs:
                if asked.same_only:
                    try:
                        theirs = run(command, None)[0]
                    except SystemExit as refusal:
                        print(f"left out: {name} {workload}: {refusal}", file=sys.stderr)
                        continue
                    is_same = theirs == run(command, library)[0]
                    differ |= not is_same
                    print(f"{name} {workload}: {'the same' if is_same else 'ANOTHER OUTPUT'}", flush=True)
                    continue
                arms = {"a": [], "b": [], "vellum": []}
                outputs = set()
                for _ in range(rounds):
                    sequence = list(arms)
                    order.shuffle(sequence)
                    for arm in sequence:
                        output, cpu, peak, _ = run(command, library if arm == "vellum" else None)
                        outputs.add(output)
                        arms[arm].append((cpu, peak))
                same = len(outputs) == 1
                differ |= not same
                middle = {arm: [statistics.median(column) for column in zip(*values)] for arm, values in arms.items()}
                theirs, ours = pauses(command, None), pauses(command, library)
                shares = None if asked.no_profile else shares_of(command, library, rounds)
                rows.append({
                    "client": name, "workload": workload, "same": same,
                    "cpu_s": middle["a"][0], "cpu": middle["vellum"][0] / middle["a"][0], "cpu_aa": middle["b"][0] / middle["a"][0],
                    "peak_bytes": middle["a"][1], "peak": middle["vellum"][1] / middle["a"][1], "peak_aa": middle["b"][1] / middle["a"][1],
                    "libgc": theirs, "vellum": ours, "collector_s": shares,
                })
    if asked.same_only:
        return 1 if differ else 0
    if asked.json:
        json.dump({"seed": asked.seed, "rounds": rounds, "rows": rows}, sys.stdout, indent=1)
        print()
    else:
        print(f"seed {asked.seed}, {rounds} rounds; ratios to libgc, in brackets libgc to itself\n")
        print(f"{'client':8} {'workload':10} {'CPU s':>6} {'CPU':>14} {'peak MB':>8} {'peak':>14} {'GC ms  ratio':>12}   collections, ms paused, longest: libgc | Vellum")
        for row in rows:
            figures = " | ".join("{:4d} {:8.1f} {:6.2f}".format(*row[side]) for side in ("libgc", "vellum"))
            print(f"{row['client']:8} {row['workload']:10} {row['cpu_s']:6.2f} {row['cpu']:5.2f} ({row['cpu_aa']:5.2f})"
                  f" {row['peak_bytes'] / 1e6:8.1f} {row['peak']:5.2f} ({row['peak_aa']:5.2f}) {ratio_of_shares(row['collector_s'])}   {figures}" + ("" if row["same"] else "   OUTPUT DIFFERS"))
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
