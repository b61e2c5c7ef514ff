//! The results of an experiment: tables, figures, notes, and whether its goals are met.

use crate::{Figure, Table, Value};
use serde::Serialize;
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use vellum_campaign::{Goal, Sheet, Verdict};
use vellum_report::plot::Plot;

/// Characters of a line of text.
const LINE: usize = 110;

/// The results of an experiment.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// The experiment's name on the command line.
    pub name: String,
    /// The title.
    pub title: &'static str,
    /// The sections, tables and figures of the paper that it repeats.
    pub source: &'static str,
    /// The published result in words, if no table has it.
    pub published: &'static str,
    /// The measured figures.
    pub tables: Vec<Table>,
    /// Notes for the reader: omissions, with their reasons.
    pub notes: Vec<String>,
    /// The goals, each with its verdict.
    pub goals: Vec<Goal>,
    /// The plots; in JSON their data.
    pub figures: Vec<Figure>,
    /// Plots of observations, by the names of their files.
    #[serde(skip)]
    pub drawings: Vec<(&'static str, Plot)>,
    /// Every run, in the order it was made within its cell.
    pub runs: Vec<Json>,
}

/// A figure could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the figure {path}: {source}; is the directory there and writable?")]
pub struct FigureError {
    /// The file or directory.
    pub path: PathBuf,
    /// The system's error.
    pub source: io::Error,
}

impl Finding {
    /// A finding without results: the experiment's name and title, its place in the paper, the published
    /// result, and notes.
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        title: &'static str,
        source: &'static str,
        published: &'static str,
        notes: Vec<String>,
    ) -> Self {
        let (tables, goals, figures, drawings, runs) = Default::default();
        Self { name: name.into(), title, source, published, tables, notes, goals, figures, drawings, runs }
    }

    /// The closing line, with the number of goals met.
    #[must_use]
    pub fn closing(&self) -> String {
        let count = |verdict: Verdict| self.goals.iter().filter(|goal| goal.verdict == verdict).count();
        let (all, met) = (self.goals.len(), self.goals.iter().filter(|goal| goal.verdict.is_met()).count());
        match self.goals.as_slice() {
            [] => "Goal: none could be judged.".to_owned(),
            [one] if met == 1 => format!("Goal met: {}.", one.sentence()),
            _ if met == all => format!("Goal met in all {all} parts."),
            _ => {
                let left = [
                    (Verdict::Missed, "missed"),
                    (Verdict::MissedWithinNoise, "missed within noise"),
                    (Verdict::NoData, "without a figure"),
                ];
                let left = left.map(|(verdict, words)| (count(verdict), words));
                let left = left.iter().filter(|(n, _)| *n > 0).map(|(n, words)| format!("{n} {words}"));
                format!("Goal NOT met: of {all} parts {met} met, {}.", left.collect::<Vec<_>>().join(", "))
            }
        }
    }

    /// The whole finding as text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = format!("== {} ({}) ==\n{}", self.title, self.source, wrapped(self.published, ""));
        for table in &self.tables {
            out += &format!("\n{}", table.text());
        }
        let missed = self.goals.iter().filter(|goal| !goal.verdict.is_met());
        let missed = missed.map(|goal| format!("{}: {}", goal.verdict.word(), goal.sentence()));
        let below: Vec<String> =
            self.notes.iter().map(|note| format!("note: {note}")).chain(missed).collect();
        if !below.is_empty() {
            out.push('\n');
        }
        below.iter().for_each(|line| out += &wrapped(line, "  "));
        out + &format!("\n{}\n", self.closing())
    }

    /// Adds every run of these sheets, and notes why figures are missing. Different results of one cell are
    /// also noted, since at least one is wrong.
    pub fn keep(&mut self, sheets: &[Sheet]) {
        for sheet in sheets {
            for (arm, runs) in &sheet.arms {
                for run in runs {
                    let metrics = run.result.as_ref().ok();
                    let failure = run.result.as_ref().err().map(ToString::to_string);
                    self.runs.push(json!({
                        "cell": sheet.cell, "arm": arm, "round": run.round, "place": run.place,
                        "metrics": metrics, "failure": failure,
                    }));
                }
                if let Some(failure) = sheet.failure(arm) {
                    self.notes.push(format!("no figure of {arm} in {}: {failure}", sheet.cell));
                }
            }
            let sums = sheet.arms.iter().flat_map(|(arm, _)| sheet.values(arm, "checksum"));
            let sums: BTreeSet<u64> = sums.map(f64::to_bits).collect();
            if sums.len() > 1 {
                self.notes.push(format!("WRONG RESULT: in {} the arms' checksums differ", sheet.cell));
            }
        }
    }
}

