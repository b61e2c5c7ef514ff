//! Programs in daily use: interpreters, compilers, a database, version control. In each mode of Vellum
//! their output, errors and status must be the same as without it.
//!
//! `paging` and `frames` run them in few frames; the matrix (`lab/matrix`) runs some 170 more.

use std::path::Path;
use std::process::Command;
use vellum_conformance::{Place, plain, same, served, skip, tool, with_args};
use vellum_wire::Attach;

/// Tests of one program, each with different environment variables.
macro_rules! modes {
    ($program:ident: $($mode:ident $environment:expr),+) => {
        mod $program {
            $(
                #[test]
                fn $mode() {
                    super::$program(&$environment);
                }
            )+
        }
    };
}

modes! { python: usual [], hardened [("VELLUM_HARDEN", "1")], without_its_own_pools [("PYTHONMALLOC", "malloc")] }
modes! { perl: usual [], hardened [("VELLUM_HARDEN", "1")] }
modes! { sqlite: usual [], hardened [("VELLUM_HARDEN", "1")] }

const PYTHON: &str = r#"
import array, collections, ctypes, gc, hashlib, json, mmap, os, random, re, sqlite3, subprocess, sys, tempfile, threading, zlib

random.seed(5)
numbers = [random.random() for _ in range(400000)]
numbers.sort()
print(hashlib.sha256(array.array("d", numbers).tobytes()).hexdigest())

words = collections.Counter(re.findall(r"\w+", ("to be or not to be " * 20000)))
print(sorted(words.items()))

table = {str(i): [i] * (i % 50) for i in range(60000)}
print(sum(len(v) for v in table.values()), len(json.dumps(table)))
del table
gc.collect()

results = []
def work(n):
    data = bytearray()
    for i in range(400):
        data += os.urandom(0) + bytes([i % 256]) * (n * 97 % 5000)
    results.append((n, zlib.crc32(bytes(data))))
threads = [threading.Thread(target=work, args=(n,)) for n in range(16)]
[t.start() for t in threads]
[t.join() for t in threads]
print(sorted(results))

with mmap.mmap(-1, 8 << 20) as area:
    area[5 << 20:(5 << 20) + 5] = b"hello"
    print(area.find(b"hello"), area[:4])
    area.resize(16 << 20)
    print(len(area), area.find(b"hello"))
