//! Cooper et al. 1992, Figures 2 to 4, 6 to 8, 10 to 12 and their tables (Figures 13 to 24): every
//! heap-sizing strategy under every mode of the pager. Each strategy runs with and without copy-back (a
//! second copy that returns old objects to the start of the heap).
//!
//! The experiment runs twice: paged by the kernel, and by Vellum. The paper counted pages in nine rows.
//! The kernel does not distinguish reads from writes, or the kinds of page on which a fault occurs. Nine
//! rows therefore become five: faults without device access, faults that read, and pages discarded,
//! written and flushed. Under Vellum's pager, the first and the last are missing.
//!
//! All settings of a client run by turns in random order. Each is compared with the same round's run of
//! the baseline (the original strategy, no pager mode).

use super::client::{CLIENTS, Client};
use super::lab::Lab;
use super::place::{Place, asked};
use super::published::{Appendix, appendix};
use super::search::search;
use super::setting::{After, MODES, Mode, Setting, Sizing, Strategy};
use crate::finding::{table_by, table_of};
use crate::{Axis, Bound, Figure, Finding, Goal, Scale, Series, Table, Value};
use vellum_campaign::Sheet;
use vellum_campaign::cells::{control, middle, ratio, twin};
use vellum_measure::median;

/// Goal: the best Vellum setting at least 4 times as fast as original, no pager, copy-back (published: 3.8,
/// 3.8).
const BEST_MIN: f64 = 4.0;
/// Goal: no mode costs Primes, which does not page, more than 2 % of CPU time.
const COST_MAX: f64 = 1.02;
const COST: &str = "process_cpu_ns";
/// Goal: at least 1.5 times as fast as the kernel's swap on the same device under the same memory.
const PAGER_MIN: f64 = 1.5;
/// The setting compared for this goal: it has no parameters to tune.
const UNTUNED: &str = "knee, paged by the kernel";

const PAGE_BYTES: f64 = 4096.0;
const ROUNDS: usize = 3;

/// Rows that count pages: the name, the paper's rows, and the function that counts.
type Count = fn(&Sheet, &str) -> Option<f64>;
type Rows = &'static [(&'static str, &'static [usize], Count)];
const KERNEL_ROWS: Rows = &[
    ("faults without the device", &[0, 1, 3, 4], |sheet, arm| middle(sheet, arm, "process_minor_faults")),
    ("faults read", &[2, 5], |sheet, arm| middle(sheet, arm, "process_major_faults")),
    ("page-out discarded", &[6], |sheet, arm| middle(sheet, arm, "lazily_freed_pages")),
    ("page-out written", &[7], |sheet, arm| middle(sheet, arm, "swapped_out_pages")),
    ("pages flushed", &[8], |sheet, arm| {
        let bytes = ["flushed_asked_bytes", "flushed_pressure_bytes", "flushed_decay_bytes"];
        let all = bytes.iter().filter_map(|name| middle(sheet, arm, name)).sum::<f64>();
        Some((all / PAGE_BYTES).round())
    }),
];
const PAGER_ROWS: Rows = &[
    ("faults read", &[2, 5], |sheet, arm| middle(sheet, arm, "paged_in_read")),
    ("page-out discarded", &[6], |sheet, arm| middle(sheet, arm, "paged_out_discarded")),
    ("page-out written", &[7], |sheet, arm| middle(sheet, arm, "paged_out_written")),
];

pub(super) fn run(lab: &mut Lab<'_>, place: Place) -> Finding {
    let mut finding = lab.finding(
        match place {
            Place::Kernel => "Every strategy and mode, paged by the kernel",
            _ => "Every strategy and mode, paged by Vellum",
        },
        "Figures 2 to 4, 6 to 8, 10 to 24",
        "Published on a DECstation 3100 with some 11 Mb free for the heap, which paged to a disk by hand: times in seconds. Ours are held against the \
         original strategy without a pager and with copy-back of the same run, as are the published.",
    );
    if let Some(why) = lab.obstacle(place) {
        finding.notes.push(format!("not measured: {why}"));
        return finding;
    }
    for client in &CLIENTS {
        if place == Place::Kernel {
            finding.notes.extend(lab.calibrate(client));
        }
        if lab.scale == Scale::Full && place == Place::Kernel {
            finding.notes.extend(search_all(lab, client, place));
        }
        if asked() {
            finding.notes.push("a signal asked to end: not measured to the end".to_owned());
            break;
        }
        one(lab, client, place, &mut finding);
    }
    finding.notes.push(device(place, lab, &finding));
    finding
}

