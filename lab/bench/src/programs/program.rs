//! The programs of the benchmark's section `programs`: real programs from the distribution or PyPI, with
//! their inputs and commands.
//!
//! The inputs are generated; many are the inputs of section `advice`. The process started is always the
//! process that allocates: `cc1plus` instead of `g++`, for example, since heaptrack does not follow children.

use crate::Launch;
use crate::advice::program as others;
use anyhow::Context;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    /// A line of the shell that prints the file to execute, or fails.
    find: &'static str,
    args: &'static [&'static str],
    pub(crate) is_python: bool,
    /// Arguments for a short run, for valgrind.
    pub(crate) little: Option<&'static [&'static str]>,
    /// Whether two runs allocate the same, so that they can be compared.
    pub(crate) is_repeatable: bool,
    pub(crate) cure: &'static str,
}

/// The first python3 of the path, since memray may be installed for it only.
const PYTHON: &str = "python3 -c 'import sys; print(sys.executable)'";

const fn program(name: &'static str, find: &'static str, args: &'static [&'static str]) -> Program {
    Program { name, find, args, is_python: false, little: None, is_repeatable: true, cure: find }
}

const fn python(name: &'static str, find: &'static str, args: &'static [&'static str]) -> Program {
    Program { is_python: true, ..program(name, find, args) }
}

/// Filters of JSON that make it, group it and sum it up.
const JQ: &str = "[range(250000) | {a: ., b: \"x\\(.)\"}] | group_by(.a % 1000) | map(length) | add";

const JQ_LITTLE: &str = "[range(30000) | {a: ., b: \"x\\(.)\"}] | group_by(.a % 1000) | map(length) | add";
/// A table that is filled and sorted.
const SQL: &str = "CREATE TABLE t (a INTEGER, c TEXT); \
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000) \
    INSERT INTO t SELECT (i * 7919) % 1000003, hex(i * 2654435761) FROM n; \
    SELECT a % 1000 AS g, count(*), max(c) FROM t GROUP BY g ORDER BY 2 LIMIT 3;";
/// A short C++ program that includes large headers.
const LITTLE_CC: &str = "#include <map>\n#include <string>\nstd::map<int, std::string> m;\n\
    int f() { m[1] = \"a\"; return m.size(); }\n";
/// Lines of the text that is sorted and counted in a short run.
const LITTLE_LINES: usize = 40_000;

/// Programs that every tool can profile.
pub(crate) const PROFILED: [Program; 10] = [
    Program {
        little: Some(&["-c", "d = {str(i): [i] * 5 for i in range(60000)}"]),
        cure: "apt-get install python3",
        ..python("python3", PYTHON, &["dictionary.py"])
    },
    Program {
        cure: "a python3 first in the PATH that has numpy",
        ..python("numpy", "python3 -c 'import numpy, sys; print(sys.executable)'", &["arrays.py"])
    },
    // Perl uses a new seed for its hashes in each run.
    Program {
        little: Some(&["-e", "my %h; push @{$h{$_ % 7000}}, \"x$_\" for 1..150000"]),
        is_repeatable: false,
        cure: "apt-get install perl",
        ..program("perl", "command -v perl", &["hashes.pl"])
    },
    Program {
        little: Some(&["", SQL]),
        is_repeatable: false,
        cure: "apt-get install sqlite3",
        ..program("sqlite3", "command -v sqlite3", &["", ".read queries.sql"])
    },
    Program {
        little: Some(&[
            "-quiet",
            "-imultiarch",
            "x86_64-linux-gnu",
            "-D_GNU_SOURCE",
            "-std=c++17",
            "little.cc",
            "-o",
            "t.s",
        ]),
        cure: "apt-get install g++",
        ..program(
            "g++",
            "test -x \"$(g++ -print-prog-name=cc1plus)\" && g++ -print-prog-name=cc1plus",
            &[
                "-quiet",
                "-imultiarch",
                "x86_64-linux-gnu",
                "-D_GNU_SOURCE",
                "-std=c++17",
                "templates.cc",
                "-o",
                "t.s",
            ],
        )
    },
    Program {
        little: Some(&["--parallel=1", "-S", "8M", "-k3", "-k1", "little", "-o", "sorted"]),
        cure: "apt-get install coreutils",
        ..program(
            "sort",
            "command -v sort",
            &["--parallel=1", "-S", "64M", "-k3", "-k1", "text", "text", "text", "text", "-o", "sorted"],
        )
    },
    Program {
        little: Some(&["-f", "counts.awk", "little"]),
        cure: "apt-get install mawk",
        ..program("awk", "command -v awk", &["-f", "counts.awk", "text"])
    },
    Program {
        little: Some(&["-n", JQ_LITTLE]),
        cure: "apt-get install jq",
        ..program("jq", "command -v jq", &["-n", JQ])
    },
    Program {
        is_repeatable: false,
        cure: "apt-get install nodejs",
        ..program("node", "command -v node", &["objects.js"])
    },
    Program {
        little: Some(&["-C", "repository", "log", "--oneline", "--stat", "-3"]),
        cure: "apt-get install git",
        ..program(
            "git",
            "command -v git",
            &[
                "-C",
                "repository",
                "pack-objects",
                "--all",
                "--threads=1",
                "--window=2",
                "--no-reuse-delta",
                "-q",
                "../packed",
            ],
        )
    },
];

