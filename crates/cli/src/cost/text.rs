//! The annotated source: under each line its memory operations.
//!
//! ```text
//! -- list.c
//!    12  struct node *add(struct node *head) {
//!    13      struct node *n = malloc(sizeof *n);
//!   - malloc(≤64 B)                  100,000  3.81 MiB ~11.2 ns     0 ns  41.3 µs   131 ns
//!         timed 3,912
//!   - page fault                         391
//! ```
//!
//! The columns are those of the paper, operation, count, mean, smallest, largest, standard deviation, and
//! bytes. The deviation is left out where a line is short. A `~`
//! marks a figure of only some of the operations; their number follows, on the same line where that is wide
//! enough. Nothing is wider than the terminal: long names and lines of source are cut.
//!
//! Source: Bates, section "Costing".

use super::closing::closing;
use super::group::Group;
use super::observed::Observed;
use super::summary::{Wanted, dearest};
use super::words::{bytes_column, label, times_columns};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vellum_report::Style;
use vellum_report::table::{columns, shortened};
use vellum_report::units::count;

use vellum_cost::{Item, Place};
use vellum_wire::operation::Operation;

/// Lines shown around one that has operations.
const CONTEXT: u32 = 2;
/// Files larger than this are not read for their lines.
const SOURCE_BYTES_MAX: u64 = 32 << 20;
/// Libraries and places without a source line that are listed.
const PLACES_MAX: usize = 20;
/// The least share of all costs that such a place is listed for.
const SHARE_MIN: f64 = 0.01;
/// Width of line numbers.
const NUMBER_WIDTH: usize = 6;
/// What stands before an operation's name.
const MARK: &str = "  - ";
/// Width of an operation's name at most, and of the shortest that is worth reading.
const NAME_WIDTH: usize = 40;
const NAME_MIN: usize = 12;
/// Width of a count, of bytes, and of a time with its mark, each with the gap before it.
const COUNT_WIDTH: usize = 12;
const BYTES_WIDTH: usize = 10;
const TIME_WIDTH: usize = 9;
/// Width of all figures but the deviation.
const FIGURES_WIDTH: usize = COUNT_WIDTH + BYTES_WIDTH + 3 * TIME_WIDTH;
/// The narrowest lines that have the deviation.
const WITH_DEVIATION: usize = 90;
/// What stands between the figures and what is said of them.
const GAP: usize = 3;

/// The whole report, in lines of at most `width` columns.
pub(crate) fn render(observed: &Observed, only: &[PathBuf], style: Style, width: usize) -> String {
    let page = Page { style, width };
    let mut files: BTreeMap<&Arc<str>, Source<'_>> = BTreeMap::new();
    let mut places: BTreeMap<String, Rows<'_>> = BTreeMap::new();
    let wanted = |file: &str| only.is_empty() || only.iter().any(|only| Path::new(file).ends_with(only));
    for item in &observed.profile.items {
        let cost_ns = observed.cost_ns(item);
        let library = observed.profile.library(&item.cause.place);
        let via = item.cause.via.as_deref();
        let place = match (&item.cause.place, &library) {
            (Place::Line { file, line, .. }, _) if !only.is_empty() || library.is_none() => {
                let source =
                    files.entry(file).or_insert_with(|| Source { text: read(file), ..Source::default() });
                if !only.is_empty() || source.text.is_some() {
                    source.cost_ns += cost_ns;
                    let rows = source.lines.entry(*line).or_default();
                    rows.entry((via, item.operation)).or_default().add(item, cost_ns);
                    continue;
                }
                format!("{file} (its text is not here)")
            }
            (_, Some(library)) => library.to_string(),
            (place, None) => place.to_string(),
        };
        // Of a library there are as many ways as instructions.
        let way = (via.filter(|_| library.is_none()), item.operation);
        places.entry(place).or_default().entry(way).or_default().add(item, cost_ns);
    }
    let of_wanted = |item: &Item| matches!(&item.cause.place, Place::Line { file, .. } if wanted(file));
    let wanted_lines: Wanted<'_> = if only.is_empty() { None } else { Some(&of_wanted) };
    let mut text = String::new();
    if observed.profile.items.iter().any(|item| only.is_empty() || of_wanted(item)) {
        text.push_str(&dearest(observed, wanted_lines, (style, width)));
        text.push_str(&page.header());
    }
    let mut shown: Vec<_> =
        files.iter().filter(|(file, source)| wanted(file) && !source.lines.is_empty()).collect();
    shown.sort_by(|(_, a), (_, b)| b.cost_ns.total_cmp(&a.cost_ns));
    for (file, source) in shown {
        page.source(&mut text, file, source, observed.newer.get(&**file).map(PathBuf::as_path));
    }
    if only.is_empty() && !places.is_empty() {
        page.without_lines(&mut text, observed, places);
    }
    for only in only.iter().filter(|only| !files.keys().any(|file| Path::new(&***file).ends_with(only))) {
        let there: Vec<&str> = files.keys().map(|file| &***file).collect();
        let _ =
            writeln!(text, "no operations in {}; there are some in: {}", only.display(), there.join(", "));
    }
    text.push_str(&closing(observed, style, width));
    text
}

