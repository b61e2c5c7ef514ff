//! Draws the screen of `vellum top`: a sum over all jobs, the table of jobs, and details of the chosen job.
//!
//! ```text
//! ┌ sum: memory of budget, stalls ──┐  stalls: time in which tasks waited for memory
//! │ table: the columns that fit     │
//! │ chosen job: words │ chart       │  if the screen has enough lines
//! └ keys ───────────────────────────┘
//! ```

use super::grid::{Area, Colour, Grid, Look};
use super::history::Point;
use super::view::View;
use crate::jobs_table::{self, Column};
use std::ops::Range;
use std::time::Duration;
use vellum_governor::{JobSnapshot, State};
use vellum_report::table::shortened;
use vellum_report::{units, wrapped};

/// The space between two columns of the table.
const BETWEEN: usize = 2;
/// The most columns for a name, and the fewest if other columns need the space.
const NAME_MAX: usize = 24;
const NAME_MIN: usize = 8;
/// The fewest lines of a screen that shows the chosen job; on a smaller one the table is more useful.
const LINES_FOR_DETAIL: usize = 18;
/// The fewest lines for the chosen job.
const DETAIL: usize = 12;
/// Columns for the job's words, before the chart.
const WORDS: usize = 40;
const LABEL: usize = 10;
const STALLS: usize = 30;
const STALLS_LABEL: usize = 8;
/// Characters that fill zero to eight eighths of a cell from below.
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// The part of the chart's height that the highest curve reaches.
const TOP: f64 = 1.0 / 1.05;
/// Steps of the sparkline for a whole period.
const STALL_STEPS: f64 = 1000.0;
/// The smallest top of the sparkline, so that small stalls look small.
const STALLS_LEAST: u64 = 200;

struct Plotted {
    name: &'static str,
    colour: Colour,
    of: fn(&Point) -> Option<u64>,
}

const LINES: [Plotted; 3] = [
    Plotted { name: "size", colour: Colour::Cyan, of: |point| Some(point.resident_bytes) },
    Plotted { name: "used", colour: Colour::Green, of: |point| point.used_bytes },
    Plotted { name: "knee", colour: Colour::Yellow, of: |point| point.knee_bytes },
];

const KEYS: [(&str, &str); 5] =
    [("↑↓", "job"), ("←→", "sort"), ("r", "reverse"), ("p", "pause"), ("q", "quit")];

pub(super) fn draw(grid: &mut Grid, view: &View) {
    let height = grid.height;
    let has_detail = height >= LINES_FOR_DETAIL && view.chosen().is_some();
    let keys = height.saturating_sub(1);
    // The table gets its head and all jobs, unless the detail would get fewer than `DETAIL` lines.
    let jobs = view.jobs().len().saturating_add(1).min(height.saturating_sub(3 + DETAIL));
    let table = 2..if has_detail { 2 + jobs } else { keys };
    draw_sum(grid, view);
    draw_table(grid, table.clone(), view);
    if let Some(job) = view.chosen().filter(|_| has_detail).and_then(|at| view.jobs().get(at).copied()) {
        draw_job(grid, table.end..keys, view, job);
    }
    draw_keys(grid, keys, view);
}

fn draw_sum(grid: &mut Grid, view: &View) {
    let (state, width) = (&view.state, grid.width);
    let behind = grid.put(0..width, 0, "vellum top  ", Look::BOLD);
    grid.put(behind..width, 0, &jobs_table::summary(state, vellum_report::Style::plain()), Look::PLAIN);
    let stalls = if state.stalled.is_some() { STALLS.min(width / 3) } else { 0 };
    let history = width - stalls..width;
    let gauge = 0..history.start - stalls.min(STALLS_LABEL);
    let part = (state.resident_bytes as f64 / state.effective_budget_bytes.max(1) as f64).min(1.0);
    let colour = if state.squeezed || state.braked { Colour::Red } else { Colour::Cyan };
    let start = grid.put(gauge.clone(), 1, &format!("{:>3.0} %", part * 100.0), Look::PLAIN) + 1;
    let filled = start + (gauge.end.saturating_sub(start) as f64 * part) as usize;
    for x in start..gauge.end {
        grid.put(x..gauge.end, 1, "─", if x < filled { Look::of(colour) } else { Look::DIM });
    }
    if stalls == 0 {
        return;
    }
    grid.put(gauge.end..history.start, 1, " stalls ", Look::DIM);
    // The newest value is at the right end.
    let newest = view.history.stalls().rev().take(stalls).map(|part| (part * STALL_STEPS) as u64);
    let newest: Vec<u64> = newest.collect();
    let top = newest.iter().copied().max().unwrap_or(0).max(STALLS_LEAST);
    for (x, steps) in history.rev().zip(newest) {
        let block = EIGHTHS[(steps * 8 / top).min(8) as usize];
        grid.put(x..x + 1, 1, block.encode_utf8(&mut [0; 4]), Look::of(Colour::Red));
    }
}