/// Other programs: in other languages, with threads, with a server.
pub(crate) const OTHERS: [Program; 7] = [
    Program {
        cure: "a python3 first in the PATH that has pandas (pip install pandas)",
        ..python("pandas", "python3 -c 'import pandas, sys; print(sys.executable)'", &["frames.py"])
    },
    Program {
        cure: "a python3 first in the PATH that has polars (pip install polars)",
        ..python("polars", "python3 -c 'import polars, sys; print(sys.executable)'", &["columns.py"])
    },
    Program {
        cure: "a python3 first in the PATH that has duckdb (pip install duckdb)",
        ..python("duckdb", "python3 -c 'import duckdb, sys; print(sys.executable)'", &["analysis.py"])
    },
    Program {
        cure: "apt-get install ruby",
        ..program("ruby", "ruby --disable-gems -e 'puts RbConfig.ruby' -r rbconfig", &["objects.rb"])
    },
    Program {
        cure: "apt-get install lua5.4",
        ..program("lua", "command -v lua5.4 || command -v lua", &["tables.lua"])
    },
    Program { cure: "apt-get install z3", ..program("z3", "command -v z3", &["pigeons.smt2"]) },
    // The shell starts the server and its clients.
    Program {
        cure: "apt-get install redis-server redis-tools",
        ..program(
            "redis",
            "command -v redis-server >/dev/null && command -v redis-benchmark >/dev/null && command -v sh",
            &["store.sh"],
        )
    },
];

const FILES: [(&str, &str); 6] = [
    ("frames.py", include_str!("inputs/frames.py")),
    ("columns.py", include_str!("inputs/columns.py")),
    ("analysis.py", include_str!("inputs/analysis.py")),
    ("objects.rb", include_str!("inputs/objects.rb")),
    ("tables.lua", include_str!("inputs/tables.lua")),
    ("store.sh", include_str!("inputs/store.sh")),
];
/// Pigeonholes, one fewer than pigeons.
const HOLES: usize = 8;

/// The pigeonhole principle as formulas: a solver has to try many cases.
fn pigeons() -> String {
    let mut text = String::from("(set-logic QF_UF)\n");
    for pigeon in 0..=HOLES {
        let places: Vec<String> = (0..HOLES).map(|hole| format!("p{pigeon}h{hole}")).collect();
        for place in &places {
            text += &format!("(declare-const {place} Bool)\n");
        }
        text += &format!("(assert (or {}))\n", places.join(" "));
    }
    for (hole, one) in (0..HOLES).flat_map(|hole| (0..=HOLES).map(move |one| (hole, one))) {
        for other in 0..one {
            text += &format!("(assert (not (and p{one}h{hole} p{other}h{hole})))\n");
        }
    }
    text + "(check-sat)\n"
}

/// A program that is installed.
#[derive(Debug, Clone)]
pub(crate) struct Ready {
    pub(crate) program: Program,
    executable: PathBuf,
}

/// A new folder in memory, if possible, with the programs' input files.
pub(crate) fn folder(seed: u64) -> anyhow::Result<TempDir> {
    let places = [PathBuf::from("/dev/shm"), std::env::temp_dir()];
    let place = places.into_iter().find(|place| place.is_dir()).unwrap_or_default();
    let folder = tempfile::Builder::new().prefix("vellum-bench-").tempdir_in(&place);
    let folder = folder.and_then(|folder| prepare(folder.path(), seed).map(|()| folder));
    folder.with_context(|| format!("making the programs' inputs in {}", place.display()))
}

fn prepare(folder: &Path, seed: u64) -> io::Result<()> {
    others::prepare(folder, seed)?;
    std::fs::write(folder.join("little.cc"), LITTLE_CC)?;
    std::fs::write(folder.join("pigeons.smt2"), pigeons())?;
    for (name, text) in FILES {
        std::fs::write(folder.join(name), text)?;
    }
    let text = std::fs::read_to_string(folder.join("text"))?;
    let little: String = text.split_inclusive('\n').take(LITTLE_LINES).collect();
    std::fs::write(folder.join("little"), little)
}

impl Program {
    /// The program, if it is installed.
    pub(crate) fn ready(&self, folder: &Path) -> Option<Ready> {
        let mut asked = Command::new("sh");
        asked.args(["-c", self.find]).current_dir(folder).stdin(Stdio::null()).stderr(Stdio::null());
        let output = asked.output().ok().filter(|output| output.status.success())?;
        let path = String::from_utf8(output.stdout).ok()?;
        Some(Ready { program: *self, executable: path.trim().into() })
            .filter(|ready| ready.executable.is_file())
    }
}

impl Ready {
    /// One run of it, on the C library's memory.
    pub(crate) fn launch(&self, folder: &Path) -> Launch {
        Launch {
            env: vec![("PYTHONHASHSEED".into(), "0".into())],
            folder: Some(folder.to_path_buf()),
            ..Launch::new(&self.executable, self.program.args)
        }
    }

    pub(crate) fn executable(&self) -> &Path {
        &self.executable
    }

    /// Its command, for the tools that start it.
    pub(crate) fn command(&self) -> Vec<OsString> {
        std::iter::once(self.executable.clone().into())
            .chain(self.program.args.iter().map(Into::into))
            .collect()
    }
}
