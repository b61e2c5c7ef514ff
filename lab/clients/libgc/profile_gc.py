"""Measures by a profile how much of a program's CPU time the collector takes, for libgc and for Vellum.

`perf` interrupts the program at a fixed rate of CPU time and records its stack. The innermost function
decides, leaving out functions of the C library (memset, locks) and of the kernel (page faults). If it is in
the collector, the sample is the collector's. Clearing, locks and faults of an allocation therefore count;
finalizers and other functions of the program that a collection calls do not. The collector's own threads
count. Vellum's `malloc` is in the same library as its collector and is recognised by its functions' names:
like the C library's malloc, it does not count.
"""

import os
import re
import subprocess
import tempfile

# Samples a second of CPU time, and bytes of stack kept with each: enough for what lies between a fault and its caller.
RATE = 5000
STACK_BYTES = 4096
# Neither the program nor the collector: who called them decides.
ASIDE = re.compile(r"^(\[.*\]|.*/(libc|libpthread|libm|ld-linux-x86-64|ld)[-.0-9]*\.so[.0-9]*)$")
LIBGC = re.compile(r"/libgc(pp)?\.so")
VELLUM = re.compile(r"/libvellum\.so")
# What of libvellum.so serves `malloc` and starts the process.
MALLOC = re.compile(r"vellum_malloc|vellum_runtime|^(malloc|calloc|realloc|free|memalign|aligned_alloc|posix_memalign|mmap|munmap)$")


def of_collector(frames):
    """Whether a sample is the collector's. `frames` are (function, file) from the innermost out."""
    for function, file in frames:
        if ASIDE.match(file):
            continue
        if LIBGC.search(file):
            return True
        if VELLUM.search(file):
            # The page layer and the system calls serve both: who called them decides.
            if MALLOC.search(function):
                return False
            if re.search(r"vellum_gc|vel_gc", function):
                return True
            continue
        return False
    return False


def samples(text):
    """Stacks as `perf script` prints them: lists of (function, file), from the innermost out."""
    for part in text.split("\n\n"):
        frames = re.findall(r"^\s+[0-9a-f]+ (.*) \((.*)\)$", part, re.MULTILINE)
        if frames:
            yield frames


def seconds(command, env, rounds):
    """CPU seconds of the collector and of all, a run, over `rounds` runs; None where perf cannot be used."""
    theirs = everything = 0
    with tempfile.TemporaryDirectory() as folder:
        data = os.path.join(folder, "perf.data")
        for _ in range(rounds):
            record = ["perf", "record", "-q", "-e", "cpu-clock", "-F", str(RATE), "--call-graph", f"dwarf,{STACK_BYTES}", "-o", data, "--", *command]
            try:
                made = subprocess.run(record, env=env, stdin=subprocess.DEVNULL, capture_output=True)
            except FileNotFoundError:
                return None
            if made.returncode != 0 or not os.path.exists(data):
                return None
            script = ["perf", "script", "--no-inline", "-i", data, "-F", "ip,sym,dso"]
            text = subprocess.run(script, capture_output=True, check=True).stdout.decode(errors="replace")
            for frames in samples(text):
                everything += 1
                theirs += of_collector(frames)
    return theirs / RATE / rounds, everything / RATE / rounds
