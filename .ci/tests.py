#!/usr/bin/env python3
"""Runs the tests of a cargo workspace: each in a process of its own, several at a time, each with a limit.

    .ci/tests.py [--manifest FILE] [--jobs N] [--list] [WORD...]

Words choose tests: a test runs if its name, "crate::program::path::of_the_test", contains one of them. Without words all
run. `./test`, `fleet/test` and `lab/test` call this program.

Why not `cargo test`: it has no limit for a test, runs one program after another, and prints no stacks of a test that
hangs. cargo-nextest has these, but building it takes longer than the tests.

Invariants:
- A test that exceeds its limit fails: its stacks are printed, its processes end, and the other tests go on.
- A test whose name contains "alone" runs when all others have ended, and with no other beside it.
- A failure prints the test's whole output and the command that repeats it.
- No test is repeated.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
# Seconds a test may take. Exceptions, with their reasons, are in `.ci/limits`.
LIMIT_S = 30
LIST_LIMIT_S = 20
STACKS_LIMIT_S = 20
DOC_LIMIT_S = 600
# Processes of a stopped test whose stacks are printed.
STACKS_MAX = 8
# Running tests per processor: many tests wait for programs, timers and each other.
JOBS_PER_CPU = 2
SLOWEST = 20
# The environment of every process of a test names the test.
MARK = "VELLUM_TEST_ID"

Program = collections.namedtuple("Program", "name path folder whole")
Test = collections.namedtuple("Test", "program name")
Result = collections.namedtuple("Result", "test seconds cpu status output")


def title(test):
    return f"{test.program.name}::{test.name}"


def limits():
    """Exceptions to the limit: lines of "WORD SECONDS REASON"."""
    found = []
    for line in (HERE / "limits").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            word, seconds, _reason = line.split(None, 2)
            found.append((word, int(seconds)))
    return found


def limit_of(test, exceptions):
    factor = float(os.environ.get("VELLUM_TEST_LIMIT", "1"))
    fitting = [seconds for word, seconds in exceptions if word in title(test)]
    return factor * (fitting[0] if fitting else LIMIT_S)


def cargo(arguments, **options):
    return subprocess.run([os.environ.get("CARGO", "cargo"), *arguments], stdin=subprocess.DEVNULL, **options)


def packages(manifest):
    metadata = cargo(["metadata", "--no-deps", "--locked", "--format-version", "1", "--manifest-path", manifest],
                     stdout=subprocess.PIPE, check=True)
    return json.loads(metadata.stdout)["packages"]


def build(manifest, found):
    """The test programs of a workspace, compiled."""
    whole = {(package["name"], name) for package in found
             for name in ((package["metadata"] or {}).get("vellum") or {}).get("whole-programs", [])}
    command = ["test", "--no-run", "--locked", "--message-format=json-render-diagnostics", "--manifest-path", manifest, "--workspace"]
    programs = {}
    folders = {package["id"]: pathlib.Path(package["manifest_path"]).parent for package in found}
    names = {package["id"]: package["name"] for package in found}
    output = cargo(command, stdout=subprocess.PIPE)
    if output.returncode:
        sys.exit(output.returncode)
    for line in output.stdout.splitlines():
        message = json.loads(line)
        if message.get("reason") != "compiler-artifact" or not message.get("executable") or not message["profile"]["test"]:
            continue
        package, target = names[message["package_id"]], message["target"]["name"]
        name = package.removeprefix("vellum-")
        if target.replace("_", "-") != package and target != name:
            name += f"::{target}"
        programs[message["executable"]] = Program(name, message["executable"], folders[message["package_id"]],
                                                  (package, target) in whole)
    return sorted(programs.values())


def tests_of(program):
    if program.whole:
        return [Test(program, "main")]
    listed = subprocess.run([program.path, "--list", "--format", "terse"], cwd=program.folder, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, text=True, check=True, timeout=LIST_LIMIT_S)
    ignored = subprocess.run([program.path, "--list", "--ignored", "--format", "terse"], cwd=program.folder,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True, timeout=LIST_LIMIT_S)
    names = lambda text: [line.removesuffix(": test") for line in text.splitlines() if line.endswith(": test")]
    return [Test(program, name) for name in sorted(set(names(listed.stdout)) - set(names(ignored.stdout)))]


def processes(mark):
    """The ids of the processes whose environment has a mark that begins so."""
    wanted = f"{MARK}={mark}".encode()
    for id in os.listdir("/proc"):
        if id.isdigit() and int(id) != os.getpid():
            try:
                environment = pathlib.Path("/proc", id, "environ").read_bytes()
            except OSError:
                continue
            if any(entry.startswith(wanted) for entry in environment.split(b"\0")):
                yield int(id)


def stacks(ids):
    """Where the threads of processes are: by gdb, otherwise by the kernel's names of what they wait for."""
    text = []
    for id in ids[:STACKS_MAX]:
        try:
            command = pathlib.Path(f"/proc/{id}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:200]
            text.append(f"--- process {id}: {command}")
            if shutil.which("gdb"):
                shown = subprocess.run(["gdb", "-nx", "-batch", "-p", str(id), "-ex", "thread apply all backtrace 30"],
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                       timeout=STACKS_LIMIT_S)
                lines = shown.stdout.decode(errors="replace").splitlines()
                text += [line for line in lines if re.match(r"Thread |#\d", line)]
            for task in sorted(os.listdir(f"/proc/{id}/task")):
                waits = pathlib.Path(f"/proc/{id}/task/{task}/wchan").read_text() or "0"
                name = pathlib.Path(f"/proc/{id}/task/{task}/comm").read_text().strip()
                text.append(f"thread {task} ({name}): in the kernel: {waits}")
        except (OSError, subprocess.TimeoutExpired):
            text.append("(ended, or its stacks cannot be read)")
    if len(ids) > STACKS_MAX:
        text.append(f"(and {len(ids) - STACKS_MAX} more processes)")
    return "\n".join(text)


def end(ids):
    for id in ids:
        try:
            os.kill(id, signal.SIGKILL)
        except OSError:
            pass


def wait(process, limit):
    """The exit status of a process and the processor time of it and its children, seconds; `None` after the limit."""
    descriptor = os.pidfd_open(process.pid)
    try:
        ended = select.select([descriptor], [], [], limit)[0]
    finally:
        os.close(descriptor)
    if not ended:
        return None
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, used.ru_utime + used.ru_stime


def run(test, number, exceptions):
    mark = f"{os.getpid()}-{number};"
    limit = limit_of(test, exceptions)
    environment = {**os.environ, MARK: mark, "VELLUM_TEST_ALONE": "1", "VELLUM_TEST_LIMIT_S": f"{limit:.0f}",
                   "CARGO_MANIFEST_DIR": str(test.program.folder)}
    command = [test.program.path] if test.program.whole else [test.program.path, test.name, "--exact", "--nocapture"]
    began = time.monotonic()
    with tempfile.TemporaryFile() as file:
        process = subprocess.Popen(command, cwd=test.program.folder, env=environment, stdin=subprocess.DEVNULL,
                                   stdout=file, stderr=subprocess.STDOUT, start_new_session=True)
        ended = wait(process, limit)
        status, cpu = ended or (None, 0)
        if not ended:
            ids = [process.pid, *sorted(set(processes(mark)) - {process.pid})]
            where = stacks(ids)
            status = f"exceeded its limit of {limit:g} s"
            end(sorted({process.pid, *processes(mark)}))
            process.wait()
        seconds = time.monotonic() - began
        if status:
            # Children of a test that failed.
            end(processes(mark))
        file.seek(0)
        output = file.read().decode(errors="replace")
    if isinstance(status, str):
        output += f"\n{where}"
    elif status == 0 and not test.program.whole and "test result: ok. 1 passed" not in output:
        status = "did not run"
    elif status:
        status = f"exit status {status}" if status > 0 else f"ended by signal {-status}"
    return Result(test, seconds, cpu, status, output)


def run_documented(manifest, screen):
    """The examples in the documentation, as cargo compiles and runs them: all together, as one test."""
    test = Test(Program("documentation", "cargo", HERE.parent, True), "examples")
    began = time.monotonic()
    try:
        ended = cargo(["test", "--doc", "--locked", "--workspace", "--manifest-path", manifest], timeout=DOC_LIMIT_S,
                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        status, output = ended.returncode and f"exit status {ended.returncode}", ended.stdout
    except subprocess.TimeoutExpired as error:
        status, output = f"exceeded its limit of {DOC_LIMIT_S} s", error.stdout or b""
    result = Result(test, time.monotonic() - began, 0, status, output.decode(errors="replace"))
    screen.show(result)
    return result


class Screen:
    """A line of progress on a terminal, and results as they come."""

    def __init__(self, count):
        self.count, self.ended, self.lock = count, 0, threading.Lock()
        self.terminal = sys.stderr.isatty()

    def show(self, result):
        with self.lock:
            self.ended += 1
            if self.terminal:
                print(f"\r\x1b[K{self.ended}/{self.count} {title(result.test)[:70]}", end="", file=sys.stderr, flush=True)
            if result.status:
                if self.terminal:
                    print("\r\x1b[K", end="", file=sys.stderr)
                repeat = "" if result.test.program.whole else f" {result.test.name} --exact --nocapture"
                print(f"\nFAILED {title(result.test)}: {result.status}\n{result.output}\n"
                      f"repeat: cd {result.test.program.folder} && {result.test.program.path}{repeat}", flush=True)


def main():
    arguments = argparse.ArgumentParser(description="Runs the tests of a cargo workspace, each with a limit.")
    arguments.add_argument("--manifest", default=str(HERE.parent / "Cargo.toml"), metavar="FILE", help="the workspace's Cargo.toml")
    arguments.add_argument("--jobs", type=int, default=JOBS_PER_CPU * len(os.sched_getaffinity(0)), metavar="N", help="tests at a time")
    arguments.add_argument("--list", action="store_true", help="print the tests' names and end")
    arguments.add_argument("--slowest", type=int, default=SLOWEST, metavar="N", help="print the slowest N tests at the end (20)")
    arguments.add_argument("words", nargs="*", metavar="WORD", help="run tests whose name contains a word")
    options = arguments.parse_args()

    # Tests are sessions of their own: whoever ends this program does not end them.
    signal.signal(signal.SIGTERM, lambda *_: (end(processes(f"{os.getpid()}-")), os._exit(1)))
    signal.signal(signal.SIGINT, lambda *_: (end(processes(f"{os.getpid()}-")), os._exit(130)))
    began = time.monotonic()
    exceptions = limits()
    programs = build(options.manifest, packages(options.manifest))
    built = time.monotonic()
    tests = [test for program in programs for test in tests_of(program)]
    tests = [test for test in tests if not options.words or any(word in title(test) for word in options.words)]
    if options.list:
        print("\n".join(title(test) for test in tests))
        return 0
    if not tests:
        print(f"error: no test's name contains {' or '.join(options.words)}", file=sys.stderr)
        return 1

    screen = Screen(len(tests) + (not options.words))
    results = []

    def run_one(numbered):
        result = run(numbered[1], numbered[0], exceptions)
        screen.show(result)
        return result

    # Tests of this user and of another one (children that change who they are) append what they skip.
    skips = tempfile.NamedTemporaryFile(prefix="vellum-skips-")
    os.chmod(skips.name, 0o666)
    os.environ["VELLUM_SKIPS"] = skips.name

    numbered = list(enumerate(tests))
    alone = [one for one in numbered if "alone" in title(one[1])]
    # What may take long begins first, so that nothing is left to wait for at the end.
    beside = sorted((one for one in numbered if "alone" not in title(one[1])), key=lambda one: -limit_of(one[1], exceptions))
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        results += pool.map(run_one, beside)
    results += map(run_one, alone)
    if not options.words:
        results.append(run_documented(options.manifest, screen))
    if screen.terminal:
        print("\r\x1b[K", end="", file=sys.stderr)

    print(flush=True)
    subprocess.run([HERE / "skips", skips.name], check=False)
    failed = [result for result in results if result.status]
    print(f"\nthe slowest {min(options.slowest, len(results))} of {len(results)} tests:")
    for result in sorted(results, key=lambda result: -result.seconds)[:options.slowest]:
        print(f"{result.seconds:7.1f} s  {result.cpu:7.1f} s of CPU  {title(result.test)}")
    print(f"compiled in {built - began:.0f} s, run in {time.monotonic() - built:.0f} s, "
          f"{sum(result.seconds for result in results):.0f} s one after another, "
          f"{sum(result.cpu for result in results):.0f} s of CPU, {len(programs)} programs")
    print(f"{len(results) - len(failed)} passed, {len(failed)} failed")
    for result in failed:
        print(f"FAILED {title(result.test)}: {result.status}")
    return 1 if failed else 0


sys.exit(main())
