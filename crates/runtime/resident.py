#!/usr/bin/env python3
"""Writes resident.txt: what programs run of libvellum.so, by callgrind.

    ./build && crates/runtime/resident.py

Runs those programs of lab/clients/libgc that are installed, and some that know nothing of collection. What most of them ran comes first. Needs valgrind, which
knows the names of none of the functions that are in an order: the library is built without (target/unordered). Under valgrind it leaves `malloc` to the C library, and has no
helper: what these run is not found but for how they start, and lies together by itself, as it comes. (With it in the order by how many programs ran what, more was in memory: 340 KB of
code in a process that only allocates, for 300.)
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
# What takes callgrind minutes, and children of children.
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
    """The names in a symbol (RFC 2603), in their order; what is no such symbol is one."""
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