with mmap.mmap(-1, 1 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as area:
    area.write(b"x" * 1000)
    if hasattr(area, "madvise"):
        area.madvise(mmap.MADV_DONTNEED)
        print(area[:10])

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
blocks = [libc.malloc(n * 1000) for n in range(1, 500)]
for n, block in enumerate(blocks, 1):
    ctypes.memset(block, n % 256, n * 1000)
print(all(ctypes.string_at(b + n * 1000 - 1, 1)[0] == n % 256 for n, b in enumerate(blocks, 1)))
[libc.free(b) for b in blocks]
callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(lambda x: x + 1)
print(callback(41))

print(subprocess.run([sys.executable, "-c", "print(sum(range(100000)))"], capture_output=True, text=True).stdout)
print([subprocess.run(["sh", "-c", f"exit {n}"]).returncode for n in (0, 1, 7)])
pids = []
for n in range(8):
    pid = os.fork()
    if pid == 0:
        x = ["child"] * 100000
        os._exit(len(x) % 100 + n)
    pids.append(pid)
print([os.waitstatus_to_exitcode(os.waitpid(p, 0)[1]) for p in pids])

db = sqlite3.connect(":memory:")
db.execute("create table t(a integer, b text)")
db.executemany("insert into t values (?, ?)", ((i, "x" * (i % 300)) for i in range(30000)))
print(db.execute("select count(*), sum(length(b)) from t where a % 3 = 0").fetchone())

grow = b""
for i in range(200):
    grow += b"y" * 20000
print(len(grow))
import multiprocessing
if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(sum(pool.map(abs, range(-1000, 1000))))
import ctypes; libc = ctypes.CDLL("libc.so.6"); libc.strdup.restype = ctypes.c_void_p
for size in range(1, 10000, 50): libc.free(ctypes.c_void_p(libc.strdup(b"x" * size)))
sys.exit(3)
"#;

fn python(environment: &[(&str, &str)]) {
    let Some(python) = tool("python3") else { return };
    let place = Place::new();
    let script = place.file("script.py");
    std::fs::write(&script, PYTHON).expect("a script");
    let run = || {
        let mut command = Command::new(&python);
        command.arg(&script).env("PYTHONHASHSEED", "0").env("PYTHONDONTWRITEBYTECODE", "1");
        command.envs(environment.iter().copied());
        command
    };
    // The program exits with status 3, and `same` requires success, so the runs are compared here.
    let (without, with) = (plain(run()), served(run()));
    assert_eq!(without.status.code(), Some(3), "{without}");
    assert_eq!((with.status, &with.stdout, &with.stderr), (without.status, &without.stdout, &without.stderr));
    assert_eq!(with.attach(), Attach::Serving);
}

const C_SOURCE: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct node { struct node *left, *right; int key; };
static struct node *insert(struct node *n, int key) {
    if (!n) { n = calloc(1, sizeof *n); n->key = key; return n; }
    if (key < n->key) n->left = insert(n->left, key); else n->right = insert(n->right, key);
    return n;
}
static long sum(struct node *n) { return n ? n->key + sum(n->left) + sum(n->right) : 0; }
int main(void) {
    struct node *root = NULL; unsigned x = 1;
    for (int i = 0; i < 20000; i++) { x = x * 1103515245 + 12345; root = insert(root, x >> 16 & 0x7fff); }
    printf("%ld\n", sum(root)); return 5;
}
"#;

const CPP_SOURCE: &str = r#"
#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>
template <int N> struct Fib { static constexpr long value = Fib<N - 1>::value + Fib<N - 2>::value; };
template <> struct Fib<0> { static constexpr long value = 0; };
template <> struct Fib<1> { static constexpr long value = 1; };
int main() {
    std::map<std::string, std::unique_ptr<std::vector<int>>> m;
    for (int i = 0; i < 5000; ++i) { auto &v = m[std::to_string(i % 100)]; if (!v) v = std::make_unique<std::vector<int>>(); v->push_back(i); }
    std::unordered_map<int, std::string> u;
    for (auto &[k, v] : m) u[std::accumulate(v->begin(), v->end(), 0)] = k;
    std::cout << m.size() << ' ' << u.size() << ' ' << Fib<60>::value << '\n';
}
"#;

/// Compiles with and without Vellum; the objects must be identical, and so must their programs' output.
fn compiles(compiler: &str, name: &str, source: &str, flags: &[&str]) {
    let Some(compiler) = tool(compiler) else { return };
    let place = Place::new();
    let file = place.file(name);
    std::fs::write(&file, source).expect("a source file");
    let compile = |to: &Path, with: bool| {
        let mut command = Command::new(&compiler);
        command.args(flags).arg(&file).arg("-o").arg(to);
        let outcome = if with { served(command) } else { plain(command) }.succeeded();
        assert_eq!(outcome.stderr, "", "{outcome}");
        outcome
    };
    let (one, other) = (place.file("one"), place.file("other"));
    compile(&one, false);
    let with = compile(&other, true);
    assert!(with.seats.len() >= 3, "driver, compiler and linker: {:?}", with.seats);
    assert!(with.seats.iter().all(|seat| seat.attach == Attach::Serving), "{:?}", with.seats);
    let (built, expected) =
        (std::fs::read(&other).expect("a program"), std::fs::read(&one).expect("a program"));
    assert!(built == expected, "{name} compiles to something else under Vellum");
    let (with, without) = (served(Command::new(&other)), plain(Command::new(&one)));
    assert_eq!((with.status, with.stdout), (without.status, without.stdout));
    // A failing compiler must print the same message.
    std::fs::write(&file, format!("{source}\nint wrong = undeclared;\n")).expect("a source file");
    let fails = || {
        let mut command = Command::new(&compiler);
        command.args(flags).arg(&file).arg("-o").arg(place.file("none"));
        command
    };
    let (with, without) = (served(fails()), plain(fails()));
    assert!(!without.status.success());
    assert_eq!((with.status, with.stderr), (without.status, without.stderr));
}

#[test]
fn gcc_compiles_c() {
    compiles("gcc", "tree.c", C_SOURCE, &["-O2", "-g"]);
}

#[test]
fn gcc_compiles_cpp() {
    compiles("g++", "things.cc", CPP_SOURCE, &["-O2", "-std=c++17"]);
}

#[test]
fn git() {
    let Some(git) = tool("git") else { return };
    let place = Place::new();
    let session = |name: &str| {
        let directory = place.file(name);
        std::fs::create_dir(&directory).expect("a directory");
        let git = git.display();
        let script = format!(
            r#"set -e
            cd "$1"
            g() {{ {git} -c core.fsync=none -c gc.auto=0 -c pack.threads=2 "$@"; }}
            g init -q -b main .
            for i in $(seq 1 12); do
                for f in $(seq 1 30); do seq $((i * f)) $((i * f + 400)) > file$f; done
                g add -A
                g commit -q -m "change $i"
            done
            g log --format='%H %s'
            g diff HEAD~5 --stat
            g blame file7 | head -20
            g gc -q --aggressive --prune=now
            g fsck --full
            g checkout -q -b other HEAD~4
            echo other > file1; g commit -qam other
            g merge -q main -m merge 2>&1 || {{ g checkout -q --theirs file1; g add file1; g commit -q -m merged; }}
            g log --graph --oneline
            g clone -q --no-local . copy 2>&1
            {git} -C copy rev-parse HEAD
            g grep -c 17 | tail -3
            "#
        );
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(script).arg("sh").arg(&directory);
        for who in ["AUTHOR", "COMMITTER"] {
            command
                .env(format!("GIT_{who}_NAME"), "A Person")
                .env(format!("GIT_{who}_EMAIL"), "a@example.org");
            command.env(format!("GIT_{who}_DATE"), "2001-02-03T04:05:06Z");
        }
        command
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .env("HOME", place.path());
        command
    };
    let without = plain(session("one")).succeeded();
    let with = served(session("two"));
    assert_eq!(with.text(), without.text(), "{with}");
    assert_eq!((with.status, with.stderr), (without.status, without.stderr));
    assert!(with.seats.len() > 30 && with.seats.iter().all(|seat| seat.attach == Attach::Serving));
}

const SQL: &str = "
create table t(id integer primary key, name text, value real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 80000)
insert into t select i, printf('name %d', i * 7919 % 10007), i * 0.5 from n;
create index by_name on t(name);
select count(*), count(distinct name), sum(value) from t;
select name, sum(value) s from t group by name order by s desc limit 5;
update t set value = value * 2 where id % 3 = 0;
delete from t where id % 5 = 0;
vacuum;
pragma integrity_check;
select a.id, b.id from t a join t b on a.name = b.name and a.id < b.id order by a.id, b.id limit 5;
select length(group_concat(name)) from t;
";

fn sqlite(environment: &[(&str, &str)]) {
    // sqlite3 has no `--version` like other tools, so `tool` does not find it.
    let Some(sqlite) =
        ["/usr/bin/sqlite3", "/bin/sqlite3"].map(Path::new).into_iter().find(|path| path.exists())
    else {
        return skip("no sqlite3 on this machine");
    };
    let place = Place::new();
    let (file, script) = (place.file("base.db"), place.file("script.sql"));
    std::fs::write(&script, SQL).expect("a script");
    let outcome = same(|| {
        let _ = std::fs::remove_file(&file);
        let mut command = Command::new(sqlite);
        command.arg(&file).arg(format!(".read {}", script.display())).envs(environment.iter().copied());
        command
    });
    assert!(outcome.text().contains("\nok\n"), "{outcome}");
}

const PERL: &str = r#"
use strict; use warnings;
my %h; my @a;
for my $i (1 .. 150000) { $h{"key" . $i % 5000} .= chr(65 + $i % 26); push @a, $i * 3 % 1009; }
my $text = join ",", map { "$_=" . length $h{$_} } sort keys %h;
print length($text), " ", unpack("%32C*", $text), "\n";
my @s = sort { $a <=> $b } @a; print "@s[0 .. 5] $#s\n";
my $n = () = $text =~ /key(\d+)5=/g; print "$n\n";
for my $i (1 .. 6) { my $pid = fork; if (!$pid) { my @x = (1) x 100000; exit $i; } waitpid $pid, 0; print $? >> 8, " "; }
print "\n", `echo from a shell`;
my $big = "x" x 30_000_000; substr($big, 10_000_000, 5) = "hello"; print index($big, "hello"), "\n";
local $SIG{ALRM} = sub { die "alarm\n" };
eval { alarm 1; select undef, undef, undef, 30; }; print $@;
"#;

fn perl(environment: &[(&str, &str)]) {
    let Some(perl) = tool("perl") else { return };
    same(|| {
        let mut command = Command::new(&perl);
        command.args(["-e", PERL]).env("PERL_HASH_SEED", "0").envs(environment.iter().copied());
        command
    });
}

const SHELL: &str = r#"
i=0
while [ $i -lt 200 ]; do echo "line $i $(echo nested $i)"; i=$((i + 1)); done | sort -r | awk '{ s += length($0); print } END { print s }' | sed -n 's/line/LINE/;1,5p;$p'
find /usr/share/common-licenses -type f 2>/dev/null | sort | xargs cat 2>/dev/null | tr a-z A-Z | sort | uniq -c | sort -rn | head -20 | cksum
seq 1 200000 | gzip -9 | gzip -d | sort -n -S 20M | md5sum
tar cf - -C /usr/share/common-licenses . 2>/dev/null | tar tf - | sort | head -3
kill -TERM $$
"#;

#[test]
fn a_pipeline_of_small_programs_and_a_signal() {
    let run = || with_args("/bin/sh", &["-c", SHELL]);
    let (without, with) = (plain(run()), served(run()));
    assert_eq!((with.status, with.text(), &with.stderr), (without.status, without.text(), &without.stderr));
    assert!(!without.status.success(), "it ends itself by a signal: {without}");
    assert!(with.seats.len() > 10, "{:?}", with.seats);
}