/// Searches for the parameters of both strategies under each mode; returns the errors.
fn search_all(lab: &mut Lab<'_>, client: &'static Client, place: Place) -> Vec<String> {
    let mut notes = Vec::new();
    for strategy in Strategy::BOTH {
        for mode in MODES {
            let after = lab.usually(strategy);
            notes.extend(search(lab, (client, strategy, mode, place), after).err());
        }
    }
    notes
}

/// The paging device, and the cost of a page.
fn device(place: Place, lab: &Lab<'_>, finding: &Finding) -> String {
    let to = match (place, lab.options.zram) {
        (Place::Kernel, true) => "zram".to_owned(),
        _ => format!("a file in {}", lab.options.folder().display()),
    };
    // From all runs that read back: the time of a run beyond its CPU time, for each page that it waited for.
    let delays: Vec<f64> = finding
        .runs
        .iter()
        .filter_map(|run| {
            let figure = |name: &str| run["metrics"][name].as_f64();
            let read = match place {
                Place::Kernel => figure("process_major_faults")?,
                _ => figure("paged_in_read")?,
            };
            (read >= 1000.0).then_some((figure("process_wall_ns")? - figure("process_user_ns")?) / read / 1e3)
        })
        .collect();
    match median(&delays) {
        Some(delay) => format!(
            "paged to {to}: {delay:.0} µs go by for each page read back beyond the program's own time, writing out included (the median over runs)"
        ),
        None => format!("paged to {to}; no run read back enough pages to tell the delay"),
    }
}

/// Measures all settings of one client and adds the results to `finding`.
fn one(lab: &mut Lab<'_>, client: &'static Client, place: Place, finding: &mut Finding) {
    let baseline = lab.baseline(client, place);
    let settings = settings(lab, client, place);
    let base = baseline.label();
    let mut arms = Vec::new();
    for setting in &settings {
        if let Some(ready) = lab.ready(client, setting, place) {
            arms.push((setting.label(), ready));
        }
    }
    if let Some(ready) = lab.ready(client, &baseline, place) {
        arms.push((twin(&base), ready));
    }
    // Tests must not make swap.
    let kernel_too = place == Place::Pager && client.pages && lab.scale != Scale::Tiny;
    if kernel_too && lab.obstacle(Place::Kernel).is_none() {
        let knee = Setting { sizing: Sizing::Knee, mode: Mode::Default, after: lab.usual() };
        arms.extend(lab.ready(client, &knee, Place::Kernel).map(|ready| (UNTUNED.to_owned(), ready)));
    }
    let rounds = lab.scale.pick(ROUNDS, 1, 1);
    let name = format!("{} {}", client.name, place.name());
    let sheet = &lab.campaign(name, arms, rounds);
    finding.keep(std::slice::from_ref(sheet));
    finding.tables.push(summary(lab, client, place, sheet, &settings, &base));
    for strategy in Strategy::BOTH {
        for after in [After::CopyBack, After::Drift] {
            let published = appendix(client.name, strategy == Strategy::Original, after == After::CopyBack);
            let here =
                |setting: &&Setting| setting.after == after && setting.sizing.name() == strategy.name();
            let ours: Vec<&Setting> = settings.iter().filter(here).collect();
            if !ours.is_empty() {
                finding.tables.push(table(client, place, sheet, published, &ours));
            }
        }
    }
    finding.figures.extend(figures(lab, client, place, sheet, &base));
    let metric = if client.pages { lab.clock(place).metric } else { COST };
    finding.notes.extend(control(sheet, &base, metric, lab.seed));
    finding.goals.extend(goals(lab, client, place, sheet, &settings, &base));
}

/// All settings compared: first both strategies by mode and by the treatment of vacated regions, then the
/// settings that are not in the paper's tables.
fn settings(lab: &Lab<'_>, client: &Client, place: Place) -> Vec<Setting> {
    let mut out = Vec::new();
    for strategy in Strategy::BOTH {
        for mode in MODES {
            let sizing = lab.parameters(client, strategy, mode, place);
            for after in lab.afters() {
                // A quick run is limited to the published settings.
                let quick = lab.scale != Scale::Full && matches!(after, After::Reuse | After::Stay);
                if !quick {
                    out.push(Setting { sizing, mode, after: *after });
                }
            }
        }
    }
    let after = lab.usual();
    let sizing = lab.parameters(client, Strategy::Modified, Mode::FlushOnly, place);
    out.push(Setting { sizing, mode: Mode::FlushOnly, after });
    for sizing in [Sizing::SquareRoot { c: SQUARE_ROOT_C }, Sizing::Knee] {
        out.push(Setting { sizing, mode: Mode::Default, after });
    }
    out
}

