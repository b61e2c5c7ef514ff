//! The state of governed jobs as a table, for `vellum govern` and `vellum top`.

use std::time::Duration;
use vellum_governor::{JobSnapshot, Limit, Snapshot};
use vellum_report::Style;
use vellum_report::Table;
use vellum_report::units;

/// The text for an unknown value.
const UNKNOWN: &str = "-";
type Figure = fn(&JobSnapshot) -> Option<f64>;

/// The first line: the sum over all jobs.
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

/// The format of a column's values.
enum Shown {
    Words,
    Bytes,
    Seconds,
    Count,
    Part,
}

/// The value by which a column is sorted. Unknown values come last.
#[derive(Debug, Clone, PartialEq, PartialOrd)]
pub(crate) enum Key {
    Name(String),
    Number(f64),
    Unknown,
}

impl Column {
    /// All columns, the more important ones first: on a narrow screen the last ones are omitted.
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
    /// The columns that fit into lines of 80 columns.
    pub(crate) const USUAL: &[Column] = {
        let all: &'static [Column] = &Column::ALL;
        all.split_at(8).0
    };

    /// The head, the format and the figure of a column. Columns of words have no figure.
    fn parts(self) -> (&'static str, Shown, Figure) {
        match self {
            Column::Job => ("job", Shown::Words, |_| None),
            Column::State => ("state", Shown::Words, |_| None),
            Column::Size => ("size", Shown::Bytes, |job| Some(job.resident_bytes as f64)),
            Column::Used => {
                ("used", Shown::Bytes, |job| job.source.is_some().then_some(job.referenced_bytes as f64))
            }
            Column::Knee => ("knee", Shown::Bytes, |job| job.worth_bytes.map(|bytes| bytes as f64)),
            Column::Window => ("window", Shown::Seconds, |job| job.window_seconds),
            Column::Faults => ("faults/s", Shown::Count, |job| Some(job.major_faults_per_second)),
            Column::MayHave => ("may have", Shown::Bytes, |job| Some(job.target_bytes as f64)),
            Column::Advised => ("advised", Shown::Bytes, |job| job.advised_bytes.map(|bytes| bytes as f64)),
            Column::TwoThirds => ("at two thirds", Shown::Part, |job| job.slowdown_two_thirds),
            Column::Swapped => ("swapped", Shown::Bytes, |job| Some(job.swapped_bytes as f64)),
            Column::Cpu => ("cpu", Shown::Seconds, |job| Some(job.cpu_seconds)),
            Column::Suspended => ("suspended", Shown::Seconds, |job| Some(job.suspended_seconds)),
        }
    }

    pub(crate) fn head(self) -> &'static str {
        self.parts().0
    }

    /// True if the column has words, which are aligned left.
    pub(crate) fn is_text(self) -> bool {
        matches!(self.parts().1, Shown::Words)
    }

    /// The value of a job by which this column is sorted.
    pub(crate) fn key(self, job: &JobSnapshot) -> Key {
        match self {
            Column::Job => Key::Name(job.name.clone()),
            Column::State => Key::Name(job.state.word().to_owned()),
            _ => self.parts().2(job).map_or(Key::Unknown, Key::Number),
        }
    }

    pub(crate) fn cell(self, job: &JobSnapshot) -> String {
        let number = match self.key(job) {
            Key::Name(name) => return name,
            Key::Number(number) => number,
            Key::Unknown => return UNKNOWN.to_owned(),
        };
        match self.parts().1 {
            Shown::Bytes => units::bytes(number as u64),
            Shown::Seconds => units::time(Duration::from_secs_f64(number)),
            Shown::Part => format!("+{:.1} %", number * 100.0),
            Shown::Words | Shown::Count => units::count(number.round() as u64),
        }
    }
}

/// The jobs, in lines of at most `width` columns unless a name is too long.
pub(crate) fn jobs(snapshot: &Snapshot, width: usize, style: Style) -> String {
    let columns = Column::USUAL;
    let heads: Vec<&str> = columns.iter().map(|column| column.head()).collect();
    let mut table = Table::plain(&heads, 2);
    for job in &snapshot.jobs {
        table.row(columns.iter().map(|column| column.cell(job)).collect());
    }
    table.render("", width, style)
}