/// Lines of at most [`LINE`] characters, each after `indent`; later lines are indented a little more.
fn wrapped(text: &str, indent: &str) -> String {
    let (mut out, mut line) = (String::new(), indent.to_owned());
    for word in text.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > LINE && !line.trim().is_empty() {
            out += &(line + "\n");
            line = format!("{indent}  ");
        }
        if !line.trim().is_empty() {
            line.push(' ');
        }
        line += word;
    }
    out + &line + "\n"
}

/// A column: its name in JSON, its head, and its value in a row.
type Column<'c, R> = (&'c str, &'c str, &'c dyn Fn(&R) -> Value);

/// A table with a row for each of `rows`.
pub(crate) fn table_by<R>(title: &str, rows: &[R], columns: &[Column<'_, R>]) -> Table {
    let heads: Vec<_> = columns.iter().map(|(key, head, _)| (*key, *head)).collect();
    let mut table = Table::new(title, &heads);
    table.rows = rows.iter().map(|row| columns.iter().map(|(.., value)| value(row)).collect()).collect();
    table
}

/// A table whose columns depend on the machine.
pub(crate) fn table_of(title: &str, columns: &[(String, String)]) -> Table {
    let columns: Vec<_> = columns.iter().map(|(key, head)| (key.as_str(), head.as_str())).collect();
    Table::new(title, &columns)
}

/// Writes the figures of a finding into `folder` as SVG, and returns their paths.
///
/// # Errors
/// [`FigureError`] with the file that could not be written.
pub fn write_figures(finding: &Finding, folder: &Path) -> Result<Vec<PathBuf>, FigureError> {
    let failed = |path: &Path| {
        let path = path.to_path_buf();
        move |source| FigureError { path, source }
    };
    std::fs::create_dir_all(folder).map_err(failed(folder))?;
    let drawings = finding.drawings.iter().map(|(name, plot)| (*name, plot.svg()));
    let figures = finding.figures.iter().map(|figure| (&*figure.name, figure.svg()));
    let write = |(name, svg): (&str, String)| {
        let path = folder.join(name).with_extension("svg");
        std::fs::write(&path, svg).map_err(failed(&path)).map(|()| path)
    };
    figures.chain(drawings).map(write).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use vellum_campaign::Bound;

    #[test]
    fn the_closing_line_counts_goals_and_the_text_lists_missing_figures() {
        let goals = vec![
            Goal::of("speed", "x", Bound::AtLeast(2.0), Some(3.0)),
            Goal::of("memory", " MiB", Bound::AtMost(2.0), Some(3.0)),
        ];
        let mut finding = Finding { goals, ..Finding::new("n", "T", "S", "P", Vec::new()) };
        assert_eq!(finding.closing(), "Goal NOT met: of 2 parts 1 met, 1 missed.");
        assert!(finding.text().contains("  MISSED: memory 3.00 MiB (wanted <= 2.00 MiB)\n"));
        finding.goals.pop();
        assert!(finding.closing().starts_with("Goal met: speed 3.00x"));
        assert!(finding.text().ends_with(".\n"));
    }

    #[test]
    fn text_wraps_at_words() {
        let text = wrapped(&"word ".repeat(60), "  ");
        assert!(text.lines().count() == 3 && text.lines().all(|line| line.chars().count() <= LINE), "{text}");
        assert!(
            text.lines().all(|line| line.starts_with("  word") || line.starts_with("    word")),
            "{text}"
        );
        assert_eq!(text.matches("word").count(), 60);
    }
}
