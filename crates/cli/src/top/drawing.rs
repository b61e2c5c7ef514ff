//! A view as a picture: the sum of all, the table, and the chosen job's history and advice.
//!
//! ```text
//! ┌ sum: held of the budget, stalls ┐
//! │ table: columns that find a place│
//! │ chosen job: words │ chart       │  where there are lines for it
//! └ keys ───────────────────────────┘
//! ```

use super::history::Point;
use super::view::View;
use crate::jobs_table::{self, Column};
use crate::wrap::wrapped_to;
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{
    Axis, Block, Borders, Cell, Chart, Dataset, GraphType, LineGauge, Paragraph, Row, Sparkline, Table,
    TableState,
};
use std::time::Duration;
use vellum_governor::{JobSnapshot, Snapshot, State};
use vellum_report::units;

/// Columns between two columns of the table.
const BETWEEN: u16 = 2;
/// The most columns that a name takes, and what it gets where others need the place.
const NAME_MAX: usize = 24;
const NAME_MIN: usize = 8;
/// Lines from which the chosen job is shown: the table is what people come for.
const LINES_FOR_DETAIL: u16 = 18;
/// The lines it gets at least.
const DETAIL: u16 = 12;
/// Columns of its words, before the chart.
const WORDS: u16 = 40;
/// Columns of a label there.
const LABEL: usize = 10;
/// Columns of the history of stalls.
const STALLS: u16 = 30;
/// Steps of the sparkline for all of a period.
const STALL_STEPS: f64 = 1000.0;
/// Its top at least: small stalls are to look small.
const STALLS_LEAST: u64 = 200;

/// A line of the chart.
struct Plotted {
    name: &'static str,
    colour: Color,
    of: fn(&Point) -> Option<u64>,
}

const LINES: [Plotted; 3] = [
    Plotted { name: "size", colour: Color::Cyan, of: |point| Some(point.resident_bytes) },
    Plotted { name: "used", colour: Color::Green, of: |point| point.used_bytes },
    Plotted { name: "knee", colour: Color::Yellow, of: |point| point.knee_bytes },
];

const KEYS: [(&str, &str); 5] =
    [("↑↓", "job"), ("←→", "sort"), ("r", "reverse"), ("p", "pause"), ("q", "quit")];

pub(super) fn draw(frame: &mut Frame<'_>, view: &View) {
    let all = frame.area();
    let has_detail = all.height >= LINES_FOR_DETAIL && view.chosen().is_some();
    // All lines but the table's head and the jobs, as far as they leave enough.
    let jobs = view.jobs().len().saturating_add(1).min(usize::from(all.height.saturating_sub(3 + DETAIL)));
    let (table, detail) = match has_detail {
        true => (Constraint::Length(jobs as u16), Constraint::Fill(1)),
        false => (Constraint::Min(2), Constraint::Length(0)),
    };
    let [sum, table, chosen, keys] =
        Layout::vertical([Constraint::Length(2), table, detail, Constraint::Length(1)]).areas(all);
    draw_sum(frame, sum, view);
    draw_table(frame, table, view);
    if let Some(job) = view.chosen().filter(|_| has_detail).and_then(|at| view.jobs().get(at).copied()) {
        draw_job(frame, chosen, view, job);
    }
    draw_keys(frame, keys, view);
}

fn draw_sum(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let state = view.state();
    let [words, picture] = Layout::vertical([Constraint::Length(1); 2]).areas(area);
    let mut line = vec![Span::from("vellum top  ").bold()];
    line.push(Span::from(jobs_table::summary(state, vellum_report::Style::plain())));
    frame.render_widget(Line::from(line), words);
    let stalls = if state.stalled.is_some() { STALLS.min(area.width / 3) } else { 0 };
    let [gauge, label, history] = Layout::horizontal([
        Constraint::Min(10),
        Constraint::Length(stalls.min(8)),
        Constraint::Length(stalls),
    ])
    .areas(picture);
    let part = part_held(state);
    let colour = if state.squeezed || state.braked { Color::Red } else { Color::Cyan };
    let held = LineGauge::default()
        .ratio(part)
        .label(format!("{:>3.0} %", part * 100.0))
        .filled_style(Style::new().fg(colour))
        .unfilled_style(Style::new().dim());
    frame.render_widget(held, gauge);
    if stalls > 0 {
        frame.render_widget(Line::from(" stalls ").dim(), label);
        // The newest at the right end.
        let newest: Vec<u64> = view
            .history()
            .stalls()
            .rev()
            .take(history.width.into())
            .map(|part| (part * STALL_STEPS) as u64)
            .collect();
        let missing = usize::from(history.width) - newest.len();
        let data = std::iter::repeat_n(0, missing).chain(newest.into_iter().rev());
        let data: Vec<u64> = data.collect();
        let top = data.iter().copied().max().unwrap_or(0).max(STALLS_LEAST);
        let line = Sparkline::default().data(data).max(top);
        frame.render_widget(line.style(Style::new().fg(Color::Red)), history);
    }
}

