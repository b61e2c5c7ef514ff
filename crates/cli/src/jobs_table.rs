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

/// A column of the table: one fact about each job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    Job,
    State,
    Size,
    Used,
    Knee,
    Window,
    Faults,
    MayHave,
    Advised,
    TwoThirds,
    Swapped,
    Cpu,
    Suspended,
}

/// The value that a column is sorted by. Unknown ones come last.
#[derive(Debug, Clone, PartialEq, PartialOrd)]
pub(crate) enum Key {
    Name(String),
    Number(f64),
    Unknown,
}

impl Column {
    /// All of them, the more important ones first: those that find no place are left out from the end.
    pub(crate) const ALL: [Column; 13] = [
        Column::Job,
        Column::State,
        Column::Size,
        Column::Used,
        Column::Knee,
        Column::Window,
        Column::Faults,
        Column::MayHave,
        Column::Advised,
        Column::TwoThirds,
        Column::Swapped,
        Column::Cpu,
        Column::Suspended,
    ];
    /// Those that lines of 80 columns have.
    pub(crate) const USUAL: &[Column] = {
        let all: &'static [Column] = &Column::ALL;
        all.split_at(8).0
    };

    pub(crate) fn head(self) -> &'static str {
        match self {
            Column::Job => "job",
            Column::State => "state",
            Column::Size => "size",
            Column::Used => "used",
            Column::Knee => "knee",
            Column::Window => "window",
            Column::Faults => "faults/s",
            Column::MayHave => "may have",
            Column::Advised => "advised",
            Column::TwoThirds => "at two thirds",
            Column::Swapped => "swapped",
            Column::Cpu => "cpu",
            Column::Suspended => "suspended",
        }
    }

    /// Whether it has words, which are aligned left.
    pub(crate) fn is_text(self) -> bool {
        matches!(self, Column::Job | Column::State)
    }

    pub(crate) fn cell(self, job: &JobSnapshot) -> String {
        let seconds = |seconds| units::time(Duration::from_secs_f64(seconds));
        let known = match self {
            Column::Job => Some(job.name.clone()),
            Column::State => Some(job.state.word().to_owned()),
            Column::Size => Some(units::bytes(job.resident_bytes)),
            Column::Used => job.source.is_some().then(|| units::bytes(job.referenced_bytes)),
            Column::Knee => job.worth_bytes.map(units::bytes),
            Column::Window => job.window_seconds.map(seconds),
            Column::Faults => Some(units::count(job.major_faults_per_second.round() as u64)),
            Column::MayHave => Some(units::bytes(job.target_bytes)),
            Column::Advised => job.advised_bytes.map(units::bytes),
            Column::TwoThirds => job.slowdown_two_thirds.map(|part| format!("+{:.1} %", part * 100.0)),
            Column::Swapped => Some(units::bytes(job.swapped_bytes)),
            Column::Cpu => Some(seconds(job.cpu_seconds)),
            Column::Suspended => Some(seconds(job.suspended_seconds)),
        };
        known.unwrap_or_else(|| UNKNOWN.to_owned())
    }

    /// The value that jobs are sorted by in it.
    pub(crate) fn key(self, job: &JobSnapshot) -> Key {
        let number = match self {
            Column::Job => return Key::Name(job.name.clone()),
            Column::State => return Key::Name(job.state.word().to_owned()),
            Column::Size => Some(job.resident_bytes as f64),
            Column::Used => job.source.is_some().then_some(job.referenced_bytes as f64),
            Column::Knee => job.worth_bytes.map(|bytes| bytes as f64),
            Column::Window => job.window_seconds,
            Column::Faults => Some(job.major_faults_per_second),
            Column::MayHave => Some(job.target_bytes as f64),
            Column::Advised => job.advised_bytes.map(|bytes| bytes as f64),
            Column::TwoThirds => job.slowdown_two_thirds,
            Column::Swapped => Some(job.swapped_bytes as f64),
            Column::Cpu => Some(job.cpu_seconds),
            Column::Suspended => Some(job.suspended_seconds),
        };
        number.map_or(Key::Unknown, Key::Number)
    }
}

/// The jobs, in lines of at most `width` columns where names allow it.
pub(crate) fn jobs(snapshot: &Snapshot, width: usize, style: Style) -> String {
    let columns = Column::USUAL;
    let heads: Vec<&str> = columns.iter().map(|column| column.head()).collect();
    let mut table = Table::plain(&heads, 2);
    for job in &snapshot.jobs {
        table.row(columns.iter().map(|column| column.cell(job)).collect());
    }
    table.render("", width, style)
}
