//! The rows of Table 2 of Douglas 2011: programs, their inputs, and the paper's figures of similar programs.
//!
//! Every row also has a trivial input. A run on the trivial input has only the page faults of the
//! program's code and its start, which occur with any allocator.

use super::sources::{CHURN, cxx, join, sort};
use crate::Scale;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use vellum_campaign::Launch;
use vellum_process::{Image, Obstacle, locate};

pub(super) struct Row {
    pub(super) name: String,
    /// The published figures of the most similar row.
    pub(super) published: &'static str,
    /// The program on the row's input, nothing preloaded.
    pub(super) launch: Launch,
    /// The program on a trivial input; rows of one program share its name.
    pub(super) trivial: (&'static str, Launch),
}

/// C++: name, level of optimisation, instances of the template (full, quick, tiny), published.
const CXX: [(&str, &str, [usize; 3], &str); 5] = [
    ("1a g++ -O0", "-O0", [4, 0, 0], "198 MB +2.99 %"),
    ("1c g++ -O2", "-O2", [5, 0, 0], "250 MB +5.68 %"),
    ("1d g++ -O0", "-O0", [10, 1, 0], "320 MB +4.44 %"),
    ("2a g++ -O2", "-O2", [13, 1, 0], "410 MB +3.04 %"),
    ("2d g++ -O0", "-O0", [24, 2, 0], "623 MB +3.98 %"),
];

/// Items and rounds.
type Work = (usize, usize);

/// Python: name, items and rounds (full, quick, tiny), published.
const PYTHON: [(&str, [Work; 3], &str); 5] = [
    ("4a python", [(30_000, 12), (10_000, 3), (100, 1)], "6-114 MB -0.25..+1.27 %"),
    ("4a python", [(100_000, 6), (25_000, 2), (200, 1)], "6-114 MB -0.25..+1.27 %"),
    ("4b python", [(250_000, 4), (50_000, 2), (300, 1)], "92-870 MB -0.41..+1.73 %"),
    ("4b python", [(500_000, 3), (100_000, 1), (400, 1)], "92-870 MB -0.41..+1.73 %"),
    ("4b python", [(1_000_000, 2), (150_000, 1), (500, 1)], "92-870 MB -0.41..+1.73 %"),
];

/// The statements for this number of rows.
type Query = fn(usize) -> String;

/// sqlite3: name, query, rows (full, quick, tiny). The paper's third program, a solver, is not published.
const SQLITE: [(&str, Query, [usize; 3]); 2] = [
    ("5a sqlite3 sort", sort, [1_000_000, 120_000, 100]),
    ("5b sqlite3 join", join, [1_200_000, 150_000, 100]),
];

/// The rows whose programs are installed, with their inputs written into `folder`; and a note for each
/// missing program.
pub(super) fn rows(scale: Scale, folder: &Path) -> io::Result<(Vec<Row>, Vec<String>)> {
    let (mut rows, mut notes) = (Vec::new(), Vec::new());
    let absent = |name: &str, package: &str, rows: usize| {
        format!("{rows} rows are left out: {name} is not here (apt-get install {package})")
    };
    match here("g++").ok_or_else(|| absent("g++", "g++", CXX.len())).and_then(open) {
        Ok(program) => add_cxx(scale, folder, &program, &mut rows)?,
        Err(note) => notes.push(note),
    }
    match python().ok_or_else(|| absent("python3", "python3", PYTHON.len())).and_then(open) {
        Ok(program) => add_python(scale, folder, &program, &mut rows)?,
        Err(note) => notes.push(note),
    }
    match here("sqlite3").ok_or_else(|| absent("sqlite3", "sqlite3", SQLITE.len())).and_then(open) {
        Ok(program) => add_sqlite(scale, &program, &mut rows),
        Err(note) => notes.push(note),
    }
    Ok((rows, notes))
}

/// The program, if Vellum's library can be preloaded into it.
fn open(program: PathBuf) -> Result<PathBuf, String> {
    let image = Image::inspect(&program).map_err(|error| format!("{}: {error}", program.display()))?;
    let reason =
        |obstacle: Obstacle| format!("{} is left out: it is {}", program.display(), obstacle.words());
    image.obstacle.map_or(Ok(()), |obstacle| Err(reason(obstacle)))?;
    Ok(program)
}

fn here(name: &str) -> Option<PathBuf> {
    locate(OsStr::new(name), std::env::var_os("PATH").as_deref()).ok()
}

/// The interpreter's own executable: `python3` may be a script that searches for it.
fn python() -> Option<PathBuf> {
    let told =
        Command::new(here("python3")?).args(["-c", "import sys; print(sys.executable)"]).output().ok()?;
    let path = String::from_utf8(told.stdout).ok()?;
    Some(PathBuf::from(path.trim())).filter(|path| path.is_file())
}

fn launch(program: &Path, args: impl IntoIterator<Item = OsString>, folder: Option<&Path>) -> Launch {
    Launch {
        program: program.to_path_buf(),
        args: args.into_iter().collect(),
        env: Vec::new(),
        folder: folder.map(Path::to_path_buf),
        preload: None,
        reports: false,
    }
}

fn add_cxx(scale: Scale, folder: &Path, program: &Path, rows: &mut Vec<Row>) -> io::Result<()> {
    let compile = |level: &str, file: &str| {
        launch(program, ["-std=c++17", level, "-c", file, "-o", "out.o"].map(OsString::from), Some(folder))
    };
    std::fs::write(folder.join("trivial.cpp"), "int main() {}\n")?;
    for (name, level, [full, quick, tiny], published) in CXX {
        let instances = scale.pick(full, quick, tiny);
        let file = format!("jobs{instances}.cpp");
        std::fs::write(
            folder.join(&file),
            if scale == Scale::Tiny { "int main() {}\n".into() } else { cxx(instances) },
        )?;
        rows.push(Row {
            name: format!("{name}, {instances} jobs"),
            published,
            launch: compile(level, &file),
            trivial: ("g++ trivial", compile("-O0", "trivial.cpp")),
        });
    }
    Ok(())
}

fn add_python(scale: Scale, folder: &Path, program: &Path, rows: &mut Vec<Row>) -> io::Result<()> {
    let script = folder.join("churn.py");
    std::fs::write(&script, CHURN)?;
    let run = |count: usize, rounds: usize| {
        // -I ignores the user's packages.
        let args = [
            "-I".into(),
            script.clone().into_os_string(),
            count.to_string().into(),
            rounds.to_string().into(),
        ];
        launch(program, args, Some(folder))
    };
    for (name, [full, quick, tiny], published) in PYTHON {
        let (count, rounds) = scale.pick(full, quick, tiny);
        rows.push(Row {
            name: format!("{name}, {count} items"),
            published,
            launch: run(count, rounds),
            trivial: ("python trivial", run(1, 1)),
        });
    }
    Ok(())
}

fn add_sqlite(scale: Scale, program: &Path, rows: &mut Vec<Row>) {
    let query = |sql: String| launch(program, [":memory:".into(), sql.into()], None);
    for (name, sql, [full, quick, tiny]) in SQLITE {
        let count = scale.pick(full, quick, tiny);
        rows.push(Row {
            name: format!("{name}, {count} rows"),
            published: "-",
            launch: query(sql(count)),
            trivial: ("sqlite3 trivial", query("select 1;".into())),
        });
    }
}
