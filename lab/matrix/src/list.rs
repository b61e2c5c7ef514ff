//! Reads the rows of the matrix (the programs to run) from `matrix/programs.toml`. The file is compiled
//! into the executable, so that tests copied elsewhere have it.

use super::Error;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const LIST: &str = include_str!("../programs.toml");

/// A way to run a program. See [the module above](super).
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Without Vellum.
    Plain,
    /// With `LD_PRELOAD` only.
    Preloaded,
    /// Under `vellum run`.
    Run,
    /// Under `vellum run --frames`.
    Frames,
    /// Under `vellum run --libgc`.
    Libgc,
}

impl Mode {
    /// The modes compared with [`Mode::Plain`], in the order of the table.
    pub const COMPARED: [Mode; 4] = [Mode::Preloaded, Mode::Run, Mode::Frames, Mode::Libgc];

    /// The mode's name in tables and files.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Plain => "plain",
            Mode::Preloaded => "preloaded",
            Mode::Run => "run",
            Mode::Frames => "frames",
            Mode::Libgc => "libgc",
        }
    }
}

/// A program and its work.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The name of the row, and of its folder.
    pub name: String,
    /// Debian's packages with the program and its tools.
    #[serde(default)]
    pub packages: Vec<String>,
    /// Programs without which the row is skipped.
    #[serde(default)]
    pub needs: Vec<String>,
    /// A shell command that prints a version; by default, the first package's version is shown.
    pub version: Option<String>,
    /// A shell command that fails if the row cannot be run, and prints why.
    pub check: Option<String>,
    /// The row needs root.
    #[serde(default)]
    pub root: bool,
    /// Makes the input, once, without Vellum; every run gets a copy of the folder.
    pub prepare: Option<String>,
    /// The work, for `/bin/sh`.
    pub script: String,
    /// Exit status of the plain run; another status means that the row is wrong on this machine.
    #[serde(default)]
    pub status: i32,
    /// Modes besides `preloaded` and `run`.
    #[serde(default)]
    pub modes: Vec<Mode>,
    /// Modes that do not apply to this row, with the reason.
    #[serde(default)]
    pub without: BTreeMap<String, String>,
    /// Regular expressions for text that differs from run to run, with its replacement.
    #[serde(default)]
    pub filters: Vec<(String, String)>,
    /// The order of lines differs from run to run.
    #[serde(default)]
    pub sorted: bool,
    /// Number of runs of each mode, for faults that occur at random.
    pub runs: Option<u32>,
    /// The deadline of one run.
    pub seconds: Option<u64>,
    /// Part of the fast matrix.
    #[serde(default)]
    pub fast: bool,
}

impl Row {
    /// Whether the row requests `mode`, or the reason why not.
    pub fn wants(&self, mode: Mode) -> Result<bool, &str> {
        if let Some(why) = self.without.get(mode.name()) {
            return Err(why);
        }
        Ok(matches!(mode, Mode::Plain | Mode::Preloaded | Mode::Run) || self.modes.contains(&mode))
    }
}

#[derive(Deserialize)]
struct List {
    row: Vec<Row>,
}

/// All rows.
///
/// # Errors
/// If the list is malformed.
pub fn rows() -> Result<Vec<Row>, Error> {
    Ok(toml::from_str::<List>(LIST)?.row)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// The least number of programs in the matrix.
    const ROWS_MIN: usize = 120;

    #[test]
    fn the_list_of_programs_is_complete() {
        let rows = rows().expect("a list");
        assert!(rows.len() >= ROWS_MIN, "{} rows", rows.len());
        let names: BTreeSet<_> = rows.iter().map(|row| &row.name).collect();
        assert_eq!(names.len(), rows.len(), "two rows have one name");
        for row in &rows {
            assert!(
                row.name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.+".contains(c)),
                "{}",
                row.name
            );
            assert!(!row.needs.is_empty(), "{} needs nothing", row.name);
            for (filter, _) in &row.filters {
                regex::bytes::Regex::new(filter).unwrap_or_else(|error| panic!("{}: {error}", row.name));
            }
            assert!(
                row.without.keys().all(|key| Mode::COMPARED.iter().any(|mode| mode.name() == key)),
                "{}",
                row.name
            );
        }
        assert!(rows.iter().filter(|row| row.modes.contains(&Mode::Frames)).count() >= 20);
        assert!(rows.iter().filter(|row| row.modes.contains(&Mode::Libgc)).count() >= 5);
    }
}
