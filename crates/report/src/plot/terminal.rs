//! Draws pictures in a terminal.
//!
//! ```text
//!   title
//!   time (µs)                986 of 1,000 observations
//!    12 ┤     f
//!     8 ┤⠂⠁⠄⠂⠁⠄⠂⠄⠂⠂⠁⠄⠂⠁⠄⠂⠄⠂⠂⠁⠄⠂⠁⠄⠂⠄⠂                  observations are braille dots, causes are letters
//!     4 ┤
//!       └┬──────┬──────┬──────
//!        0     200    400
//!               observation
//!   f minor fault 1
//!   notes
//! ```
//!
//! Letters name the causes with or without colour. Every observation is drawn, as dots do not enlarge the
//! output.

use super::axis::Axis;
use super::canvas::Canvas;
use super::palette::{CLASSES, Ink, class, letter};
use super::picture::{Box, Key, Mark, Panel, Picture, Swatch};
use super::text::{fit, wrap};
use unicode_width::UnicodeWidthStr;
use vellum_measure::Cause;

/// The least rows for the data of a panel. With many panels, a picture may exceed the requested height.
const ROWS_MIN: usize = 2;
/// With fewer rows for data than this, notes are dropped.
const ROWS_GOOD: usize = 5;
/// The least number of cells from one tick to the next.
const TICK_X: usize = 14;
const TICK_Y: usize = 3;
/// The least columns of a name before its details.
const NAME_MIN: usize = 12;
/// The sign at the right end of a level.
const LEVEL: char = '◂';
const ZERO: char = '╌';

pub(super) fn columns(text: &str) -> usize {
    text.width()
}

fn wide(text: &str) -> f64 {
    columns(text) as f64
}

/// The least number of columns left for data, which limits the bins.
pub(super) fn data_columns(width: usize) -> usize {
    // The space for labels of ticks, such as "1,234,567 ┤".
    width.saturating_sub(12)
}

