//! Writes a report as one self-contained HTML page without scripts, fonts or images. The page can be mailed,
//! archived and opened without a network. Its light or dark colours follow the reader's system.
//!
//! The notes of a section come first. Rows of figures are drawn as tiles, and rows of words as a list.

use super::figure::{Content, Row};
use super::{Item, Report, Section};
use crate::escape;

const STYLE: &str = include_str!("page.css");

pub(super) fn write(report: &Report<'_>) -> String {
    let head = report.head.clone().unwrap_or_default();
    let [name, subject, of, ending, footer] =
        [head.name, head.subject, &*head.of, &*head.ending, &*head.footer].map(escape);
    let sections: String = report.sections.iter().map(section).collect();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{of}: {subject}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <header>\n<p class=\"kicker\">{name} &middot; {subject}</p>\n<h1><code>{of}</code></h1>\n\
         <p class=\"ending\">{ending}</p>\n</header>\n{sections}\
         <footer>vellum {} &middot; {footer}</footer>\n</main>\n</body>\n</html>\n",
        env!("CARGO_PKG_VERSION"),
    )
}

/// The list that holds an item and its neighbours of the same kind.
fn list(item: &Item) -> [&'static str; 2] {
    match item {
        Item::Row(row) if row.is_note => ["<ul class=\"notes\">\n", "</ul>\n"],
        Item::Row(Row { content: Content::Cells(_), .. }) => ["<div class=\"tiles\">\n", "</div>\n"],
        Item::Row(_) => ["<dl>\n", "</dl>\n"],
        _ => [""; 2],
    }
}

fn section(section: &Section) -> String {
    let mut items: Vec<&Item> = section.items.iter().map(|(_, item)| item).collect();
    if items.is_empty() {
        return String::new();
    }
    items.sort_by_key(|item| !matches!(item, Item::Row(row) if row.is_note));
    let title = escape(&section.title);
    let title = if title.is_empty() { title } else { format!("<h2>{title}</h2>\n") };
    let lists = items.chunk_by(|one, next| list(one) == list(next)).map(|items| {
        let [open, close] = list(items[0]);
        let items: String = items.iter().map(|item| of_item(item)).collect();
        format!("{open}{items}{close}")
    });
    format!("<section>\n{title}{}</section>\n", lists.collect::<String>())
}

fn of_item(item: &Item) -> String {
    match item {
        Item::Row(row) => of_row(row),
        Item::Sentence(words) | Item::Remark(words) => format!("<p class=\"none\">{}</p>\n", escape(words)),
        Item::Verdict(words) => format!("<p><strong>{}</strong></p>\n", escape(words)),
        Item::Table(table) => table.html(),
        Item::Chart(chart, _) => format!("<figure>\n{}</figure>\n", chart.inline()),
        Item::Picture(svg) => format!("<figure>\n{svg}</figure>\n"),
        Item::Lines(lines) => format!("<pre>{}</pre>\n", escape(lines)),
    }
}

fn of_row(row: &Row) -> String {
    let label = escape(&row.label);
    match &row.content {
        Content::Words(words) if row.is_note => format!("<li>{}</li>\n", escape(words)),
        Content::Words(words) => {
            let state = row.state.map_or_else(String::new, |(word, _)| format!("{word}: "));
            format!("<div><dt>{label}</dt><dd>{state}{}</dd></div>\n", escape(words))
        }
        Content::Table(table) => format!("<div><dt>{label}</dt><dd>{}</dd></div>\n", table.html()),
        Content::Cells(_) => {
            let cells = row.cells();
            let (first, rest) = cells.split_first().map_or(("", &[][..]), |(first, rest)| (first, rest));
            format!(
                "<div><h2>{label}</h2><p>{}</p><small>{}</small></div>\n",
                escape(first),
                escape(&rest.join(", "))
            )
        }
    }
}
