//! Draws pictures as SVG: layout and shapes.
//!
//! ```text
//!   title
//!   quantity (unit)                  986 of 1,000 observations
//!   12 ┤                                            key
//!    8 ┤        panel                               ■ minor fault 12
//!    4 ┤                                            ◆ preemption 3
//!      └──┬─────┬─────┬──
//!         0   200   400
//!            observation
//!   notes
//! ```
//!
//! Names and keys are beside the data, never on it. All coordinates are whole units, because lines on whole
//! pixels are sharp.

use super::axis::Axis;
use super::palette::{FAINT, GRID, Ink, Rgb, SERIES, TEXT, WHITE};
use super::pen::{Anchor, DOT, Height, Pen};
use super::picture::{Box, Detail, Key, Mark, Panel, Picture, Swatch};
use super::text::{fit, width, wrap};
use std::collections::HashMap;

/// The resolution of the area for data, about two units of the picture a cell, and the number of shapes that
/// keeps files small.
pub(super) const DETAIL: Detail = Detail { columns: 360, rows: 180, bins: 180, shapes_max: Some(3000) };

const WIDE: i32 = 900;
/// The height of the area for data, all panels together: for the first panel, and for each further one.
const FIRST_HIGH: i32 = 360;
const NEXT_HIGH: i32 = 100;
/// The height up to which the area for data grows with the key beside it.
const KEY_FILLED: i32 = 560;
const MARGIN: i32 = 14;
const KEY_WIDE: i32 = 190;
const KEY_LINE: i32 = 19;
const TITLE: f64 = 17.0;
const SMALL: f64 = 12.0;
const NOTE_LINE: i32 = 16;
/// From the top of a panel to its area for data: space for the axis' quantity.
const HEAD: i32 = 24;
/// Space below the last panel, for ticks and the axis' quantity.
const FOOT: i32 = 46;
/// Additional space for names on two lines in turns, so that long neighbours do not touch.
const NAME_LINE: i32 = 15;
/// The least distance from one tick to the next.
const TICK_X: i32 = 90;
const TICK_Y: i32 = 46;
const TICK_LONG: i32 = 4;
/// The least width and height of an area, so that it is visible.
const BOX_MIN: i32 = 2;
/// Bars wider than this have a gap between them.
const BAR_GAP_FROM: i32 = 5;

/// The positions of parts, in units of the picture.
struct Layout {
    width: i32,
    height: i32,
    /// The area for data of each panel, by top and bottom.
    panels: Vec<(i32, i32)>,
    left: i32,
    right: i32,
    notes: Vec<String>,
}

impl Layout {
    fn new(picture: &Picture) -> Self {
        let count = picture.panels.len().max(1) as i32;
        let key = KEY_LINE * picture.key.iter().map(rows).sum::<i32>();
        // Beside a long key there is space for higher panels.
        let high = (FIRST_HIGH + NEXT_HIGH * (count - 1)).max(key.min(KEY_FILLED)) / count;
        let ticks = picture.panels.iter().flat_map(|panel| panel.y.ticks((high / TICK_Y) as usize));
        let widest = ticks.map(|(_, label)| width(&label, SMALL)).fold(0.0, f64::max);
        let left = MARGIN + widest.ceil() as i32 + TICK_LONG + 4;
        let right = WIDE - if picture.key.is_empty() { MARGIN + 10 } else { KEY_WIDE + MARGIN };
        let head = MARGIN + 26;
        let panels: Vec<(i32, i32)> =
            (0..count).map(|n| head + n * (high + HEAD + 10) + HEAD).map(|top| (top, top + high)).collect();
        let room = f64::from(WIDE - 2 * MARGIN);
        let notes = picture.notes.iter().flat_map(|note| wrap(note, room, letters(SMALL)));
        let notes: Vec<String> = notes.collect();
        let foot = FOOT + if picture.x.is_named() { NAME_LINE } else { 0 };
        let bottom = panels.last().map_or(0, |(_, bottom)| *bottom) + foot;
        let height = bottom.max(head + HEAD + key) + NOTE_LINE * notes.len() as i32 + MARGIN;
        Self { width: WIDE, height, panels, left, right, notes }
    }

    fn x(&self, axis: &Axis, value: f64) -> i32 {
        self.left + (axis.place(value) * f64::from(self.right - self.left)).round() as i32
    }
}

