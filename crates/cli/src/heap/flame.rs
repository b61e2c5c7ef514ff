//! Draws a heap profile as a flame graph: an SVG file or a part of the HTML page. Each function is a box
//! below the boxes of the functions that it called; the width shows the bytes held.
//!
//! Each box has a title, which browsers show under the pointer. Boxes narrower than [`WIDTH_MIN`] are left
//! out, because deep stacks that hold little would make the picture tall.

use super::args::When;
use super::observed::{Observed, names};
use super::tree::Node;
use crate::text::shown_command;
use std::fmt::Write;
use vellum_report::escape;
use vellum_report::table::shortened;
use vellum_report::units::bytes;

/// The picture's width, the height of a box, and the margin.
const WIDTH: f64 = 1200.0;
const ROW: f64 = 17.0;
const MARGIN: f64 = 10.0;
/// Room for the heading.
const HEADING: f64 = 40.0;
/// The smallest width of a box, and of a box with a text.
const WIDTH_MIN: f64 = 3.0;
const TEXT_WIDTH_MIN: f64 = 24.0;
/// The approximate width of a letter.
const LETTER: f64 = 6.6;

/// The number of rows of the boxes drawn for a function and its callees.
fn rows(node: &Node<'_>, scale: f64) -> usize {
    let drawn = node.next.values().filter(|callee| callee.amount.bytes as f64 * scale >= WIDTH_MIN);
    1 + drawn.map(|callee| rows(callee, scale)).max().unwrap_or(0)
}

fn colour(name: &str) -> String {
    let hash = name.bytes().fold(0u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(u32::from(byte)));
    format!("hsl({},{}%,{}%)", 8 + hash % 42, 70 + hash / 64 % 20, 62 + hash / 4096 % 12)
}

struct Drawing {
    svg: String,
    scale: f64,
    whole: u64,
    bottom: f64,
}

impl Drawing {
    fn draw(&mut self, name: &str, node: &Node<'_>, left: f64, depth: usize) {
        let width = node.amount.bytes as f64 * self.scale;
        if width < WIDTH_MIN {
            return;
        }
        let top = self.bottom - ROW * (depth + 1) as f64;
        let share = node.amount.bytes as f64 / self.whole.max(1) as f64 * 100.0;
        let _ = write!(
            self.svg,
            "<g><title>{}: {} ({share:.1} %)</title><rect x=\"{left:.1}\" y=\"{top:.1}\" \
             width=\"{width:.1}\" height=\"{:.1}\" rx=\"2\" fill=\"{}\"/>",
            escape(&name.replace(char::is_control, "?")),
            bytes(node.amount.bytes),
            ROW - 1.0,
            colour(name)
        );
        if width >= TEXT_WIDTH_MIN {
            let letters = ((width - 6.0) / LETTER) as usize;
            let short = shortened(name, letters);
            let _ = write!(
                self.svg,
                "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                left + 3.0,
                top + 12.0,
                escape(&short.replace(char::is_control, "?"))
            );
        }
        self.svg.push_str("</g>\n");
        let mut at = left;
        for (name, callee) in &node.next {
            self.draw(name, callee, at, depth + 1);
            at += callee.amount.bytes as f64 * self.scale;
        }
    }
}

/// The boxes of the memory held at `when`, below `heading`; the total bytes, and the height.
fn boxes(observed: &Observed, when: When, heading: f64) -> (String, u64, f64) {
    let mut root = Node::default();
    for stack in &observed.stacks {
        root.add(names(stack), when.of(&stack.holding));
    }
    let scale = (WIDTH - 2.0 * MARGIN) / root.amount.bytes.max(1) as f64;
    let height = heading + ROW * rows(&root, scale) as f64 + MARGIN;
    let mut drawing =
        Drawing { svg: String::new(), scale, whole: root.amount.bytes, bottom: height - MARGIN };
    drawing.draw("all", &root, MARGIN, 0);
    (drawing.svg, root.amount.bytes, height)
}

pub(crate) fn render(observed: &Observed, when: When) -> String {
    let (boxes, whole, height) = boxes(observed, when, HEADING);
    let heading = format!("{}: {}, {}", shown_command(&observed.command), when.words(), bytes(whole));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\">\n<style>text{{font:11px monospace}}\
         g:hover>rect{{stroke:#000}}</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"{MARGIN}\" y=\"24\" style=\"font-size:14px\">{}</text>\n{boxes}</svg>\n",
        escape(&heading)
    )
}

/// The picture as a part of an HTML page, whose style sheet defines the class `flame`.
pub(super) fn inline(observed: &Observed, when: When) -> String {
    let (boxes, _, height) = boxes(observed, when, MARGIN);
    format!("<svg class=\"flame\" viewBox=\"0 0 {WIDTH} {height}\">\n{boxes}</svg>\n")
}
