//! The annotated source of `vellum cost`: each source line, and below it the memory operations of that line.
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
//! The columns are operation, count, bytes, and the mean, minimum, maximum and standard deviation of the
//! times. The deviation is omitted where space is short. A `~` means that only some of the operations were
//! timed; the line below gives their number. Names and source lines are cut to the terminal's width.
//!
//! Source: Bates 1999, "Reliable Benchmarking with Limbo on Inferno", section "Costing". It shows no bytes.

use super::closing::closing;
use super::group::Group;
use super::observed::Observed;
use super::summary::{Wanted, dearest};
use super::words::{bytes_column, label, times_columns};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vellum_report::table::shortened;
use vellum_report::units::count;
use vellum_report::{Report, Section, Table};

use vellum_cost::{Item, Place};
use vellum_wire::operation::Operation;

/// Lines shown around a line with operations.
const CONTEXT: u32 = 2;
/// Files larger than this are not read for their lines.
const SOURCE_BYTES_MAX: u64 = 32 << 20;
/// Libraries and places without a source line that are listed.
const PLACES_MAX: usize = 20;
/// The smallest share of all costs for which such a place is listed.
const SHARE_MIN: f64 = 0.01;
/// Width of line numbers.
const NUMBER_WIDTH: usize = 6;
/// The largest width of an operation's name.
const NAME_WIDTH: usize = 40;

pub(super) fn report(observed: &Observed, only: &[PathBuf]) -> Report<'static> {
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
        // A library would have a separate row for each of its functions.
        let way = (via.filter(|_| library.is_none()), item.operation);
        places.entry(place).or_default().entry(way).or_default().add(item, cost_ns);
    }
    let of_wanted = |item: &Item| matches!(&item.cause.place, Place::Line { file, .. } if wanted(file));
    let wanted_lines: Wanted<'_> = if only.is_empty() { None } else { Some(&of_wanted) };
    let (mut report, mut listing) = (Report::new(None), Listing::new());
    if observed.profile.items.iter().any(|item| only.is_empty() || of_wanted(item)) {
        report.sections([dearest(observed, wanted_lines)]);
    }
    let mut shown: Vec<_> =
        files.iter().filter(|(file, source)| wanted(file) && !source.lines.is_empty()).collect();
    shown.sort_by(|(_, a), (_, b)| b.cost_ns.total_cmp(&a.cost_ns));
    for (file, source) in shown {
        listing.source(file, source, observed.newer.get(&**file).map(PathBuf::as_path));
    }
    if only.is_empty() && !places.is_empty() {
        listing.without_lines(observed, places);
    }
    report.section(Section::new(), |section| {
        section.table(listing.0);
        let is_absent = |only: &&PathBuf| !files.keys().any(|file| Path::new(&***file).ends_with(only));
        for only in only.iter().filter(is_absent) {
            let there = files.keys().map(|file| &***file).collect::<Vec<_>>().join(", ");
            let only = only.display();
            section.lines(format!("no operations in {only}; there are some in: {there}\n"));
        }
    });
    report.sections([closing(observed)]);
    report
}

/// The operations of a place, by the function it called.
type Rows<'a> = BTreeMap<(Option<&'a str>, Operation), Group>;

#[derive(Default)]
struct Source<'a> {
    text: Option<String>,
    lines: BTreeMap<u32, Rows<'a>>,
    cost_ns: f64,
}

/// The listing: a table in which lines of source span all columns.
struct Listing(Table);

impl Listing {
    fn new() -> Listing {
        let heads = ["    operation", "count", "bytes", "mean", "min", "max", "std"];
        Listing(Table::plain(&heads, 1).with_spare(1))
    }

    /// A heading, with a blank line before it.
    fn heading(&mut self, words: String) {
        self.0.span("");
        self.0.heading(words);
    }