fn draw_table(grid: &mut Grid, lines: Range<usize>, view: &View) {
    let (jobs, width) = (view.jobs(), grid.width);
    let columns = fitting(&jobs, width);
    let mut row = |y: usize, look: Look, cell: &dyn Fn(Column) -> String| {
        let mut x = 0;
        for (column, wide) in &columns {
            let text = shortened(&cell(*column), *wide);
            if column.is_text() {
                grid.put(x..x + wide, y, &text, look);
            } else {
                grid.put_right(x..x + wide, y, &text, look);
            }
            x += wide + BETWEEN;
        }
    };
    if lines.is_empty() {
        return;
    }
    row(lines.start, Look { colour: Some(Colour::Cyan), ..Look::BOLD }, &|column| {
        let arrow = view.order.filter(|order| order.column == column);
        let arrow = arrow.map_or("", |order| if order.falls { "▼" } else { "▲" });
        format!("{}{arrow}", column.head)
    });
    let rows = lines.start + 1..lines.end;
    let first = view.chosen().map_or(0, |chosen| (chosen + 1).saturating_sub(rows.len()));
    for (y, job) in rows.clone().zip(&jobs[first..]) {
        let look = match job.state {
            State::Running => Look::PLAIN,
            State::Suspended => Look::of(Colour::Yellow),
            State::Waiting | State::Ended => Look::DIM,
        };
        row(y, look, &|column| column.cell(job));
    }
    if let Some(y) = view.chosen().map(|chosen| rows.start + chosen - first).filter(|y| rows.contains(y)) {
        grid.dress(0..width, y, |look| look.reversed = true);
    }
}

/// The columns that fit, each with its width. A long name is cut in favour of the usual columns.
fn fitting(jobs: &[&JobSnapshot], width: usize) -> Vec<(Column, usize)> {
    let wide = |column: Column| {
        let longest = jobs.iter().map(|job| column.cell(job).chars().count()).max().unwrap_or(0);
        // One more than the head, for the arrow of the order.
        longest.max(column.head.chars().count() + 1)
    };
    let others: usize = Column::USUAL.iter().skip(1).map(|column| BETWEEN + wide(*column)).sum();
    let name_max = width.saturating_sub(others).clamp(NAME_MIN, NAME_MAX);
    // The name is the first column.
    let mut fitting = Vec::new();
    let mut taken = 0;
    for column in Column::ALL {
        let wide = if fitting.is_empty() { wide(column).min(name_max) } else { wide(column) };
        taken += wide;
        if taken > width {
            break;
        }
        taken += BETWEEN;
        fitting.push((column, wide));
    }
    fitting
}

fn draw_job(grid: &mut Grid, lines: Range<usize>, view: &View, job: &JobSnapshot) {
    let width = grid.width;
    grid.put(0..width, lines.start, &"─".repeat(width), Look::DIM);
    grid.put(0..width, lines.start, &format!(" {} ", job.name), Look { dim: true, ..Look::BOLD });
    let (words, inner) = (WORDS.min(width / 2), lines.start + 1..lines.end);
    for (y, (label, text)) in inner.clone().zip(words_of(job, words)) {
        let behind = grid.put(0..words, y, &format!("{label:<LABEL$} "), Look::DIM);
        grid.put(behind..words, y, &text, Look::PLAIN);
    }
    draw_chart(grid, &Area { x: words + 1..width, y: inner }, view.history.of(&job.name));
}