/// What a place called, and its operations.
type Rows<'a> = BTreeMap<(Option<&'a str>, Operation), Group>;

/// A source file with operations.
#[derive(Default)]
struct Source<'a> {
    text: Option<String>,
    lines: BTreeMap<u32, Rows<'a>>,
    cost_ns: f64,
}

/// How the report looks.
#[derive(Clone, Copy)]
struct Page {
    style: Style,
    width: usize,
}

impl Page {
    /// Width of operations' names.
    fn name_width(self) -> usize {
        let deviation = if self.has_deviation() { TIME_WIDTH } else { 0 };
        self.width.saturating_sub(MARK.len() + FIGURES_WIDTH + deviation).clamp(NAME_MIN, NAME_WIDTH)
    }

    fn has_deviation(self) -> bool {
        self.width >= WITH_DEVIATION
    }

    /// A count, bytes and times, each in its column.
    fn figures(self, count: &str, bytes: &str, times: &[String]) -> String {
        let shown = if self.has_deviation() { times.len() } else { times.len().min(3) };
        let times: String = times[..shown].iter().map(|time| format!("{time:>TIME_WIDTH$}")).collect();
        format!("{count:>COUNT_WIDTH$}{bytes:>BYTES_WIDTH$}{times}").trim_end().to_owned()
    }

    fn header(self) -> String {
        let name =
            format!("{:indent$}{:<wide$}", "", "operation", indent = MARK.len(), wide = self.name_width());
        let heads = ["mean", "min", "max", "std"].map(str::to_owned);
        self.style.label(&format!("{name}{}", self.figures("count", "bytes", &heads))) + "\n"
    }

    /// One file's lines, with their operations; the module is named if the file was changed after the module
    /// was built.
    fn source(self, text: &mut String, file: &str, source: &Source<'_>, newer_than: Option<&Path>) {
        let _ = writeln!(text, "\n{}", self.style.bold(&format!("-- {file}")));
        if let Some(module) = newer_than {
            let _ = writeln!(text, "    (newer than {}: lines may have moved)", module.display());
        }
        let Source { text: contents, lines, .. } = source;
        if contents.is_none() {
            text.push_str("    (the source is not here: line numbers only)\n");
        }
        let there: Vec<&str> = contents.iter().flat_map(|contents| contents.lines()).collect();
        let mut shown = 0;
        for (&number, rows) in lines {
            let from = number.saturating_sub(CONTEXT).max(shown + 1);
            if shown > 0 && from > shown + 1 {
                let _ = writeln!(text, "{:>NUMBER_WIDTH$}", "...");
            }
            let until = lines
                .range(number + 1..)
                .next()
                .map_or(number + CONTEXT, |(next, _)| (next - 1).min(number + CONTEXT));
            for line in from..=until.max(number) {
                if let Some(words) = there.get(line as usize - 1) {
                    let _ = writeln!(text, "{line:>NUMBER_WIDTH$}  {}", self.cut(words));
                } else if line == number {
                    let _ = writeln!(text, "{line:>NUMBER_WIDTH$}");
                }
                if line == number {
                    self.rows(text, rows);
                }
            }
            shown = until.max(number);
        }
    }

