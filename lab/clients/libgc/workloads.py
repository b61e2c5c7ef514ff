"""The programs that compare.py runs, and their inputs, made here so that every machine has the same.

`workloads` gives the commands of each installed client. Each command prints its results, so that outputs can
be compared.
"""

import os
import random
import shutil
import subprocess

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
ASY = """int collatz(int n) { int k = 0; while (n != 1) { n = n % 2 == 0 ? quotient(n, 2) : 3 * n + 1; ++k; } return k; }
int best = 0; for (int i = 1; i < SCALE * 400; ++i) { int k = collatz(i); if (k > best) best = k; } write(best);
string s = ""; for (int i = 0; i < SCALE * 300; ++i) { s += string(i * i); if (length(s) > 5000) s = substr(s, 2500); } write(length(s));
real[] a; for (int i = 0; i < SCALE * 2000; ++i) a.push(sin(i)); a = sort(a); write(a[0] <= a[1]);
path p = circle((0, 0), 1); int met = 0;
for (int i = 0; i < SCALE * 60; ++i) met += intersections(p, shift(i / (SCALE * 60), 0) * unitsquare).length; write(met);
"""
PARSER = """@main[]
$text[^for[i](1;TIMES300){^i.format[%05d],}]
$parts[^text.split[,]]
^text.length[] ^parts.count[] ^text.replace[0;zero].length[]
$hash[^hash::create[]]
^for[i](1;TIMES1000){$hash.[k$i][$.value[^math:md5[$i]] $.next($i * 2)]}
$sum(0)
^hash.foreach[key;item]{^sum.inc($item.next)}
$sum ^hash._count[] $hash.k7.value
"""
VHDL_PART = """entity part{0} is port (a, b : in bit; s, c : out bit); end part{0};
architecture how of part{0} is
  signal x : integer := {0};
begin
  s <= a xor b;
  c <= a and b;
  process begin
    for i in 0 to 31 loop
      if x > i * {0} then x <= x - i; else x <= x + {0}; end if;
    end loop;
    wait on x;
  end process;
end how;
"""
NIX = """let
  numbers = builtins.genList (i: i) (SCALE * 3000);
  tree = n: if n == 0 then { } else { left = tree (n - 1); right = tree (n - 1); };
  leaves = t: if t == { } then 1 else leaves t.left + leaves t.right;
  text = builtins.concatStringsSep "," (map toString numbers);
in [ (builtins.foldl' (s: i: s + i) 0 numbers) (leaves (tree 13)) (builtins.stringLength text)
     (builtins.length (builtins.attrNames (builtins.listToAttrs (map (i: { name = "k${toString i}"; value = i; }) numbers))))
     (builtins.length (builtins.split "," text)) ]
"""
LILYPOND = """\\version "2.22.0"
\\header { tagline = ##f }
{ \\repeat unfold SCALE { c'4 e'8( g') <c' e' g'>4. r8 | \\tuplet 3/2 { d'8 f' a' } b'4-. c''2\\fermata | } }
"""
GOO = """(df fib (n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
(fib 19)
(df tree (n) (if (= n 0) '() (pair (tree (- n 1)) (tree (- n 1)))))
(df leaves (t) (if (empty? t) 1 (+ (leaves (head t)) (leaves (tail t)))))
(leaves (tree 11))
"""
STALIN = """(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
(define (tree n) (if (= n 0) '() (cons (tree (- n 1)) (tree (- n 1)))))
(define (leaves t) (if (null? t) 1 (+ (leaves (car t)) (leaves (cdr t)))))
(display (fib 10)) (display (leaves (tree 5))) (newline)
"""
OBJECTIVE_C = """#include <objc/runtime.h>
#include <stdio.h>
__attribute__((objc_root_class)) @interface Node { Class isa; Node *left, *right; }
+ (Node *)make: (int)depth;
- (int)count;
@end
@implementation Node
+ (Node *)make: (int)depth {
    Node *node = class_createInstance(self, 0);
    if (depth) { node->left = [Node make: depth - 1]; node->right = [Node make: depth - 1]; }
    return node;
}
- (int)count { return 1 + (left ? [left count] : 0) + (right ? [right count] : 0); }
@end
int main(void) {
    long all = 0;
    for (int i = 0; i < SCALE * 10; i++) all += [[Node make: 13] count];
    printf("%ld\\n", all);
    return 0;
}
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
            for times in (1000, 300):
                text = text.replace(f"TIMES{times}", str(scale * times))
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
        # It makes a file beside its output and renames it: nothing but a file of this folder may be named.
        compiler = write("compiler.scm", "(use-modules (system base compile)) (compile-file (cadr (command-line)) #:output-file (caddr (command-line)))")
        return runs + [("compile", ["guile", "--no-auto-compile", compiler, source, os.path.join(folder, "compiled.go")])]

    def neko():
        source = write("program.neko", NEKO)
        subprocess.run(["nekoc", source], check=True)
        return [("trees", ["neko", os.path.join(folder, "program.n")])]

    def crystal():
        program = os.path.join(folder, "crystal-program")
        made = subprocess.run(["crystal", "build", "--release", "-o", program, write("program.cr", CRYSTAL)], capture_output=True)
        return [("fibers", [program])] if made.returncode == 0 else []

    def fauhdlc():
        source = write("parts.vhdl", "\n".join(VHDL_PART.format(i) for i in range(1, 60 * scale)))
        return [("parts", ["fauhdlc", "-o", "/dev/stdout", source])]

    def lilypond():
        source, out = write("score.ly", LILYPOND), os.path.join(folder, "score")
        return [("score", ["sh", "-c", f"lilypond -s -dbackend=svg -o {out} {source} && cat {out}*.svg"])]

    def stalin():
        source = write("program.sc", STALIN)
        return [("compile", ["sh", "-c", f"cd {folder} && stalin -On -c {source} && cat program.c"])]

    def objective_c():
        program = os.path.join(folder, "objects")
        made = subprocess.run(["gcc", "-std=gnu99", "-O2", "-o", program, write("objects.m", OBJECTIVE_C), "-lobjc_gc"], capture_output=True)
        return [("trees", [program])] if made.returncode == 0 else []

    def mmv():
        many = os.path.join(folder, "many")
        os.makedirs(many, exist_ok=True)
        for i in range(100 * scale):
            open(os.path.join(many, f"f{i}.txt"), "w").close()
        return [("names", ["mmv", "-n", f"{many}/f*.txt", f"{many}/#1.doc"])]

    def chase():
        at = write("end", "")
        for i in range(30):
            link = os.path.join(folder, f"link{i}")
            if not os.path.islink(link):
                os.symlink(at, link)
            at = link
        return [("links", ["chase", at])]

    client("w3m", "w3m", w3m)
    client("guile", "guile", guile)
    client("ecl", "ecl", lambda: [("trees", ["ecl", "--norc", "--shell", write("program.lisp", LISP)])])
    client("neko", "nekoc", neko)
    client("crystal", "crystal", crystal)
    client("poke", "poke", lambda: [("loop", ["poke", "-q", "-L", write("program.pk", POKE)])])
    client("asy", "asy", lambda: [("loops", ["asy", "-noprc", "-noV", write("program.asy", ASY)])])
    client("parser3", "parser3", lambda: [("page", ["parser3", write("page.p", PARSER)])])
    client("fauhdlc", "fauhdlc", fauhdlc)
    client("nix", "nix-instantiate", lambda: [("trees", ["nix-instantiate", "--eval", "--strict", write("program.nix", NIX)])])
    client("lilypond", "lilypond", lilypond)
    client("stalin", "stalin", stalin)
    client("goo", "goo", lambda: [("session", ["sh", "-c", "goo < " + write("program.goo", GOO)])])
    client("libobjc", "gcc", objective_c)
    client("mmv", "mmv", mmv)
    client("chase", "chase", chase)
    client("debfoster", "debfoster", lambda: [("orphans", ["sh", "-c", "debfoster -e w3m; debfoster -ad w3m"])])
    return found, missing