/// Labelled data of a job that the table lacks.
fn words_of(job: &JobSnapshot, width: usize) -> Vec<(&'static str, String)> {
    // No line break between a number and its unit.
    let whole = |text: String| text.replace(' ', "\u{a0}");
    let seconds = |seconds| whole(units::time(Duration::from_secs_f64(seconds)));
    let bytes = |bytes| whole(units::bytes(bytes));
    let mut all: Vec<(&'static str, String)> = Vec::new();
    let mut say = |label, text| all.push((label, text));
    if let Some(advised) = job.advised_bytes {
        let less =
            job.slowdown_two_thirds.map(|part| format!("; two thirds cost {:.0}\u{a0}%", part * 100.0));
        say("advised", format!("{}{}", bytes(advised), less.unwrap_or_default()));
    }
    if let Some(answer) = &job.answer {
        say("answer", answer.clone());
    }
    if !job.untouched.is_empty() {
        let age = |age: &vellum_governor::Untouched| {
            format!("{} {}", seconds(age.seconds as f64), bytes(age.bytes))
        };
        say("untouched", job.untouched.iter().map(age).collect::<Vec<_>>().join(", "));
    }
    say("processes", format!("{}, priority {}", job.processes, job.priority));
    say("cpu", format!("{}, swapped {}", seconds(job.cpu_seconds), bytes(job.swapped_bytes)));
    say("taken", format!("{} by {}", bytes(job.taken_bytes), job.means));
    if let Some(source) = &job.source {
        say("watched", format!("{source}, costs {:.2}\u{a0}%", job.watch_share * 100.0));
    }
    if job.suspensions > 0 {
        say("suspended", format!("{} times, {}", job.suspensions, seconds(job.suspended_seconds)));
    }
    if job.restarts > 0 {
        say("restarted", format!("{} times", job.restarts));
    }
    let lines = all.iter().flat_map(|(label, text)| {
        let labels = std::iter::once(*label).chain(std::iter::repeat(""));
        labels.zip(wrapped(text, LABEL + 1, width))
    });
    lines.collect()
}

/// Curves over time in front of two axes, with names above.
fn draw_chart<'a>(grid: &mut Grid, area: &Area, history: impl DoubleEndedIterator<Item = &'a Point>) {
    let points: Vec<&Point> = history.collect();
    let Some((first, last)) = points.first().zip(points.last()) else { return };
    let ago = (last.at_seconds - first.at_seconds).max(1.0);
    let curve = |plotted: &Plotted| -> Vec<(f64, f64)> {
        let known = |point: &&Point| {
            let back = (last.at_seconds - point.at_seconds) / ago;
            Some((1.0 - back, (plotted.of)(point)? as f64))
        };
        points.iter().filter_map(known).collect()
    };
    let curves = LINES.map(|plotted| (curve(&plotted), Look::of(plotted.colour)));
    let most = curves.iter().flat_map(|(curve, _)| curve).map(|(_, bytes)| *bytes).fold(1.0, f64::max);
    let mut x = area.x.start;
    for line in &LINES {
        x = grid.put(x..area.x.end, area.y.start, &format!("─ {}  ", line.name), Look::of(line.colour));
    }
    let (oldest, highest) =
        (format!("-{}", units::time(Duration::from_secs_f64(ago))), units::bytes(most as u64));
    // The last character of the oldest time is below the axis.
    let wide = highest.chars().count().max(oldest.chars().count() - 1).min(area.x.len() / 3);
    let (axis, labels) = (area.x.start + wide, area.y.end - 1);
    let inner = Area { x: axis + 1..area.x.end, y: area.y.start + 1..labels - 1 };
    for y in inner.y.clone() {
        grid.put(axis..axis + 1, y, "│", Look::DIM);
    }
    grid.put(axis..area.x.end, inner.y.end, &format!("└{}", "─".repeat(inner.x.len())), Look::DIM);
    grid.put(area.x.start..axis, inner.y.start, &highest, Look::DIM);
    grid.put(area.x.start..axis, inner.y.end - 1, "0", Look::DIM);
    grid.put(area.x.start..axis + 1, labels, &oldest, Look::DIM);
    grid.put_right(inner.x.clone(), labels, "now", Look::DIM);
    for (curve, look) in curves {
        let places: Vec<(f64, f64)> = curve.iter().map(|(x, bytes)| (*x, bytes / most * TOP)).collect();
        grid.curve(&inner, &places, look);
    }
}