/// The library's default.
pub(super) const SQUARE_ROOT_C: u32 = 20;

/// The published time of a setting, seconds.
fn published_s(client: &Client, setting: &Setting) -> Option<f64> {
    let copy_back = match setting.after {
        After::CopyBack => true,
        After::Drift => false,
        After::Reuse | After::Stay | After::InPlace => return None,
    };
    let is_original = match setting.sizing {
        Sizing::Original { .. } => true,
        Sizing::Modified { .. } => false,
        Sizing::SquareRoot { .. } | Sizing::Knee => return None,
    };
    let column = MODES.iter().position(|mode| *mode == setting.mode)?;
    Some(appendix(client.name, is_original, copy_back).clock_s(column))
}

fn summary(
    lab: &Lab<'_>,
    client: &Client,
    place: Place,
    sheet: &Sheet,
    settings: &[Setting],
    base: &str,
) -> Table {
    let clock = lab.clock(place);
    let [_, results, original, modified] = client.figures;
    let baseline = Setting {
        sizing: Sizing::Original { mem_limit: 0.0, ratio: 0 },
        mode: Mode::None,
        after: After::CopyBack,
    };
    let published_base = published_s(client, &baseline);
    let gain_then = |setting: &Setting| Some(published_base? / published_s(client, setting)?);
    let of = |setting: &Setting, metric: &str| middle(sheet, &setting.label(), metric);
    let seconds = |setting: &Setting, metric: &str| Value::of(of(setting, metric).map(|ns| ns / 1e9));
    let gain = |setting: &Setting| {
        Value::ratio(ratio(sheet, (base, clock.metric), (&setting.label(), clock.metric), lab.seed))
    };
    table_by(
        &format!(
            "{}, Figures {results}, {original} and {modified}: {} (s), and the baseline's over it",
            client.name, clock.words
        ),
        settings,
        &[
            ("setting", "setting", &|setting| Value::text(setting.label())),
            ("parameters", "parameters", &|setting| Value::text(setting.sizing.text())),
            ("published_s", "1992|s", &|setting| Value::of(published_s(client, setting))),
            ("published_speedup", "baseline|over it", &|setting| Value::of(gain_then(setting))),
            ("seconds", "ours|s", &|setting| seconds(setting, clock.metric)),
            ("speedup", "baseline|over it", &gain),
            ("cpu_seconds", "CPU|s", &|setting| seconds(setting, "process_cpu_ns")),
            ("collections", "collec-|tions", &|setting| Value::of(of(setting, "collections"))),
            ("relieved", "times|relieved", &|setting| Value::of(of(setting, "relieved"))),
        ],
    )
}

/// A figure of the appendix, with each mode's column beside ours.
fn table(client: &Client, place: Place, sheet: &Sheet, published: &Appendix, ours: &[&Setting]) -> Table {
    let mut columns = vec![("row".to_owned(), "pages, if no unit is said".to_owned())];
    for setting in ours {
        let name = setting.mode.name();
        columns.push((format!("published_{}", setting.mode.word()), format!("{name}|1992")));
        columns.push((setting.mode.word().to_owned(), format!("{name}|ours")));
    }
    let strategy = if published.is_original() { Strategy::Original } else { Strategy::Modified };
    let mut table = table_of(
        &format!(
            "Figure {}: {}, {} strategy, copy-back {}",
            published.figure,
            client.name,
            strategy.name(),
            if published.copy_back { "on" } else { "off" }
        ),
        &columns,
    );
    let column = |setting: &Setting| MODES.iter().position(|mode| *mode == setting.mode);
    let mut row = |name: &str, then: &dyn Fn(usize) -> f64, now: &dyn Fn(&str) -> Option<f64>| {
        let mut row = vec![Value::text(name)];
        for setting in ours {
            row.push(Value::of(column(setting).map(then)));
            row.push(Value::of(now(&setting.label())));
        }
        table.rows.push(row);
    };
    let seconds = |metric: &'static str| move |arm: &str| middle(sheet, arm, metric).map(|ns| ns / 1e9);
    row("user time, s", &|at| published.columns[at].times_s[0], &seconds("process_user_ns"));
    row("system time, s", &|at| published.columns[at].times_s[1], &seconds("process_sys_ns"));
    row("clock time, s", &|at| published.columns[at].times_s[2], &seconds("process_wall_ns"));
    for (name, rows, count) in if place == Place::Kernel { KERNEL_ROWS } else { PAGER_ROWS } {
        let then = |at: usize| rows.iter().map(|row| f64::from(published.columns[at].pages[*row])).sum();
        row(name, &then, &|arm| count(sheet, arm));
    }
    table
}