fn part_held(state: &Snapshot) -> f64 {
    (state.resident_bytes as f64 / state.effective_budget_bytes.max(1) as f64).min(1.0)
}

fn draw_table(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let jobs = view.jobs();
    let columns = fitting(&jobs, area.width);
    let head = columns.iter().map(|(column, _)| {
        let arrow = view.order().filter(|order| order.column == *column);
        let arrow = arrow.map_or("", |order| if order.falls { "▼" } else { "▲" });
        aligned(*column, format!("{}{arrow}", column.head())).bold()
    });
    let rows = jobs.iter().map(|job| {
        let cells = columns.iter().map(|(column, width)| aligned(*column, short(column.cell(job), *width)));
        Row::new(cells).style(match job.state {
            State::Running => Style::new(),
            State::Suspended => Style::new().fg(Color::Yellow),
            State::Waiting | State::Ended => Style::new().dim(),
        })
    });
    let widths = columns.iter().map(|(_, width)| Constraint::Length(*width as u16));
    let table = Table::new(rows, widths)
        .header(Row::new(head).style(Style::new().fg(Color::Cyan)))
        .column_spacing(BETWEEN)
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut chosen = TableState::new().with_selected(view.chosen());
    frame.render_stateful_widget(table, area, &mut chosen);
}

/// The columns that find a place, each with its width. A long name gives way to the usual columns.
fn fitting(jobs: &[&JobSnapshot], width: u16) -> Vec<(Column, usize)> {
    let wide = |column: Column| {
        let longest = jobs.iter().map(|job| column.cell(job).chars().count()).max().unwrap_or(0);
        // One more than the head: the arrow of the order.
        longest.max(column.head().chars().count() + 1)
    };
    let between = usize::from(BETWEEN);
    let others: usize = Column::USUAL.iter().skip(1).map(|column| between + wide(*column)).sum();
    let name_max = usize::from(width).saturating_sub(others).clamp(NAME_MIN, NAME_MAX);
    let mut fitting = Vec::new();
    let mut taken = 0;
    for column in Column::ALL {
        let wide = if column == Column::Job { wide(column).min(name_max) } else { wide(column) };
        taken += wide;
        if taken > usize::from(width) {
            break;
        }
        taken += between;
        fitting.push((column, wide));
    }
    fitting
}

fn aligned(column: Column, text: String) -> Cell<'static> {
    let alignment = if column.is_text() { Alignment::Left } else { Alignment::Right };
    Cell::from(Line::from(text).alignment(alignment))
}

/// A text that is too long ends in a mark.
fn short(text: String, width: usize) -> String {
    if text.chars().count() <= width {
        return text;
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

fn draw_job(frame: &mut Frame<'_>, area: Rect, view: &View, job: &JobSnapshot) {
    let block = Block::new()
        .borders(Borders::TOP)
        .title(format!(" {} ", job.name).bold())
        .border_style(Style::new().dim());
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let [words, _, picture] = Layout::horizontal([
        Constraint::Length(WORDS.min(area.width / 2)),
        Constraint::Length(1),
        Constraint::Min(10),
    ])
    .areas(inner);
    frame.render_widget(Paragraph::new(words_of(job, words.width.into())), words);
    draw_chart(frame, picture, view.history().of(&job.name));
}

/// What is known of a job beside the table, labelled.
fn words_of(job: &JobSnapshot, width: usize) -> Vec<Line<'static>> {
    // A number is not parted from its unit.
    let whole = |text: String| text.replace(' ', "\u{a0}");
    let seconds = |seconds| whole(units::time(Duration::from_secs_f64(seconds)));
    let bytes = |bytes| whole(units::bytes(bytes));
    let mut all: Vec<(&str, String)> = Vec::new();
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
        labels.zip(wrapped_to(text, LABEL + 1, width))
    });
    let line =
        |(label, text)| Line::from(vec![Span::from(format!("{label:<LABEL$} ")).dim(), Span::from(text)]);
    lines.map(line).collect()
}