    /// One file's lines, with their operations; the module is named if the file was changed after the module
    /// was built.
    fn source(&mut self, file: &str, source: &Source<'_>, newer_than: Option<&Path>) {
        self.heading(format!("-- {file}"));
        if let Some(module) = newer_than {
            self.0.span(format!("    (newer than {}: lines may have moved)", module.display()));
        }
        let Source { text: contents, lines, .. } = source;
        if contents.is_none() {
            self.0.span("    (the source is not here: line numbers only)");
        }
        let there: Vec<&str> = contents.iter().flat_map(|contents| contents.lines()).collect();
        let mut shown = 0;
        for (&number, rows) in lines {
            let from = number.saturating_sub(CONTEXT).max(shown + 1);
            if shown > 0 && from > shown + 1 {
                self.0.span(format!("{:>NUMBER_WIDTH$}", "..."));
            }
            let next = lines.range(number + 1..).next();
            let until = next.map_or(number + CONTEXT, |(next, _)| (next - 1).min(number + CONTEXT));
            for line in from..=until.max(number) {
                if let Some(words) = there.get(line as usize - 1) {
                    let words = words.trim_end().replace('\t', "    ");
                    let plain: String = words.chars().filter(|c| !c.is_control()).collect();
                    self.0.span(format!("{line:>NUMBER_WIDTH$}  {plain}"));
                } else if line == number {
                    self.0.span(format!("{line:>NUMBER_WIDTH$}"));
                }
                if line == number {
                    self.rows(rows);
                }
            }
            shown = until.max(number);
        }
    }

    /// Operations without a listed line, by place, the most expensive first.
    fn without_lines(&mut self, observed: &Observed, places: BTreeMap<String, Rows<'_>>) {
        self.heading("-- libraries, and code without source lines".to_owned());
        let summed = places.into_iter().map(|(place, rows)| {
            let cost_ns: f64 = rows.values().map(|group| group.cost_ns).sum();
            (cost_ns, rows.values().map(|group| group.count).sum::<u64>(), place, rows)
        });
        let mut places: Vec<_> = summed.collect();
        places.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
        let least = SHARE_MIN * observed.all_ns();
        let listed = places.iter().take(PLACES_MAX).take_while(|place| place.0 >= least).count();
        for (_, _, place, rows) in &places[..listed] {
            self.0.span(format!("  {place}"));
            self.rows(rows);
        }
        let left: u64 = places[listed..].iter().map(|place| place.1).sum();
        if left > 0 {
            let (more, left) = (count((places.len() - listed) as u64), count(left));
            self.0.span(format!("  and {more} more places with {left} operations (all are in the JSON)"));
        }
    }

    fn rows(&mut self, rows: &Rows<'_>) {
        for ((via, operation), group) in rows {
            let via = via.map(|via| format!(" in {via}")).unwrap_or_default();
            let name = shortened(&format!("{}{via}", label(*operation)), NAME_WIDTH);
            let counted = format!("{}{}", if group.is_scaled { "~" } else { "" }, count(group.count));
            let mut row = vec![format!("  - {name}"), counted, bytes_column(group.bytes)];
            let times = group.times();
            row.extend(times.iter().flat_map(|times| times_columns(times, group.is_sampled())));
            self.0.row(row);
            let timed = times.filter(|_| group.is_sampled()).map(|times| format!("timed {}", count(times.n)));
            let disturbed = (group.disturbed > 0).then(|| format!("{} disturbed", count(group.disturbed)));
            let said = timed.into_iter().chain(disturbed).collect::<Vec<_>>().join(", ");
            if !said.is_empty() {
                self.0.span(format!("{:indent$}{said}", "", indent = NUMBER_WIDTH + 2));
            }
        }
    }
}

fn read(file: &str) -> Option<String> {
    let meta = std::fs::metadata(file).ok()?;
    if !meta.is_file() || meta.len() > SOURCE_BYTES_MAX {
        return None;
    }
    std::fs::read(file).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}