    /// Operations of which no line is listed, by place, the dearest first.
    fn without_lines(self, text: &mut String, observed: &Observed, places: BTreeMap<String, Rows<'_>>) {
        let _ = writeln!(text, "\n{}", self.style.bold("-- libraries, and code without source lines"));
        let summed = places.into_iter().map(|(place, rows)| {
            let cost_ns: f64 = rows.values().map(|group| group.cost_ns).sum();
            (cost_ns, rows.values().map(|group| group.count).sum::<u64>(), place, rows)
        });
        let mut places: Vec<_> = summed.collect();
        places.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
        let least = SHARE_MIN * observed.all_ns();
        let listed = places.iter().take(PLACES_MAX).take_while(|place| place.0 >= least).count();
        for (_, _, place, rows) in &places[..listed] {
            let _ = writeln!(text, "  {place}");
            self.rows(text, rows);
        }
        let left: u64 = places[listed..].iter().map(|place| place.1).sum();
        if left > 0 {
            let more = count((places.len() - listed) as u64);
            let left = count(left);
            let _ = writeln!(text, "  and {more} more places with {left} operations (all are in the JSON)");
        }
    }

    /// Operations, a line each.
    fn rows(self, text: &mut String, rows: &Rows<'_>) {
        for ((via, operation), group) in rows {
            let via = via.map(|via| format!(" in {via}")).unwrap_or_default();
            text.push_str(&self.row(&format!("{}{via}", label(*operation)), group));
        }
    }

    /// An operation's line.
    fn row(self, name: &str, group: &Group) -> String {
        let wide = self.name_width();
        let counted = format!("{}{}", if group.is_scaled { "~" } else { "" }, count(group.count));
        let name = shortened(name, wide);
        let mut line = format!("{MARK}{name}{:pad$}", "", pad = wide - columns(&name));
        let bytes = bytes_column(group.bytes);
        let Some(times) = group.times() else {
            return format!("{line}{}\n", self.figures(&counted, &bytes, &[]));
        };
        line += &self.figures(&counted, &bytes, &times_columns(&times, group.is_sampled()));
        let timed = group.is_sampled().then(|| format!("timed {}", count(times.n)));
        let disturbed = (group.disturbed > 0).then(|| format!("{} disturbed", count(group.disturbed)));
        let said = timed.into_iter().chain(disturbed).collect::<Vec<_>>().join(", ");
        let gap = if columns(&line) + GAP + columns(&said) > self.width {
            format!("\n{:indent$}", "", indent = NUMBER_WIDTH + 2)
        } else {
            " ".repeat(GAP)
        };
        if said.is_empty() { line + "\n" } else { format!("{line}{gap}{said}\n") }
    }

    /// A source line as far as it is shown, without what a terminal would obey.
    fn cut(self, line: &str) -> String {
        let plain: String =
            line.trim_end().replace('\t', "    ").chars().filter(|c| !c.is_control()).collect();
        shortened(&plain, self.width.saturating_sub(NUMBER_WIDTH + 2))
    }
}

fn read(file: &str) -> Option<String> {
    let meta = std::fs::metadata(file).ok()?;
    if !meta.is_file() || meta.len() > SOURCE_BYTES_MAX {
        return None;
    }
    std::fs::read(file).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}
