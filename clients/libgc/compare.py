#!/usr/bin/env python3
"""Runs programs that are linked with libgc on libgc and on Vellum's libgc.so.1, and prints time, memory and pauses as a table.

    clients/libgc/compare.py [--libgc-folder target/release/libgc] [--rounds 5] [--quick] [--json] [client ...]

Each round runs every client's workloads three times, in random order: on the distribution's library twice (`a`, `b`: what differs between
them is chance) and on Vellum's. Reported are medians over the rounds of the CPU time (user and system) and of the largest resident set, as ratios
to `a`, and the spread of `b` beside them. Outputs must be the same, or the harness says so and ends with 1. Pauses are from one more run
with GC_PRINT_STATS, which is not timed. Clients that are not installed are named and left out.

Workloads are made here: pages for w3m; scripts for guile (allocation, strings, threads, guardians and weak tables, its compiler), ecl, neko,
crystal and poke. `--seed N` repeats the order of a run.
"""

import argparse
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

TIME = "/usr/bin/time"
GUILE = {
    "cons": "(define (tree n) (if (= n 0) '() (cons (tree (- n 1)) (tree (- n 1))))) "
    "(define (count t) (if (null? t) 1 (+ (count (car t)) (count (cdr t))))) "
    "(let loop ((i 0) (s 0)) (if (= i SCALE) (begin (write s) (newline)) (loop (+ i 1) (+ s (count (tree 14))))))",
    "strings": "(let loop ((i 0) (l '())) (if (= i (* SCALE 4000)) (begin (write (string-length (string-concatenate l))) (newline)) "
    "(loop (+ i 1) (cons (number->string (* i i)) (if (= 0 (modulo i 1000)) '() l)))))",
    "threads": "(use-modules (ice-9 threads)) (write (apply + (par-map (lambda (i) (let loop ((k 0) (acc '())) "
    "(if (< k (* SCALE 8000)) (loop (+ k 1) (if (= 0 (modulo k 1000)) '() (cons k acc))) (+ i (length acc))))) (iota 8)))) (newline)",
    "guardians": "(define g (make-guardian)) (define t (make-weak-key-hash-table)) "
    "(let loop ((i 0)) (if (< i (* SCALE 4000)) (begin (g (list i)) (hashq-set! t (list i) i) (let drain () (if (g) (drain))) (loop (+ i 1))))) "
    "(gc) (write (< (hash-fold (lambda (k v n) (+ n 1)) 0 t) (* SCALE 4000))) (newline)",
    "bignums": "(define (fact n) (if (= n 0) 1 (* n (fact (- n 1))))) "
    "(let loop ((i 0) (s 0)) (if (= i (* SCALE 4)) (begin (write (modulo s 1000007)) (newline)) (loop (+ i 1) (+ s (fact 900)))))",
}
LISP = """(defun tree (n) (if (= n 0) nil (cons (tree (- n 1)) (tree (- n 1)))))
(defun leaves (x) (if (null x) 1 (+ (leaves (car x)) (leaves (cdr x)))))
(print (loop for i below SCALE sum (leaves (tree 11))))
(let ((table (make-hash-table :test 'equal)))
  (loop for i below (* SCALE 2000) do (setf (gethash (format nil "~a" i) table) (list i))) (print (hash-table-count table)))
(ext:quit 0)
"""
NEKO = """tree = function(n) { if n == 0 null else $array(tree(n - 1), tree(n - 1)); }
leaves = function(t) { if t == null 1 else leaves(t[0]) + leaves(t[1]); }
i = 0; s = 0; while i < SCALE * 2 { s = s + leaves(tree(14)); i = i + 1; }
$print(s, "\\n");
"""
CRYSTAL = """class Node
  property left : Node?
  property right : Node?
  def initialize(@left, @right); end
end
def tree(n) : Node?
  n == 0 ? nil : Node.new(tree(n - 1), tree(n - 1))
end
def count(t : Node?) : Int32
  t ? 1 + count(t.left) + count(t.right) : 0
end
done = Channel(Int32).new
8.times { |i| spawn { s = 0; (SCALE * 3).times { s += count(tree(12)); Fiber.yield }; done.send(s + i) } }
puts (1..8).sum { done.receive }
puts (1..SCALE * 20000).map(&.to_s).join.size
"""
POKE = 'var s = 0; for (var i = 0; i < SCALE * 3000; i = i + 1) { var a = [i, i + 1, i + 2]; s = s + a[1]; } printf ("%i32d\\n", s as int<32>);\n'


