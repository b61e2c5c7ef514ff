#!/usr/bin/env python3
"""Writes resident.txt: the functions of libvellum.so that programs run, found by callgrind.

    ./build && crates/runtime/resident.py

Runs the installed programs of lab/clients/libgc, and some programs without a collector. Functions that most programs ran come first. Needs valgrind, which finds no
names of functions in the ordered section, so the library is built without the order (target/unordered). Under valgrind the library leaves `malloc` to the C library and
starts no helper: of these parts, only the start is found. Their functions lie next to each other in the default order, too. (Ordering them by the number of programs
made more code resident in a process that only allocates: 340 KB in place of 300 KB.)
"""

import collections
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TARGET = os.path.join(HERE, "../../target")
sys.path.insert(0, os.path.join(HERE, "../../lab/clients/libgc"))

import workloads  # noqa: E402

PLAIN = [["ls", "-la", "/usr/bin"], ["python3", "-c", "import json; json.dumps([str(i) * 10 for i in range(20000)])"], ["sort", "/etc/services"]]
# Programs that take callgrind minutes, or that start children of children.
LEFT_OUT = ("asy", "lilypond", "stalin", "nix", "goo", "debfoster")


def functions(output):
    """Symbols of the library's functions that a run has called."""
    objects, names, current, found = {}, {}, "", set()
    for line in open(output):
        if match := re.match(r"(c?)ob=\((\d+)\)(?: (.*))?", line):
            if match[3]:
                objects[match[2]] = match[3].strip()
            if not match[1]:
                current = objects.get(match[2], "")
        elif match := re.match(r"(c?)fn=\((\d+)\)(?: (.*))?", line):
            if match[3]:
                names[match[2]] = match[3].strip()
            if not match[1] and "libvellum" in current:
                found.add(re.sub(r"'\d+$", "", names[match[2]]))
    return found


def parts(symbol):
    """The names in a symbol (RFC 2603), in order; any other symbol is one name."""
    if not symbol.startswith("_R"):
        return [symbol]
    # A crate's hash has digits, too.
    symbol = re.sub(r"Cs[0-9A-Za-z]*_(?=\d)", "C", re.sub(r"\.llvm\.\d+$", "", symbol[2:]))
    found, at = [], 0
    while at < len(symbol):
        length = re.match(r"(\d+)_?", symbol[at:])
        if length and not symbol[at - 1:at].isdigit():
            begin = at + len(length[0])
            name = symbol[begin:begin + int(length[1])]
            if len(name) == int(length[1]) and re.fullmatch(r"[A-Za-z_]\w+", name):
                found.append(name)
                at = begin + len(name)
                continue
        at += 1
    return found


def run(command, added, folder, number):
    env = {**os.environ, **added}
    output = os.path.join(folder, f"{number}.%p")
    valgrind = ["valgrind", "--tool=callgrind", "--demangle=no", f"--callgrind-out-file={output}"]
    subprocess.run([*valgrind, *command], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=600)


def main():
    built = ["cargo", "build", "--release", "--locked", "--quiet", "-p", "vellum-runtime", "--target-dir", os.path.join(TARGET, "unordered")]
    subprocess.run(built, env={**os.environ, "VELLUM_UNORDERED": "1"}, check=True)
    used = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        clients = workloads.workloads(folder, True)[0]
        unordered = os.path.join(TARGET, "unordered/release/libvellum.so")
        library = {"LD_LIBRARY_PATH": os.path.join(TARGET, "release/libgc"), "LD_PRELOAD": unordered}
        # One of each: those of one client run the same.
        runs = [(name, works[0][1], library) for name, works in clients.items() if works and name not in LEFT_OUT]
        runs += [(command[0], command, {"LD_PRELOAD": unordered}) for command in PLAIN]
        for number, (name, command, added) in enumerate(runs):
            print(name, file=sys.stderr)
            run(command, added, folder, number)
            found = set()
            for output in os.listdir(folder):
                if output.startswith(f"{number}."):
                    found |= functions(os.path.join(folder, output))
            used.update(found)
    lines = []
    for symbol, _ in sorted(used.items(), key=lambda use: (-use[1], use[0])):
        line = " ".join(parts(symbol))
        if line and not symbol.startswith("0x") and line not in lines:
            lines.append(line)
            # `operator delete` is the same code, and has the section's name.
            lines += ["_ZdlPv"] if line == "free" else []
    path = os.path.join(HERE, "resident.txt")
    head = [line for line in open(path).read().splitlines() if line.startswith("#")]
    with open(path, "w") as file:
        file.write("\n".join(head + lines) + "\n")
    print(f"{len(lines)} functions", file=sys.stderr)


if __name__ == "__main__":
    main()