fn draw_chart<'a>(frame: &mut Frame<'_>, area: Rect, history: impl DoubleEndedIterator<Item = &'a Point>) {
    let points: Vec<&Point> = history.collect();
    let Some((first, last)) = points.first().zip(points.last()) else { return };
    let ago = (last.at_seconds - first.at_seconds).max(1.0);
    let lines: Vec<Vec<(f64, f64)>> = LINES
        .iter()
        .map(|plotted| {
            let known = points
                .iter()
                .filter_map(|point| Some((point.at_seconds - last.at_seconds, (plotted.of)(point)? as f64)));
            known.collect()
        })
        .collect();
    let most = lines.iter().flatten().map(|(_, bytes)| *bytes).fold(1.0, f64::max);
    let sets = LINES.iter().zip(&lines).map(|(plotted, line)| {
        Dataset::default()
            .marker(Marker::Braille)
            .graph_type(GraphType::Line)
            .style(Style::new().fg(plotted.colour))
            .data(line)
    });
    let [names, picture] = Layout::vertical([Constraint::Length(1), Constraint::Min(3)]).areas(area);
    let legend = LINES.iter().map(|line| Span::from(format!("─ {}  ", line.name)).fg(line.colour));
    frame.render_widget(Line::from(legend.collect::<Vec<_>>()), names);
    let time = [format!("-{}", units::time(Duration::from_secs_f64(ago))), "now".to_owned()];
    let bytes = ["0".to_owned(), units::bytes(most as u64)];
    let chart = Chart::new(sets.collect())
        .x_axis(Axis::default().bounds([-ago, 0.0]).labels(time).style(Style::new().dim()))
        .y_axis(Axis::default().bounds([0.0, most * 1.05]).labels(bytes).style(Style::new().dim()));
    frame.render_widget(chart, picture);
}

fn draw_keys(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let mut line = Vec::new();
    for (key, what) in KEYS {
        line.push(Span::from(format!(" {key} ")).reversed());
        line.push(Span::from(format!(" {what}  ")).dim());
    }
    if view.is_paused() {
        line.push(Span::from("paused").fg(Color::Yellow).bold());
    }
    frame.render_widget(Line::from(line), area);
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
    use vellum_governor::Untouched;

    /// Three jobs over some minutes; one of them is chosen.
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

    fn drawn(view: &View, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal of memory");
        terminal.draw(|frame| draw(frame, view)).expect("drawn");
        let buffer = terminal.backend().buffer();
        let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect();
        (0..height).map(line).collect()
    }

    #[test]
    fn a_small_terminal_has_what_matters() {
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
    fn a_wide_terminal_has_all_columns_and_the_order() {
        let mut view = view();
        for code in [KeyCode::Down, KeyCode::Right, KeyCode::Right, KeyCode::Right] {
            assert!(view.obey(KeyEvent::new(code, KeyModifiers::NONE)));
        }
        let lines = drawn(&view, 160, 50);
        let text = lines.join("\n");
        for column in Column::ALL {
            assert!(lines[2].contains(column.head()), "no {} in\n{text}", column.head());
        }
        assert!(lines[2].contains("size▼"), "{text}");
        assert!(text.contains("suspended  2 times"), "the chosen job's: {text}");
    }

    #[test]
    fn no_terminal_is_too_small() {
        for (width, height) in [(1, 1), (5, 3), (20, 6), (79, 17), (40, 24), (300, 18)] {
            drawn(&view(), width, height);
            drawn(&View::default(), width, height);
        }
    }
}