def page(rows, tables):
    parts = ["<html><title>Tables</title><body>"]
    for table in range(tables):
        parts.append(f"<h2>Part {table}</h2><table border=1>")
        for row in range(rows):
            parts.append(f"<tr><td><a href='x{row}'>row {row}</a><td>{'w ' * (row % 9)}<td>&auml;&euro; {row * table}")
        parts.append("</table><ul><li>one<li>two<ol><li>three</ol></ul>")
    return "".join(parts)


def text_page(words):
    chance = random.Random(1)
    body = " ".join("".join(chance.choices("abcdefghij", k=chance.randint(2, 9))) for _ in range(words))
    return f"<html><body><p>{body}</p><form><input name=a><textarea>x</textarea></form></body></html>"


def workloads(folder, quick):
    """{client: [(workload, command)]}, of the clients that are installed; and those that are not."""
    scale = 2 if quick else 6
    missing, found = [], {}

    def write(name, text):
        path = os.path.join(folder, name)
        with open(path, "w") as file:
            file.write(text.replace("SCALE", str(scale)))
        return path

    def client(name, program, make):
        if shutil.which(program):
            found[name] = make()
        else:
            missing.append(name)

    def w3m():
        pages = {"tables": page(30, 4 * scale), "text": text_page(15000 * scale), "one-table": page(300 * scale, 1)}
        paths = {name: write(name + ".html", source) for name, source in pages.items()}
        runs = [(name, ["w3m", "-dump", "-cols", "80", path]) for name, path in paths.items()]
        return runs + [("narrow", ["w3m", "-dump", "-cols", "30", paths["tables"]])]

    def guile():
        runs = [(name, ["guile", "--no-auto-compile", write(f"{name}.scm", source)]) for name, source in GUILE.items()]
        source = write("compiled.scm", "\n".join(f"(define (f{i} x) (let ((y (* x {i}))) (map (lambda (z) (+ z y)) (iota y))))" for i in range(30 * scale)))
        compiler = write("compiler.scm", "(use-modules (system base compile)) (compile-file (cadr (command-line)) #:output-file \"/dev/null\")")
        return runs + [("compile", ["guile", "--no-auto-compile", compiler, source])]

    def neko():
        source = write("program.neko", NEKO)
        subprocess.run(["nekoc", source], check=True)
        return [("trees", ["neko", os.path.join(folder, "program.n")])]

    def crystal():
        program = os.path.join(folder, "crystal-program")
        made = subprocess.run(["crystal", "build", "--release", "-o", program, write("program.cr", CRYSTAL)], capture_output=True)
        return [("fibers", [program])] if made.returncode == 0 else []

    client("w3m", "w3m", w3m)
    client("guile", "guile", guile)
    client("ecl", "ecl", lambda: [("trees", ["ecl", "--norc", "--shell", write("program.lisp", LISP)])])
    client("neko", "nekoc", neko)
    client("crystal", "crystal", crystal)
    client("poke", "poke", lambda: [("loop", ["poke", "-q", "-L", write("program.pk", POKE)])])
    return found, missing


def run(command, library, statistics_wanted=False):
    """Output, CPU seconds, largest resident set in bytes, what was said on standard error."""
    env = {key: value for key, value in os.environ.items() if key not in ("LD_LIBRARY_PATH", "LD_PRELOAD")}
    if library:
        env["LD_LIBRARY_PATH"] = library
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument("--libgc-folder", default=os.path.join(here, "../../target/release/libgc"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true")
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
                rows.append({
                    "client": name, "workload": workload, "same": same,
                    "cpu_s": middle["a"][0], "cpu": middle["vellum"][0] / middle["a"][0], "cpu_aa": middle["b"][0] / middle["a"][0],
                    "peak_bytes": middle["a"][1], "peak": middle["vellum"][1] / middle["a"][1], "peak_aa": middle["b"][1] / middle["a"][1],
                    "libgc": theirs, "vellum": ours,
                })
    if asked.json:
        json.dump({"seed": asked.seed, "rounds": rounds, "rows": rows}, sys.stdout, indent=1)
        print()
    else:
        print(f"seed {asked.seed}, {rounds} rounds; ratios to libgc, in brackets libgc to itself\n")
        print(f"{'client':8} {'workload':10} {'CPU s':>6} {'CPU':>14} {'peak MB':>8} {'peak':>14}   collections, ms paused, longest: libgc | Vellum")
        for row in rows:
            figures = " | ".join("{:4d} {:8.1f} {:6.2f}".format(*row[side]) for side in ("libgc", "vellum"))
            print(f"{row['client']:8} {row['workload']:10} {row['cpu_s']:6.2f} {row['cpu']:5.2f} ({row['cpu_aa']:5.2f})"
                  f" {row['peak_bytes'] / 1e6:8.1f} {row['peak']:5.2f} ({row['peak_aa']:5.2f})   {figures}" + ("" if row["same"] else "   OUTPUT DIFFERS"))
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
