#!/usr/bin/env python3
"""Runs the pager's tests of lost pages a thousand times, while the kernel compacts memory and the tests are stopped and continued.

    crates/pager/stress.py [--runs 1000] [--jobs 2] [--seed N] [--only RUN] [--limit 300]

The tests check every byte against a model. Between them they have stores that are full; children of processes that page; kills of programs and of
children at random moments; paged stacks; system calls on paged memory. Each run draws a test, the seed of its random numbers, if it has any
(VELLUM_TEST_SEED), and when the test and its children are stopped (SIGSTOP). As root, memory is compacted all the while; another user's runs do without,
which is said at the start.

A run fails if its test fails or takes longer than `--limit` seconds. Its line says how to run it again: `--seed N --only RUN`; its output is shown.
Runs whose test could not test, as on a file system in memory, are counted with their reasons. The status is 1 if any run failed or none tested,
2 if the tests cannot be built.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

PROGRAM = "pager"
COMPACT = "/proc/sys/vm/compact_memory"


def build():
    """The test program."""
    command = ["cargo", "test", "--profile", "checked", "--locked", "-p", "vellum-pager", "--test", PROGRAM, "--no-run", "--message-format", "json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        sys.exit(2)
    for line in done.stdout.splitlines():
        message = json.loads(line)
        if message.get("executable") and message["target"]["name"] == PROGRAM:
            return message["executable"]
    sys.exit(2)


def tests(program):
    """Every test's name."""
    listed = subprocess.run([program, "--list"], capture_output=True, text=True, check=True).stdout
    return [line[: -len(": test")] for line in listed.splitlines() if line.endswith(": test")]


def family(pid):
    """`pid` and its descendants."""
    found = [pid]
    for one in found:
        try:
            with open(f"/proc/{one}/task/{one}/children", encoding="ascii") as file:
                found += map(int, file.read().split())
        except OSError:
            pass
    return found


def disturb(process, chance, until):
    """Stops the process and its children for some milliseconds, now and then."""
    while process.poll() is None and time.monotonic() < until:
        time.sleep(chance.expovariate(20))
        if process.poll() is not None:
            return
        stopped = []
        for pid in family(process.pid):
            try:
                os.kill(pid, signal.SIGSTOP)
                stopped.append(pid)
            except ProcessLookupError:
                pass
        time.sleep(chance.uniform(0.001, 0.1))
        for pid in stopped:
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                pass


def run(seed, number, program, all_tests, limit):
    """One run: what it was, what is wrong, if anything is, and why it did not test, if it did not."""
    chance = random.Random(f"{seed}/{number}")
    test = chance.choice(all_tests)
    what = f"run {number}: {test}"
    command = [program, "--exact", test, "--nocapture"]
    # Into a file, as what a test leaves behind may hold a pipe open.
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as skips, tempfile.TemporaryFile() as out:
        environment = dict(os.environ, VELLUM_TEST_SEED=str(chance.randrange(1 << 32)), RUST_BACKTRACE="1", VELLUM_SKIPS=skips.name)
        # In a session of its own, so that what it leaves behind can be ended.
        process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
        stopper = threading.Thread(target=disturb, args=(process, chance, time.monotonic() + limit))
        stopper.start()
        try:
            status = process.wait(timeout=limit)
            wrong = f"status {status}" if status else ""
        except subprocess.TimeoutExpired:
            wrong = f"not over after {limit} s"
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
            stopper.join()
        if wrong:
            out.seek(0)
            wrong += "\n" + out.read().decode(errors="replace")
        return what, wrong, skips.read().strip()


def compact(over):
    """Has the kernel compact memory until `over`."""
    while not over.wait(0.05):
        with open(COMPACT, "w", encoding="ascii") as file:
            file.write("1")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog="\n".join(__doc__.splitlines()[4:]), formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000, help="how many (1000)")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (2)")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32), help="what all runs are drawn from (a random one)")
    parser.add_argument("--only", type=int, help="only this run")
    parser.add_argument("--limit", type=int, default=300, help="the longest run, in seconds (300)")
    asked = parser.parse_args()
    program = build()
    all_tests = tests(program)
    numbers = range(asked.runs) if asked.only is None else [asked.only]
    is_root = os.access(COMPACT, os.W_OK)
    print(f"seed {asked.seed}, {len(numbers)} runs of {len(all_tests)} tests" + ("" if is_root else ", without compaction (needs root)"), flush=True)
    over = threading.Event()
    compactor = threading.Thread(target=compact, args=(over,))
    if is_root:
        compactor.start()
    failed, reasons, done = [], collections.Counter(), 0
    began = time.monotonic()
    pool = concurrent.futures.ThreadPoolExecutor(asked.jobs)
    try:
        each = [pool.submit(run, asked.seed, number, program, all_tests, asked.limit) for number in numbers]
        for future in concurrent.futures.as_completed(each):
            what, wrong, skipped = future.result()
            done += 1
            if skipped:
                reasons[skipped] += 1
            if wrong:
                failed.append(what)
                print(f"FAILED {what} (--seed {asked.seed} --only {what.split()[1][:-1]}): {wrong}", flush=True)
            if done % 50 == 0:
                print(f"{done} of {len(numbers)} after {time.monotonic() - began:.0f} s, {len(failed)} failed", flush=True)
    finally:
        pool.shutdown(cancel_futures=True)
        over.set()
        if is_root:
            compactor.join()
    for what in failed:
        print(f"failed: {what}")
    for reason, count in reasons.most_common():
        print(f"did not test, {count} runs: {reason}")
    tested = done - sum(reasons.values())
    print(f"{done} runs in {time.monotonic() - began:.0f} s, {tested} of them tested, {len(failed)} failed")
    sys.exit(1 if failed or not tested else 0)


if __name__ == "__main__":
    main()
