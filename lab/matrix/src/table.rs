//! Prints the results as a table, in Markdown, and as JSON.

use super::judge::{Judged, Verdict};
use super::list::Mode;
use std::fmt::Write;

/// The marks around the table in a page.
const BEGIN: &str = "<!-- table: begin -->";
const END: &str = "<!-- table: end -->";

/// Numbers of rows by result.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Count {
    /// Rows that were run.
    pub run: usize,
    /// Rows with the same results in every mode.
    pub same: usize,
    /// Rows with a difference.
    pub differ: usize,
    /// Rows that were not run.
    pub skipped: usize,
    /// Rows that are wrong on this machine: they fail plain, or differ between two plain runs.
    pub faulty: usize,
}

impl Count {
    /// Counts `rows`.
    pub fn of(rows: &[Judged]) -> Count {
        let count = |of: &dyn Fn(&Judged) -> bool| rows.iter().filter(|row| of(row)).count();
        Count {
            run: count(&|row| row.skipped.is_none()),
            same: count(&|row| row.skipped.is_none() && row.fault.is_none() && !row.differs()),
            differ: count(&|row| row.fault.is_none() && row.differs()),
            skipped: count(&|row| row.skipped.is_some()),
            faulty: count(&|row| row.fault.is_some()),
        }
    }
}

impl std::fmt::Display for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} programs run, {} the same in every mode, {} differ, {} not run; rows that are wrong here: {}",
            self.run, self.same, self.differ, self.skipped, self.faulty
        )
    }
}

/// A mode's cell.
fn cell(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Same { runs: 1 } => "ok".to_string(),
        Verdict::Same { runs } => format!("ok, {runs} runs"),
        Verdict::Differs { times, runs, what } => {
            format!("**differs** ({}; {times} of {runs})", what.join(", "))
        }
        Verdict::Skipped(why) => why.clone(),
        Verdict::NotAsked => String::new(),
    }
}

/// One line for a row as it ends.
pub fn line(row: &Judged) -> String {
    let mut said = format!("{}: ", row.name);
    if let Some(why) = &row.skipped {
        let _ = write!(said, "skipped: {why}");
    }
    let mut parts: Vec<String> = row.fault.iter().map(|why| format!("WRONG ROW ({why})")).collect();
    for (mode, verdict) in &row.modes {
        if !matches!(verdict, Verdict::NotAsked) {
            parts.push(format!("{} {}", mode.name(), cell(verdict)));
        }
    }
    said + &parts.join(", ")
}

/// The table.
pub fn markdown(rows: &[Judged]) -> String {
    let mut text = format!("{}.\n\n| program | version |", Count::of(rows));
    for mode in Mode::COMPARED {
        let _ = write!(text, " {} |", mode.name());
    }
    text.push_str(" on Vellum |\n");
    text.push_str(&format!("|{}\n", " --- |".repeat(Mode::COMPARED.len() + 3)));
    for row in rows.iter().filter(|row| row.skipped.is_none()) {
        let _ = write!(text, "| {} | {} |", row.name, row.version.replace('|', "/"));
        if let Some(why) = &row.fault {
            let _ = write!(text, " wrong row: {why} |{}", " |".repeat(Mode::COMPARED.len()));
            text.push('\n');
            continue;
        }
        for (_, verdict) in &row.modes {
            let _ = write!(text, " {} |", cell(verdict));
        }
        let served = row.served.map_or(String::new(), |(serving, seated)| format!("{serving} of {seated}"));
        let _ = writeln!(text, " {served} |");
    }
    let skipped: Vec<String> = rows
        .iter()
        .filter_map(|row| row.skipped.as_ref().map(|why| format!("{} ({why})", row.name)))
        .collect();
    if !skipped.is_empty() {
        let _ = writeln!(text, "\nNot run: {}.", skipped.join("; "));
    }
    text
}

/// `page` with the table between its marks, if it has them.
pub fn put_in(page: &str, rows: &[Judged]) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{}{END}{after}", markdown(rows)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, verdict: Verdict) -> Judged {
        Judged {
            name: name.to_string(),
            version: "1".to_string(),
            skipped: None,
            fault: None,
            modes: Mode::COMPARED.map(|mode| (mode, verdict.clone())).into(),
            served: Some((1, 2)),
        }
    }

    #[test]
    fn a_difference_is_counted_and_shown() {
        let differs = Verdict::Differs { times: 1, runs: 3, what: vec!["output"] };
        let rows = [row("a", Verdict::Same { runs: 1 }), row("b", differs)];
        let count = Count::of(&rows);
        assert_eq!((count.run, count.same, count.differ), (2, 1, 1));
        let page = put_in("x\n<!-- table: begin -->\nold\n<!-- table: end -->\ny\n", &rows).expect("marks");
        assert!(page.contains("**differs** (output; 1 of 3)") && !page.contains("old"), "{page}");
        assert!(page.starts_with("x\n") && page.ends_with("\ny\n"));
        assert!(put_in("no marks", &rows).is_none());
    }
}
