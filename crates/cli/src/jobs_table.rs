//! The state of governed jobs as a table, for `vellum govern` and `vellum top`.

use std::time::Duration;
use vellum_governor::{JobSnapshot, Limit, Snapshot};
use vellum_report::Style;
use vellum_report::Table;
use vellum_report::units;

/// What is not known.
const UNKNOWN: &str = "-";

/// The first line: all together.
pub(crate) fn summary(snapshot: &Snapshot, style: Style) -> String {
    let mut text = format!(
        "{}  {} of {}",
        units::time(Duration::from_secs_f64(snapshot.at_seconds)),
        units::bytes(snapshot.resident_bytes),
        units::bytes(snapshot.effective_budget_bytes),
    );
    if snapshot.effective_budget_bytes < snapshot.budget_bytes {
        text += &format!(" (asked: {})", units::bytes(snapshot.budget_bytes));
    }
    if let Some(stalled) = snapshot.stalled {
        text += &format!("  stalled {:.1} %", stalled * 100.0);
    }
    let word = match snapshot.limit {
        _ if snapshot.braked => Some("brake"),
        Limit::None if snapshot.squeezed => Some("squeezed"),
        Limit::None => None,
        limit => Some(limit.words()),
    };
    word.map_or(text.clone(), |word| format!("{text}  {}", style.notice(word)))
}

/// The jobs, in lines of at most `width` columns where names allow it.
pub(crate) fn jobs(snapshot: &Snapshot, width: usize, style: Style) -> String {
    let mut table =
        Table::plain(&["job", "state", "size", "used", "knee", "window", "faults/s", "may have"], 2);
    for job in &snapshot.jobs {
        table.row(row(job));
    }
    table.render("", width, style)
}

fn row(job: &JobSnapshot) -> Vec<String> {
    let unknown = || UNKNOWN.to_owned();
    let watched = job.source.is_some();
    vec![
        job.name.clone(),
        job.state.word().to_owned(),
        units::bytes(job.resident_bytes),
        if watched { units::bytes(job.referenced_bytes) } else { unknown() },
        job.worth_bytes.map_or_else(unknown, units::bytes),
        job.window_seconds.map_or_else(unknown, |window| units::time(Duration::from_secs_f64(window))),
        units::count(job.major_faults_per_second.round() as u64),
        units::bytes(job.target_bytes),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use vellum_governor::State;

    #[test]
    fn every_number_has_its_unit_and_lines_fit() {
        let job = JobSnapshot {
            name: "a-name-of-some-length".into(),
            state: State::Suspended,
            resident_bytes: 45 << 20,
            referenced_bytes: 30 << 20,
            worth_bytes: Some(25 << 20),
            window_seconds: Some(1.6),
            major_faults_per_second: 1234.4,
            target_bytes: 260 << 20,
            source: Some("accessed".into()),
            ..JobSnapshot::default()
        };
        let unwatched = JobSnapshot { name: "b".into(), ..JobSnapshot::default() };
        let snapshot = Snapshot {
            at_seconds: 12.0,
            budget_bytes: 1 << 30,
            effective_budget_bytes: 512 << 20,
            resident_bytes: 400 << 20,
            limit: Limit::Machine,
            stalled: Some(0.034),
            jobs: vec![job, unwatched],
            ..Snapshot::default()
        };
        assert_eq!(
            summary(&snapshot, Style::plain()),
            "12.00 s  400 MiB of 512 MiB (asked: 1.00 GiB)  stalled 3.4 %  the machine's memory is short"
        );
        let text = jobs(&snapshot, 80, Style::plain());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|line| line.chars().count() <= 80), "{text}");
        for cell in ["suspended", "45.0 MiB", "30.0 MiB", "25.0 MiB", "1.60 s", "1,234", "260 MiB"] {
            assert!(lines[1].contains(cell), "{cell} in {text}");
        }
        assert_eq!(lines[2].matches(" -").count(), 3, "{text}");
    }
}