/// A part of a page. The page determines the width and background, and, by variables, the colours.
pub(super) fn inline(picture: &Picture) -> String {
    const ROLES: [(Rgb, &str); 7] = [
        (WHITE, "none"),
        (TEXT, "var(--axis)"),
        (FAINT, "var(--axis)"),
        (GRID, "var(--grid)"),
        (SERIES[0], "var(--first)"),
        (SERIES[1], "var(--second)"),
        (SERIES[2], "var(--third)"),
    ];
    let themed = ROLES.iter().fold(svg(picture), |svg, (colour, role)| {
        svg.replace(&format!("\"{colour}\""), &format!("\"{role}\""))
    });
    let body = themed.find("<svg").map_or("", |start| &themed[start..]);
    let (head, rest) = body.split_once('>').unwrap_or((body, ""));
    let view = head.find("viewBox=\"").map_or("", |start| &head[start..]);
    let view = view.match_indices('"').nth(1).map_or("", |(end, _)| &view[..=end]);
    format!("<svg {view} role=\"img\">{rest}")
}

/// The width of a text in letters of this size.
fn letters(size: f64) -> impl Fn(&str) -> f64 {
    move |text| width(text, size)
}

pub(super) fn svg(picture: &Picture) -> String {
    let layout = &Layout::new(picture);
    let mut pen = Pen::new((layout.width, layout.height));
    pen.area((0, 0), (layout.width, layout.height), WHITE);
    let room = f64::from(layout.width - 2 * MARGIN);
    let title = fit(&picture.title, room, letters(TITLE));
    pen.write(&title, (MARGIN, MARGIN), TITLE, TEXT, (Anchor::Start, Height::Top));
    for (panel, (top, bottom)) in picture.panels.iter().zip(&layout.panels) {
        draw_panel(&mut pen, layout, &picture.x, panel, (*top, *bottom));
    }
    let bottom = layout.panels.last().map_or(0, |(_, bottom)| *bottom);
    let centre = (layout.left + layout.right) / 2;
    let below = bottom + 24 + if picture.x.is_named() { NAME_LINE } else { 0 };
    pen.write(&picture.x.title, (centre, below), SMALL, TEXT, (Anchor::Middle, Height::Top));
    let mut y = layout.panels.first().map_or(0, |(top, _)| *top) + 8;
    for key in &picture.key {
        draw_key(&mut pen, key, (layout.right + 24, y));
        y += KEY_LINE * rows(key);
    }
    let first = layout.height - NOTE_LINE * layout.notes.len() as i32 - MARGIN / 2;
    for (row, line) in layout.notes.iter().enumerate() {
        pen.write(line, (MARGIN, first + NOTE_LINE * row as i32), SMALL, FAINT, (Anchor::Start, Height::Top));
    }
    pen.finish()
}

fn draw_panel(pen: &mut Pen, layout: &Layout, x_axis: &Axis, panel: &Panel, (top, bottom): (i32, i32)) {
    let (left, right) = (layout.left, layout.right);
    let x = |value: f64| layout.x(x_axis, value);
    let y = |value: f64| bottom - (panel.y.place(value) * f64::from(bottom - top)).round() as i32;
    let last = layout.panels.last().is_some_and(|(_, last)| *last == bottom);
    for (at, label) in panel.y.ticks(((bottom - top) / TICK_Y) as usize) {
        pen.line((left, y(at)), (right, y(at)), GRID);
        pen.line((left - TICK_LONG, y(at)), (left, y(at)), TEXT);
        pen.write(&label, (left - TICK_LONG - 4, y(at)), SMALL, TEXT, (Anchor::End, Height::Centre));
    }
    for (turn, (at, label)) in x_axis.ticks(((right - left) / TICK_X) as usize).into_iter().enumerate() {
        let line = if x_axis.is_named() { NAME_LINE * (turn as i32 % 2) } else { 0 };
        pen.line((x(at), top), (x(at), bottom), GRID);
        pen.line((x(at), bottom), (x(at), bottom + TICK_LONG), TEXT);
        if last {
            let below = bottom + TICK_LONG + 4 + line;
            pen.write(&label, (x(at), below), SMALL, TEXT, (Anchor::Middle, Height::Top));
        }
    }
    let mut tops = HashMap::new();
    for mark in &panel.marks {
        draw_mark(pen, mark, (&x, &y), (left, right), &mut tops);
    }
    // The axes are drawn over the lower edge of the data, so that they look straight.
    pen.line((left, top), (left, bottom), TEXT);
    pen.line((left, bottom), (right, bottom), TEXT);
    let (start, head) = ((MARGIN, top - 14), (Anchor::Start, Height::Centre));
    let remark = width(&panel.remark, SMALL);
    pen.write(&panel.remark, (right, top - 14), SMALL, FAINT, (Anchor::End, Height::Centre));
    let room = f64::from(right - MARGIN) - remark - 20.0;
    pen.write(&panel.head(room, letters(SMALL)), start, SMALL, TEXT, head);
}