pub(super) fn draw(picture: &Picture, (width, height): (usize, usize), colour: bool) -> String {
    let panels = picture.panels.len().max(1);
    let key = key_lines(&picture.key, width, colour);
    let notes = picture.notes.iter().flat_map(|note| wrap(note, width as f64, wide));
    let mut notes: Vec<String> = notes.map(|line| fit(&line, width as f64, wide)).collect();
    // Title, a head for each panel, axis, ticks and the axis' quantity.
    let fixed = 1 + panels + 3;
    let left = height.saturating_sub(fixed + key.len());
    let room = left.saturating_sub(ROWS_GOOD * panels);
    if notes.len() > room {
        notes.truncate(room);
        if let Some(last) = notes.last_mut() {
            *last = fit(&format!("{last} …"), width as f64, wide);
        }
    }
    let rows = (left.saturating_sub(notes.len()) / panels).max(ROWS_MIN);
    let y_ticks = (rows / TICK_Y).max(1);
    let labels = picture.panels.iter().flat_map(|panel| panel.y.ticks(y_ticks));
    let gutter = labels.map(|(_, label)| columns(&label)).max().unwrap_or(0) + 1;
    // One column at the right is for marks of levels.
    let across = width.saturating_sub(gutter + 2).max(1);
    let mut lines = vec![strong(&fit(&picture.title, width as f64, wide), colour)];
    for panel in &picture.panels {
        lines.push(head(panel, width));
        lines.extend(panel_lines(picture, panel, (gutter, across, rows), colour));
    }
    lines.extend(x_lines(&picture.x, gutter, across));
    lines.extend(key);
    lines.extend(notes);
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

fn strong(text: &str, colour: bool) -> String {
    if colour { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
}

/// A panel's quantity at the left, its count at the right.
fn head(panel: &Panel, width: usize) -> String {
    let room = width.saturating_sub(columns(&panel.remark) + 2);
    let title = panel.head(room as f64, wide);
    let gap = width.saturating_sub(columns(&title) + columns(&panel.remark));
    format!("{title}{}{}", " ".repeat(gap), panel.remark)
}

fn panel_lines(
    picture: &Picture,
    panel: &Panel,
    (gutter, across, rows): (usize, usize, usize),
    colour: bool,
) -> Vec<String> {
    let mut canvas = Canvas::new(across, rows);
    draw_marks(&mut canvas, &panel.marks, (&picture.x, &panel.y), colour);
    let row_of = |value| canvas.cell((0.0, panel.y.place(value))).map(|(_, row)| row);
    let ticks = panel.y.ticks((rows / TICK_Y).max(1)).into_iter();
    let ticks: Vec<(usize, String)> = ticks.filter_map(|(at, label)| Some((row_of(at)?, label))).collect();
    // Levels are marked to the right of the data.
    let level = |mark: &Mark| if let Mark::Rule(Ink::Level, at) = mark { row_of(*at) } else { None };
    let levels: Vec<usize> = panel.marks.iter().filter_map(level).collect();
    let drawn = canvas.rows(colour).into_iter().enumerate();
    drawn
        .map(|(row, data)| {
            let label = ticks.iter().find(|(at, _)| *at == row).map(|(_, label)| label.as_str());
            let pad = " ".repeat((gutter - 1).saturating_sub(label.map_or(0, columns)));
            let axis = if label.is_some() { '┤' } else { '│' };
            let gap = across - canvas.used(row);
            let tail = if levels.contains(&row) { format!("{:gap$}{LEVEL}", "") } else { String::new() };
            format!("{pad}{} {axis}{data}{tail}", label.unwrap_or_default())
        })
        .collect()
}

/// Draws areas first, then curves, observations, the curves' signs, and lines in cells that are still empty.
fn draw_marks(canvas: &mut Canvas, marks: &[Mark], (x, y): (&Axis, &Axis), colour: bool) {
    let place = |(at_x, at_y): &(f64, f64)| (x.place(*at_x), y.place(*at_y));
    for mark in marks {
        match mark {
            Mark::Bars(ink, bars) => draw_bars(canvas, *ink, bars, (x, y), colour),
            Mark::Crowds(ink, boxes) | Mark::Runs(ink, boxes) => {
                for Box { left, right, low, high } in boxes {
                    let middle = (left + right) / 2.0;
                    canvas.line(place(&(middle, *low)), place(&(middle, *high)), *ink);
                }
            }
            Mark::Path { ink, points, .. } => {
                for pair in points.windows(2) {
                    canvas.line(place(&pair[0]), place(&pair[1]), *ink);
                }
            }
            Mark::Dots(..) | Mark::Rule(..) => {}
        }
    }
    let dots = marks
        .iter()
        .filter_map(|mark| if let Mark::Dots(ink, points) = mark { Some((*ink, points)) } else { None });
    let dots = dots.flat_map(|(ink, points)| points.iter().map(move |point| (ink, place(point))));
    draw_dots(canvas, dots);
    for mark in marks {
        match mark {
            Mark::Path { ink, points, sign: Some(sign) } => {
                // The sign stands where the curve passes its quartiles.
                for level in [0.25, 0.5, 0.75] {
                    let at = points.iter().map(place).find(|(_, share)| *share >= level);
                    if let Some(cell) = at.and_then(|(at, _)| canvas.cell((at, level))) {
                        canvas.put(cell, *sign, *ink);
                    }
                }
            }
            Mark::Rule(ink @ Ink::Zero, level) => {
                let Some((_, row)) = canvas.cell((0.0, y.place(*level))) else { continue };
                for column in 0..canvas.width {
                    if canvas.is_free((column, row)) {
                        canvas.put((column, row), ZERO, *ink);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Draws observations as dots. If most of those in a cell have one cause, its letter replaces the dots.
fn draw_dots(canvas: &mut Canvas, dots: impl Iterator<Item = (Ink, (f64, f64))>) {
    let mut counts = vec![[0u32; CLASSES]; canvas.width * canvas.height];
    for (ink, place) in dots {
        let Some((column, row)) = canvas.cell(place) else { continue };
        let cause = if let Ink::Cause(cause) = ink { Some(cause) } else { None };
        counts[row * canvas.width + column][class(cause)] += 1;
        canvas.dot(place, Ink::Series(0));
    }
    for (cell, counts) in counts.iter().enumerate() {
        let most = Cause::ALL.into_iter().max_by_key(|cause| counts[class(Some(*cause))]);
        let prevails = |cause: &Cause| counts[class(Some(*cause))] >= counts[0].max(1);
        if let Some(cause) = most.filter(prevails) {
            canvas.put((cell % canvas.width, cell / canvas.width), letter(cause), Ink::Cause(cause));
        }
    }
}

/// Draws bars that stand on zero or on each other. If several share a column of cells, the highest is
/// visible.
fn draw_bars(canvas: &mut Canvas, ink: Ink, boxes: &[Box], (x, y): (&Axis, &Axis), colour: bool) {
    let sign = match ink {
        Ink::Cause(cause) if !colour => Some(letter(cause)),
        _ => None,
    };
    let eighths = |value: f64| (y.place(value) * 8.0 * canvas.height as f64).round() as usize;
    let heights: Vec<(usize, usize)> =
        boxes.iter().map(|one| (eighths(one.low), eighths(one.high))).collect();
    let wide = canvas.width as f64;
    let mut columns: Vec<Option<(usize, usize)>> = vec![None; canvas.width];
    for (one, (low, high)) in boxes.iter().zip(heights) {
        let first = (x.place(one.left) * wide).round() as usize;
        let end = ((x.place(one.right) * wide).round() as usize).max(first + 1);
        for column in columns.iter_mut().take(end).skip(first) {
            if column.is_none_or(|(_, highest)| high > highest) {
                *column = Some((low, high.max(low + 1)));
            }
        }
    }
    for (column, heights) in columns.into_iter().enumerate() {
        if let Some(heights) = heights {
            canvas.bar(column, heights, sign, ink);
        }
    }
}

/// The horizontal axis, its labels, and its quantity.
fn x_lines(x: &Axis, gutter: usize, across: usize) -> [String; 3] {
    let mut axis: Vec<char> = vec!['─'; across];
    let mut labels = String::new();
    for (at, label) in x.ticks((across / TICK_X).max(1)) {
        let column = (x.place(at) * across.saturating_sub(1) as f64).round() as usize;
        let start = (gutter + 1 + column).saturating_sub(columns(&label) / 2);
        let start = start.min((gutter + 2 + across).saturating_sub(columns(&label)));
        let free = columns(&labels) + usize::from(!labels.is_empty()) * 2;
        if column < across && start >= free {
            axis[column] = '┬';
            labels.push_str(&" ".repeat(start - columns(&labels)));
            labels.push_str(&label);
        }
    }
    let title = fit(&x.title, across as f64, wide);
    let indent = gutter + 1 + (across - columns(&title)) / 2;
    let axis: String = axis.into_iter().collect();
    [format!("{}└{axis}", " ".repeat(gutter)), labels, format!("{}{title}", " ".repeat(indent))]
}

/// The keys side by side, as many as fit in a line; a key with details has its own line.
fn key_lines(key: &[Key], width: usize, colour: bool) -> Vec<String> {
    const GAP: &str = "   ";
    let room = width.saturating_sub(2) as f64;
    let mut lines: Vec<String> = Vec::new();
    // Columns left on the last line for a key without details.
    let mut free = 0;
    for entry in key {
        let (sign, ink) = match entry.swatch {
            Swatch::Dot(ink @ Ink::Cause(cause)) | Swatch::Area(ink @ Ink::Cause(cause)) => {
                (letter(cause).to_string(), ink)
            }
            Swatch::Dot(ink) | Swatch::Area(ink) => ("■".to_owned(), ink),
            Swatch::Line(Ink::Level, _) => (LEVEL.to_string(), Ink::Level),
            Swatch::Line(ink, sign) => (sign.map_or("─".to_owned(), String::from), ink),
        };
        let sign = if colour { format!("\x1b[38;5;{}m{sign}\x1b[0m", ink.terminal()) } else { sign };
        if entry.details.is_empty() {
            let text = fit(&entry.label, room, wide);
            let long = columns(&text) + 2;
            match lines.last_mut() {
                Some(line) if GAP.len() + long <= free => {
                    line.push_str(&format!("{GAP}{sign} {text}"));
                    free -= GAP.len() + long;
                }
                _ => {
                    lines.push(format!("{sign} {text}"));
                    free = width.saturating_sub(long);
                }
            }
        } else {
            // The last details are dropped before a name is shortened; the first details never are.
            let short = columns(&entry.label).min(NAME_MIN);
            let mut details = entry.details.as_slice();
            let joined = |details: &[String]| format!(": {}", details.join(", "));
            while details.len() > 1 && short + columns(&joined(details)) + 2 > width {
                details = &details[..details.len() - 1];
            }
            let details = joined(details);
            let label = fit(&entry.label, room - wide(&details), wide);
            lines.push(format!("{sign} {}", fit(&format!("{label}{details}"), room, wide)));
            free = 0;
        }
    }
    lines
}
