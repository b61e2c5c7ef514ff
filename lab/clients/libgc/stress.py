#!/usr/bin/env python3
"""Runs a test workload a thousand times on Vellum's libgc.so.1, with collections at random points.

    lab/clients/libgc/stress.py [--libgc-folder target/release/libgc] [--runs 1000] [--jobs 2] [--seed N]
                                [--only RUN] [--real PARTS] [--theirs]

The workload (stress/) uses all features of libgc at once. One in `--real` runs (6; 0 for none) is a real
program that is linked with libgc, with a script of compare.py's. Its output is compared with its output on
the distribution's library.

The settings of a run are drawn from the seed and the run's number: the number of threads, rounds and steps;
whether allocations collect at random (`VELLUM_GC_EAGER`) and every invariant is checked; whether collections
stop the program once or run in slices; which kernel features are hidden (`VELLUM_MASK`); how soon memory is
returned; huge pages.

A run fails in any of these cases:
- It ends with a signal or a wrong status, or a check of its own fails.
- Something grows from round to round of the same work: live bytes, resident memory, mappings, open files,
  threads, finalizers that do not run.
- It prints anything on standard error.
- It takes longer than `--limit` seconds (150). Its threads' stacks are then printed (gdb).

The line of a failed run has the options that repeat it: `--seed N --only RUN`. Failures are listed again at
the end; the status is 1 if there were any. `--theirs` runs the workload on the distribution's library, to
find failures that are not Vellum's.
"""

import argparse
import concurrent.futures
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import compare

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = os.path.join(HERE, "stress")
# What the workload may say: warnings of libgc's own.
HARMLESS = ("GC Warning:", "to be finalized", "libgc (Vellum): GC_")
# What the kernel does not offer (docs/malloc.md); mostly it offers all.
MASKS = ["", "", "", "", "protect", "track", "protect,track", "helper", "lazy_free", "membarrier"]


def build(folder, library):
    """The workload, linked with `library`, and the library that it opens."""
    names = sorted(name for name in os.listdir(SOURCES) if name.endswith(".c"))
    parts = [os.path.join(SOURCES, name) for name in names if name != "library.c"]
    opened = os.path.join(folder, "library.so")
    program = os.path.join(folder, "stress")
    compiler = os.environ.get("CC", "cc")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", opened, os.path.join(SOURCES, "library.c")], check=True)
    headers = os.path.join(HERE, "../../../include/libgc")
    subprocess.run([compiler, "-std=gnu11", "-g", "-O1", "-Wall", "-Wextra", "-I", headers, "-o", program, *parts, library, "-lpthread", "-ldl"], check=True)
    return program, opened


def draw(seed, number, asked, program, opened, real):
    """A run: what it is called, its command, what is added to its environment, what it is to print (None: the workload's own word)."""
    chance = random.Random(f"{seed}/{number}")
    added = {}
    mean = 0
    if not asked.theirs and chance.random() < 0.8:
        mean = int(10 ** chance.uniform(0.8, 3.6))
        added["VELLUM_GC_EAGER"] = f"{mean},seed={chance.randrange(1 << 32)}"
    if chance.random() < 0.35:
        added["GC_ENABLE_INCREMENTAL"] = "1"
        added["GC_PAUSE_TIME_TARGET"] = str(chance.choice([1, 1, 5]))
    if chance.random() < 0.2:
        added["VELLUM_DECAY_MS"] = str(chance.choice([0, 1, 20]))
    if chance.random() < 0.2:
        added["VELLUM_HUGE"] = chance.choice(["never", "always"])
    mask = chance.choice(MASKS)
    if mask:
        added["VELLUM_MASK"] = mask
    if real and asked.real and chance.randrange(asked.real) == 0:
        name, command, expected = chance.choice(real)
        if mean:
            # They allocate more, and keep more.
            added["VELLUM_GC_EAGER"] = f"{mean * 100},seed={chance.randrange(1 << 32)}"
        return name, command, added, expected
    # As much work as takes a second or so, whatever each allocation costs.
    steps = chance.randint(300, 2500) if mean == 0 or mean > 200 else chance.randint(60, 300) if mean < 30 else chance.randint(150, 900)
    rounds, threads = chance.choice([4, 6, 6, 8]), chance.randint(1, 7)
    command = [program, str(chance.randrange(1 << 40)), opened, str(rounds), str(threads), str(steps), "0" if asked.theirs else "1"]
    return "workload", command, added, None