/// Draws a mark at the positions from `x` and `y`; rules reach from `left` to `right`. `tops` are the tops of
/// the bars drawn so far, by their left edge.
fn draw_mark(
    pen: &mut Pen,
    mark: &Mark,
    (x, y): (&impl Fn(f64) -> i32, &impl Fn(f64) -> i32),
    (left, right): (i32, i32),
    tops: &mut HashMap<i32, i32>,
) {
    match mark {
        Mark::Dots(ink, points) => {
            for (at_x, at_y) in points {
                pen.dot(*ink, (x(*at_x), y(*at_y)));
            }
        }
        Mark::Bars(ink, bars) => {
            for Box { left, right, low, high } in bars {
                let (left, right) = (x(*left), x(*right));
                // A box that was raised to be visible also raises the boxes on top of it, which would
                // otherwise cover it.
                let foot = tops.get(&left).map_or(y(*low), |top| y(*low).min(*top));
                let top = y(*high).min(foot - BOX_MIN);
                // Bars that are wide enough have a gap.
                let gap = i32::from(right - left > BAR_GAP_FROM);
                pen.area((left, top), ((right - gap).max(left + BOX_MIN), foot), ink.colour());
                tops.insert(left, top);
            }
        }
        Mark::Crowds(ink, boxes) => {
            for Box { left, right, low, high } in boxes {
                let (left, foot) = (x(*left), y(*low));
                let from = (left, y(*high).min(foot - BOX_MIN));
                pen.area(from, (x(*right).max(left + BOX_MIN), foot), ink.colour());
            }
        }
        Mark::Runs(ink, runs) => {
            for run in runs {
                let (middle, high, low) = (x((run.left + run.right) / 2.0), y(run.high), y(run.low));
                pen.area((middle - 1, high), (middle + 1, low.max(high + 1)), ink.colour());
                pen.dot(*ink, (middle, high));
                if low - high > DOT {
                    pen.dot(*ink, (middle, low));
                }
            }
        }
        Mark::Path { ink, points, .. } => {
            let points = points.iter().map(|(at_x, at_y)| (x(*at_x), y(*at_y)));
            pen.path(&points.collect::<Vec<_>>(), ink.colour(), 2);
        }
        Mark::Rule(ink, level) => {
            let wide = if *ink == Ink::Zero { 1 } else { 2 };
            pen.path(&[(left, y(*level)), (right, y(*level))], ink.colour(), wide);
        }
    }
}

/// The width for a key's text.
const KEY_ROOM: f64 = (KEY_WIDE - 24 - 24) as f64;

/// A key's label in lines that fit beside the data.
fn label_lines(key: &Key) -> Vec<String> {
    wrap(&key.label, KEY_ROOM, letters(SMALL))
}

/// The number of lines of a key.
fn rows(key: &Key) -> i32 {
    (label_lines(key).len().max(1) + key.details.len()) as i32
}

fn draw_key(pen: &mut Pen, key: &Key, (left, y): (i32, i32)) {
    match key.swatch {
        Swatch::Area(ink) => pen.area((left + 3, y - 5), (left + 13, y + 5), ink.colour()),
        Swatch::Dot(ink) => pen.dot(ink, (left + 8, y)),
        Swatch::Line(ink, _) => pen.path(&[(left, y), (left + 16, y)], ink.colour(), 2),
    }
    let place = (Anchor::Start, Height::Centre);
    let labels = label_lines(key);
    let below = rows(key) as usize - key.details.len();
    for (row, line) in labels.iter().enumerate() {
        let y = y + KEY_LINE * row as i32;
        pen.write(&fit(line, KEY_ROOM, letters(SMALL)), (left + 24, y), SMALL, TEXT, place);
    }
    for (row, detail) in key.details.iter().enumerate() {
        let y = y + KEY_LINE * (below + row) as i32;
        pen.write(&fit(detail, KEY_ROOM, letters(SMALL)), (left + 24, y), SMALL, FAINT, place);
    }
}
