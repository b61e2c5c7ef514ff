//! The programs of section `advice`, and their input files.
//!
//! They are programs from the distribution's packages. Their inputs are generated for each run and are the
//! same on every machine. Their uses of memory differ: a table traversed again and again, a table that
//! grows until the end, phases, a compiler, streams of files.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use vellum_measure::Rng;

/// Lines of the text that is sorted and compressed: 60 bytes each.
const LINES: u64 = 400_000;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    /// Its command: the first word is searched in the path.
    pub(crate) words: &'static [&'static str],
    /// A file for its standard input.
    pub(crate) input: Option<&'static str>,
    /// The Debian package that contains it.
    pub(crate) package: &'static str,
}

const fn program(
    name: &'static str,
    words: &'static [&'static str],
    input: Option<&'static str>,
    package: &'static str,
) -> Program {
    Program { name, words, input, package }
}

pub(crate) const PROGRAMS: [Program; 12] = [
    program("python3", &["python3", "dictionary.py"], None, "python3"),
    program("perl", &["perl", "hashes.pl"], None, "perl"),
    program("sqlite3", &["sqlite3", ""], Some("queries.sql"), "sqlite3"),
    program("g++", &["g++", "-O2", "-std=c++17", "-c", "templates.cc", "-o", "templates.o"], None, "g++"),
    program(
        "sort",
        &["sort", "--parallel=1", "-S", "64M", "-k3", "-k1", "text", "text", "text", "text", "-o", "sorted"],
        None,
        "coreutils",
    ),
    program("xz", &["xz", "-4", "-T1", "-c"], Some("text"), "xz-utils"),
    program("guile", &["guile", "--no-auto-compile", "lists.scm"], None, "guile-3.0"),
    // Debian's own Python has Debian's numpy.
    program("numpy", &["/usr/bin/python3", "arrays.py"], None, "python3-numpy"),
    program("node", &["node", "objects.js"], None, "nodejs"),
    program("awk", &["awk", "-f", "counts.awk", "text"], None, "mawk"),
    program(
        "git",
        &["git", "-C", "repository", "-c", "pack.threads=1", "repack", "-adfq", "--window=40"],
        None,
        "git",
    ),
    program("phases", &["./phases"], None, "gcc"),
];

/// Makes a repository of the text: a file a few thousand lines, in several versions.
const REPOSITORY: &str = "git init -q repository && cd repository && for round in 1 2 3 4; do \
    split -l 4000 ../text part && sed -i \"s/compresses/$round &/\" part?? && git add . && \
    git -c user.name=x -c user.email=x@example.org commit -qm $round; done";

const FILES: [(&str, &str); 9] = [
    ("lists.scm", include_str!("programs/lists.scm")),
    ("arrays.py", include_str!("programs/arrays.py")),
    ("objects.js", include_str!("programs/objects.js")),
    ("counts.awk", include_str!("programs/counts.awk")),
    ("dictionary.py", include_str!("programs/dictionary.py")),
    ("hashes.pl", include_str!("programs/hashes.pl")),
    ("queries.sql", include_str!("programs/queries.sql")),
    ("templates.cc", include_str!("programs/templates.cc")),
    ("phases.c", include_str!("programs/phases.c")),
];

/// Makes the programs' input files in `folder`.
pub(crate) fn prepare(folder: &Path, seed: u64) -> io::Result<()> {
    for (name, text) in FILES {
        std::fs::write(folder.join(name), text)?;
    }
    let mut text = io::BufWriter::new(std::fs::File::create(folder.join("text"))?);
    let mut random = Rng::new(seed);
    for line in 0..LINES {
        writeln!(text, "{:016x} {line} some text that compresses well {}", random.next_u64(), line % 977)?;
    }
    text.flush()?;
    // Without git or a compiler, that program is missing or fails, and is reported.
    for script in [REPOSITORY, "cc -O2 -o phases phases.c"] {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null());
        let _ = shell.status();
    }
    Ok(())
}

impl Program {
    /// The command that runs `executable` with the program's input, without its words.
    pub(crate) fn command(&self, executable: &OsString, folder: &Path) -> io::Result<Command> {
        let mut command = Command::new(executable);
        command.current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null());
        command.stdin(match self.input {
            Some(name) => Stdio::from(File::open(folder.join(name))?),
            None => Stdio::null(),
        });
        Ok(command)
    }

    /// The file to execute; `None` if it is not there.
    ///
    /// For scripts that choose among versions, this is the version they choose, so that the limit applies
    /// to the program itself.
    pub(crate) fn executable(&self, folder: &Path) -> Option<OsString> {
        let name = self.words[0];
        if let Some(here) = name.strip_prefix("./") {
            return folder.join(here).exists().then(|| folder.join(here).into());
        }
        if name == "python3" {
            let asked = Command::new(name).args(["-c", "import sys; print(sys.executable)"]).output().ok()?;
            let path = String::from_utf8(asked.stdout).ok()?;
            return Some(path.trim().into()).filter(|path: &OsString| !path.is_empty());
        }
        vellum_process::locate(name.as_ref(), std::env::var_os("PATH").as_deref()).ok().map(Into::into)
    }
}
