//! The table of governed jobs and their state, for `vellum govern` and `vellum top`.

use Shown::{Bytes, Count, Part, Seconds, Words};
use std::time::Duration;
use vellum_governor::{JobSnapshot, Limit, Snapshot};
use vellum_report::{Style, Table, units};

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

/// A column: its head, and what it shows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    pub(crate) head: &'static str,
    shown: Shown,
}

impl PartialEq for Column {
    fn eq(&self, other: &Column) -> bool {
        self.head == other.head
    }
}

impl Eq for Column {}

/// The values of a column, by format.
#[derive(Debug, Clone, Copy)]
enum Shown {
    Words(fn(&JobSnapshot) -> String),
    Bytes(Figure),
    Seconds(Figure),
    Count(Figure),
    Part(Figure),
}

/// The value by which a column is sorted. Unknown values come last.
#[derive(Debug, Clone, PartialEq, PartialOrd)]
pub(crate) enum Key {
    Name(String),
    Number(f64),
    Unknown,
}

const fn column(head: &'static str, shown: Shown) -> Column {
    Column { head, shown }
}

impl Column {
    /// All columns, the more important ones first: on a narrow screen the last ones are omitted.
    pub(crate) const ALL: [Column; 13] = [
        column("job", Words(|job| job.name.clone())),
        column("state", Words(|job| job.state.word().to_owned())),
        column("size", Bytes(|job| Some(job.resident_bytes as f64))),
        column("used", Bytes(|job| job.source.is_some().then_some(job.referenced_bytes as f64))),
        column("knee", Bytes(|job| job.worth_bytes.map(|bytes| bytes as f64))),
        column("window", Seconds(|job| job.window_seconds)),
        column("faults/s", Count(|job| Some(job.major_faults_per_second))),
        column("may have", Bytes(|job| Some(job.target_bytes as f64))),
        column("advised", Bytes(|job| job.advised_bytes.map(|bytes| bytes as f64))),
        column("at two thirds", Part(|job| job.slowdown_two_thirds)),
        column("swapped", Bytes(|job| Some(job.swapped_bytes as f64))),
        column("cpu", Seconds(|job| Some(job.cpu_seconds))),
        column("suspended", Seconds(|job| Some(job.suspended_seconds))),
    ];
    /// The columns that fit into lines of 80 columns.
    pub(crate) const USUAL: &[Column] = {
        let all: &'static [Column] = &Column::ALL;
        all.split_at(8).0
    };

    /// True if the column has words, which are aligned left.
    pub(crate) fn is_text(self) -> bool {
        matches!(self.shown, Words(_))
    }

    /// The value of a job by which this column is sorted.
    pub(crate) fn key(self, job: &JobSnapshot) -> Key {
        match self.shown {
            Words(of) => Key::Name(of(job)),
            Bytes(of) | Seconds(of) | Count(of) | Part(of) => of(job).map_or(Key::Unknown, Key::Number),
        }
    }

    pub(crate) fn cell(self, job: &JobSnapshot) -> String {
        let number = match self.key(job) {
            Key::Name(name) => return name,
            Key::Number(number) => number,
            Key::Unknown => return UNKNOWN.to_owned(),
        };
        match self.shown {
            Bytes(_) => units::bytes(number as u64),
            Seconds(_) => units::time(Duration::from_secs_f64(number)),
            Part(_) => format!("+{:.1} %", number * 100.0),
            Words(_) | Count(_) => units::count(number.round() as u64),
        }
    }
}

/// The jobs, in lines of at most `width` columns unless a name is too long.
pub(crate) fn jobs(snapshot: &Snapshot, width: usize, style: Style) -> String {
    let columns = Column::USUAL;
    let heads: Vec<&str> = columns.iter().map(|column| column.head).collect();
    let mut table = Table::plain(&heads, 2);
    for job in &snapshot.jobs {
        table.row(columns.iter().map(|column| column.cell(job)).collect());
    }
    table.render("", width, style)
}
