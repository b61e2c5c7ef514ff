//! The programs that are profiled: real ones, as the distribution has them, on inputs made anew.
//!
//! Their files are those of the section `advice`. Each is started so that the process which allocates is the
//! one that is started: the compiler proper and not its driver, as heaptrack sees no children.

use crate::Launch;
use crate::advice::program as others;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A program.
#[derive(Debug, Clone, Copy)]
pub(super) struct Program {
    pub(super) name: &'static str,
    /// A line of the shell that prints the file to execute, or fails.
    find: &'static str,
    args: &'static [&'static str],
    pub(super) is_python: bool,
    /// Arguments with which it has little to do, for valgrind.
    pub(super) little: Option<&'static [&'static str]>,
    /// Whether two runs allocate alike, so that one can be held against the other.
    pub(super) is_repeatable: bool,
    pub(super) cure: &'static str,
}

/// The first that asks is python3 of the path, as it may be the one that has memray.
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
/// A table that is filled, and sorted.
const SQL: &str = "CREATE TABLE t (a INTEGER, c TEXT); \
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000) \
    INSERT INTO t SELECT (i * 7919) % 1000003, hex(i * 2654435761) FROM n; \
    SELECT a % 1000 AS g, count(*), max(c) FROM t GROUP BY g ORDER BY 2 LIMIT 3;";
/// A little of C++, with much in headers.
const LITTLE_CC: &str = "#include <map>\n#include <string>\nstd::map<int, std::string> m;\n\
    int f() { m[1] = \"a\"; return m.size(); }\n";
/// Lines of the text that is sorted and counted then.
const LITTLE_LINES: usize = 40_000;

/// All of them.
pub(super) const PROGRAMS: [Program; 10] = [
    Program {
        little: Some(&["-c", "d = {str(i): [i] * 5 for i in range(60000)}"]),
        cure: "apt-get install python3",
        ..python("python3", PYTHON, &["dictionary.py"])
    },
    Program {
        cure: "a python3 first in the PATH that has numpy",
        ..python("numpy", "python3 -c 'import numpy, sys; print(sys.executable)'", &["arrays.py"])
    },
    // Its hashes are seeded anew each time.
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

/// A program that is here.
#[derive(Debug, Clone)]
pub(super) struct Ready {
    pub(super) program: Program,
    executable: PathBuf,
}

/// Makes what the programs work on in `folder`.
pub(super) fn prepare(folder: &Path, seed: u64) -> io::Result<()> {
    others::prepare(folder, seed)?;
    std::fs::write(folder.join("little.cc"), LITTLE_CC)?;
    let text = std::fs::read_to_string(folder.join("text"))?;
    let little: String = text.split_inclusive('\n').take(LITTLE_LINES).collect();
    std::fs::write(folder.join("little"), little)
}

impl Program {
    /// The program, if it is here.
    pub(super) fn ready(&self, folder: &Path) -> Option<Ready> {
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
    pub(super) fn launch(&self, folder: &Path) -> Launch {
        Launch {
            program: self.executable.clone(),
            args: self.program.args.iter().map(Into::into).collect(),
            env: vec![("PYTHONHASHSEED".into(), "0".into())],
            folder: Some(folder.to_path_buf()),
            preload: None,
            reports: false,
        }
    }

    /// The file to execute.
    pub(super) fn executable(&self) -> &Path {
        &self.executable
    }

    /// Its command, for what starts it.
    pub(super) fn command(&self) -> Vec<OsString> {
        std::iter::once(self.executable.clone().into())
            .chain(self.program.args.iter().map(Into::into))
            .collect()
    }
}