fn draw_keys(grid: &mut Grid, y: usize, view: &View) {
    let (mut x, width) = (0, grid.width);
    for (key, what) in KEYS {
        x = grid.put(x..width, y, &format!(" {key} "), Look::REVERSED);
        x = grid.put(x..width, y, &format!(" {what}  "), Look::DIM);
    }
    if view.paused {
        grid.put(x..width, y, "paused", Look { colour: Some(Colour::Yellow), ..Look::BOLD });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::press::Press;
    use vellum_governor::{Snapshot, Untouched};

    /// Three jobs over some minutes; one job is chosen.
    fn view() -> View {
        let mut view = View::default();
        for at in 0..240u32 {
            let wave = 1.0 + (f64::from(at) / 30.0).sin();
            let size = |mib: f64| (mib * f64::from(1 << 20)) as u64;
            let job = |name: &str, mib: f64| JobSnapshot {
                name: name.into(),
                state: State::Running,
                processes: 2,
                resident_bytes: size(mib),
                referenced_bytes: size(mib * 0.6),
                worth_bytes: Some(size(mib * 0.5)),
                window_seconds: Some(1.6),
                target_bytes: size(400.0),
                advised_bytes: Some(size(mib * 0.7)),
                slowdown_two_thirds: Some(0.12),
                major_faults_per_second: 1234.0,
                cpu_seconds: f64::from(at),
                source: Some("accessed bits".into()),
                means: "memory.reclaim".into(),
                answer: Some("worth 100 MiB; less costs more than it gives".into()),
                untouched: vec![Untouched { seconds: 10, bytes: size(20.0) }],
                ..JobSnapshot::default()
            };
            let jobs = vec![
                job("database", 300.0 + 60.0 * wave),
                JobSnapshot {
                    state: State::Suspended,
                    suspensions: 2,
                    ..job("a-compiler-with-a-very-long-name", 120.0)
                },
                JobSnapshot { name: "unwatched".into(), ..JobSnapshot::default() },
            ];
            view.learn(Snapshot {
                at_seconds: f64::from(at),
                budget_bytes: 1 << 30,
                effective_budget_bytes: 1 << 30,
                resident_bytes: size(420.0 + 60.0 * wave),
                stalled: Some(wave / 20.0),
                jobs,
                ..Snapshot::default()
            });
        }
        view
    }

    fn drawn(view: &View, width: usize, height: usize) -> Vec<String> {
        let mut grid = Grid::new(width, height);
        draw(&mut grid, view);
        grid.lines()
    }

    #[test]
    fn small_terminal_shows_the_main_columns() {
        let lines = drawn(&view(), 80, 24);
        let text = lines.join("\n");
        assert!(lines[0].contains("vellum top") && lines[0].contains("of 1.00 GiB"), "{text}");
        assert!(lines[2].starts_with("job") && lines[2].contains("may have"), "{text}");
        assert!(lines[3].starts_with("database") && lines[3].contains("running"), "{text}");
        assert!(lines[4].starts_with("a-compil…  suspended"), "{text}");
        for word in
            ["advised", "two thirds cost 12\u{a0}%", "10.00\u{a0}s 20.0\u{a0}MiB", "─ knee", "now", "quit"]
        {
            assert!(text.contains(word), "no {word} in\n{text}");
        }
        assert!(!lines[2].contains("suspended"), "no place: {text}");
    }

    #[test]
    fn wide_terminal_shows_all_columns_and_the_order() {
        let mut view = view();
        for press in [Press::Down, Press::Right, Press::Right, Press::Right] {
            assert!(view.obey(press));
        }
        let lines = drawn(&view, 160, 50);
        let text = lines.join("\n");
        for column in Column::ALL {
            assert!(lines[2].contains(column.head), "no {} in\n{text}", column.head);
        }
        assert!(lines[2].contains("size▼"), "{text}");
        assert!(text.contains("suspended  2 times"), "the chosen job's: {text}");
    }

    #[test]
    fn drawing_works_on_tiny_terminals() {
        for (width, height) in [(1, 1), (5, 3), (20, 6), (79, 17), (40, 24), (300, 18)] {
            drawn(&view(), width, height);
            drawn(&View::default(), width, height);
        }
    }
}