/// Times as bars, relative to the baseline's.
fn figures(lab: &Lab<'_>, client: &Client, place: Place, sheet: &Sheet, base: &str) -> Vec<Figure> {
    let (metric, by) = (lab.clock(place).metric, if place == Place::Pager { "-pager" } else { "" });
    let of = |strategy: Strategy, after: After| MODES.map(|mode| (strategy, mode, after)).to_vec();
    let parts = [
        [
            of(Strategy::Original, lab.usually(Strategy::Original)),
            of(Strategy::Modified, lab.usually(Strategy::Modified)),
        ]
        .concat(),
        of(Strategy::Original, After::Drift),
        of(Strategy::Modified, After::CopyBack),
    ];
    let titles = ["results", "original strategy without copy-back", "modified strategy with copy-back"];
    let then_base = appendix(client.name, true, true).clock_s(0);
    let mut out = Vec::new();
    for (at, part) in parts.into_iter().enumerate() {
        let (mut ours, mut then) = (Vec::new(), Vec::new());
        for (x, (strategy, mode, after)) in part.iter().enumerate() {
            let arm = format!("{} {} {}", strategy.name(), mode.name(), after.name());
            let now = middle(sheet, &arm, metric).zip(middle(sheet, base, metric));
            ours.extend(now.map(|(ns, base)| (x as f64, ns / base)));
            let column = MODES.iter().position(|one| one == mode);
            let published = appendix(client.name, *strategy == Strategy::Original, *after == After::CopyBack);
            then.extend(column.map(|at| (x as f64, published.clock_s(at) / then_base)));
        }
        if ours.is_empty() {
            continue;
        }
        let names = part.iter().map(|(strategy, mode, _)| format!("{} {}", strategy.name(), mode.name()));
        out.push(Figure {
            name: format!("cooper-figure{}{by}", client.figures[at + 1]),
            title: format!("Figure {}: {}, {}", client.figures[at + 1], client.name, titles[at]),
            x: Axis::Names("strategy and mode".into(), names.collect()),
            y: Axis::Linear("time, over original NP with copy-back".into()),
            series: vec![Series::bars("ours", ours), Series::bars("1992", then)],
        });
    }
    out
}

fn goals(
    lab: &Lab<'_>,
    client: &Client,
    place: Place,
    sheet: &Sheet,
    settings: &[Setting],
    base: &str,
) -> Vec<Goal> {
    let clock = lab.clock(place);
    let mut goals = Vec::new();
    if client.pages {
        let best = fastest(sheet, settings, clock.metric);
        let gain =
            best.as_ref().and_then(|arm| ratio(sheet, (base, clock.metric), (arm, clock.metric), lab.seed));
        let best = best.unwrap_or_default();
        let what =
            format!("{}, {}: the baseline's {} over that of {best}", client.name, place.name(), clock.words);
        goals.push(Goal::within(what, "x", Bound::AtLeast(BEST_MIN), gain));
    } else {
        // Each mode over no mode, with all else equal.
        let over =
            settings.iter().filter(|setting| MODES[1..].contains(&setting.mode)).filter_map(|setting| {
                let none = Setting { mode: Mode::None, ..*setting }.label();
                let found = ratio(sheet, (&setting.label(), COST), (&none, COST), lab.seed)?;
                Some((found, setting.label()))
            });
        let worst = over.max_by(|a, b| a.0.estimate.total_cmp(&b.0.estimate));
        let name = worst.as_ref().map_or_else(String::new, |(_, name)| name.clone());
        let what = format!("{}, {}: the CPU time of {name}, over no pager", client.name, place.name());
        goals.push(Goal::within(what, "x", Bound::AtMost(COST_MAX), worst.map(|(found, _)| found)));
    }
    if place == Place::Pager && sheet.arms.iter().any(|(arm, _)| arm == UNTUNED) {
        let knee = Setting { sizing: Sizing::Knee, mode: Mode::Default, after: lab.usual() };
        let gain = ratio(sheet, (UNTUNED, clock.metric), (&knee.label(), clock.metric), lab.seed);
        let what = format!("{}: knee, paged by the kernel, over knee, paged by Vellum", client.name);
        goals.push(Goal::within(what, "x", Bound::AtLeast(PAGER_MIN), gain));
    }
    goals
}

/// The setting with the least median.
fn fastest(sheet: &Sheet, settings: &[Setting], metric: &str) -> Option<String> {
    let all = settings.iter().filter_map(|setting| {
        let arm = setting.label();
        Some((middle(sheet, &arm, metric)?, arm))
    });
    all.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, arm)| arm)
}