def stacks(pid):
    """The stacks of the process's threads, and of its children's."""
    if not shutil.which("gdb"):
        return "no stacks: gdb is not installed\n"
    found = ""
    children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True).stdout.split()
    for each in [str(pid), *children]:
        shown = subprocess.run(["gdb", "-q", "-batch", "-p", each, "-ex", "thread apply all bt 24"], capture_output=True, text=True, timeout=120)
        found += f"-- process {each}\n{shown.stdout}"
    return found


def run(number, asked, program, opened, real, library):
    """What was wrong, or nothing; and how long it took."""
    name, command, added, expected = draw(asked.seed, number, asked, program, opened, real)
    env = {key: value for key, value in os.environ.items() if key not in ("LD_LIBRARY_PATH", "LD_PRELOAD")}
    env.update(added)
    if library:
        env["LD_LIBRARY_PATH"] = library
    begun = time.monotonic()
    wrong = ""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        # A group of its own, so that its children can be ended with it.
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=env, start_new_session=True)
        try:
            status = process.wait(timeout=asked.limit)
        except subprocess.TimeoutExpired:
            wrong = f"hangs: over after {asked.limit} seconds\n" + stacks(process.pid)
            status = 0
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        out.seek(0)
        err.seek(0)
        printed, said = out.read(), err.read().decode(errors="replace")
    if status:
        wrong += f"ended with {status}\n"
    if expected is None and not wrong and not printed.endswith(b"done\n"):
        wrong += "did not end with \"done\"\n"
    if expected is not None and not wrong and printed != expected:
        wrong += "printed something else than on the distribution's library\n"
    told = [line for line in said.splitlines() if not any(word in line for word in HARMLESS)]
    if wrong or (expected is None and told):
        shown = " ".join([f"{key}={value}" for key, value in added.items()] + command)
        wrong = f"run {number} ({name}) {wrong or 'said something'}  {shown}\n  again: --seed {asked.seed} --only {number}\n" + "".join(
            f"  | {line}\n" for line in told[-12:])
        if asked.only is not None:
            wrong += printed.decode(errors="replace")
    return wrong, time.monotonic() - begun, name


def real_programs(folder):
    """Clients with what they print on the distribution's library: (name, command, output)."""
    found, missing = compare.workloads(folder, True)
    for name in missing:
        print(f"left out: {name} is not installed", file=sys.stderr)
    programs = []
    for name, runs in found.items():
        for workload, command in runs:
            programs.append((f"{name} {workload}", command, compare.run(command, None)[0]))
    return programs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--libgc-folder", default=os.path.join(HERE, "../../../target/release/libgc"))
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first run")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--real", type=int, default=6)
    parser.add_argument("--limit", type=int, default=150, help="seconds after which a run counts as hung")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--only", type=int)
    parser.add_argument("--theirs", action="store_true")
    asked = parser.parse_args()
    library = os.path.abspath(asked.libgc_folder)
    if not asked.theirs and not os.path.isfile(os.path.join(library, "libgc.so.1")):
        parser.error(f"{library} has no libgc.so.1: run ./build, or name its folder with --libgc-folder")
    print(f"seed {asked.seed}", flush=True)
    failures, seconds, count = [], 0.0, {}
    with tempfile.TemporaryDirectory() as folder:
        program, opened = build(folder, "-lgc" if asked.theirs else os.path.join(library, "libgc.so.1"))
        real = real_programs(folder) if asked.real and not asked.theirs else []
        numbers = [asked.only] if asked.only is not None else range(asked.first, asked.first + asked.runs)
        with concurrent.futures.ThreadPoolExecutor(max_workers=asked.jobs) as pool:
            runs = [pool.submit(run, number, asked, program, opened, real, None if asked.theirs else library) for number in numbers]
            for each in concurrent.futures.as_completed(runs):
                wrong, took, name = each.result()
                seconds += took
                count[name] = count.get(name, 0) + 1
                if wrong:
                    failures.append(wrong)
                    print(wrong, flush=True)
    print(", ".join(f"{name} {many}" for name, many in sorted(count.items())))
    print(f"{sum(count.values())} runs, {seconds:.0f} seconds of runs, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
