//! A report as one HTML page: the frame around its sections, and their building blocks.
//!
//! Self-contained: no script, no font, no image, nothing fetched. It can be mailed, archived and opened
//! without a network. Light and dark follow the reader's system. `run::page` and `heap::page` write the
//! sections.

use crate::outcome::Outcome;
use crate::text::{ending, shown_command};
use std::fmt::Write;
use vellum_report::escape;
use vellum_report::plot::Chart;

const STYLE: &str = include_str!("page.css");

/// What stands at a page's ends, around its sections.
#[derive(Debug)]
pub(crate) struct Page<'a> {
    /// Which subcommand made it.
    pub(crate) made_by: &'static str,
    /// What it is about, for the window's title.
    pub(crate) subject: &'static str,
    pub(crate) command: &'a [String],
    pub(crate) outcome: &'a Outcome,
    /// What else to know about it, behind the version.
    pub(crate) footer: &'a str,
}

impl Page<'_> {
    /// The page around these sections.
    pub(crate) fn html(&self, sections: &str) -> String {
        let command = escape(&shown_command(self.command));
        let Page { made_by, subject, .. } = self;
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{command}: {subject}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
             <header>\n<p class=\"kicker\">{made_by}</p>\n<h1><code>{command}</code></h1>\n\
             <p class=\"ending\">{}</p>\n</header>\n{sections}\
             <footer>vellum {} &middot; {}</footer>\n</main>\n</body>\n</html>\n",
            escape(&ending(self.outcome)),
            env!("CARGO_PKG_VERSION"),
            escape(self.footer)
        )
    }
}

/// Figures in a row of tiles: a name, the figure, and a detail.
pub(crate) fn tiles(tiles: &[(&str, String, String)]) -> String {
    let mut html = "<section class=\"tiles\">\n".to_owned();
    for (name, value, detail) in tiles {
        let _ = writeln!(
            html,
            "<div><h2>{}</h2><p>{}</p><small>{}</small></div>",
            escape(name),
            escape(value),
            escape(detail)
        );
    }
    html + "</section>\n"
}

/// Things to know before the figures; nothing where there are none.
pub(crate) fn notes(notes: &[String]) -> String {
    if notes.is_empty() {
        return String::new();
    }
    let items: String = notes.iter().map(|note| format!("<li>{}</li>\n", escape(note))).collect();
    format!("<ul class=\"notes\">\n{items}</ul>\n")
}

/// A part of the page under a title.
pub(crate) fn section(title: &str, content: &str) -> String {
    format!("<section>\n<h2>{}</h2>\n{content}</section>\n", escape(title))
}

/// A remark below a table, or in its place.
pub(crate) fn remark(words: &str) -> String {
    format!("<p class=\"none\">{}</p>\n", escape(words))
}

pub(crate) fn figure(chart: &Chart) -> String {
    format!("<figure>\n{}</figure>\n", chart.inline())
}
