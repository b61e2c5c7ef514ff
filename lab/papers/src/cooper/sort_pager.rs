//! Cooper et al. 1992, section 5.2: why the pager made Sort slower under the new strategy. ("We are at a loss
//! to explain this; perhaps it is an artifact of the minimization process.")
//!
//! The paper compares NP at the parameters found for NP (9:55) with PO at the parameters found for PO
//! (10:47): two things differ. Here each mode runs at both sets of parameters, which separates the effect of
//! the pager from the effect of the parameters. Counts of pages show the reason.

use super::client::Client;
use super::lab::Lab;
use super::place::Place;
use super::results::check_results;
use super::setting::{Mode, Setting, Sizing, Strategy};
use crate::cells::{control, middle, ratio, twin};
use crate::{Bound, Finding, Goal, Table, Value};
use vellum_campaign::Sheet;
use vellum_measure::{Interval, short};

const ROUNDS: usize = 7;
/// Goal: if the parameters are the cause, the pager alone makes no run slower.
const PAGER_MAX: f64 = 1.0;
const NAMES: [(&str, Mode); 2] = [("NP", Mode::None), ("PO", Mode::Marks)];

pub(super) fn run(lab: &mut Lab<'_>) -> Finding {
    let mut finding = lab.finding(
        "Why the pager made the new strategy slower for Sort",
        "Section 5.2, Figures 20 and 23",
        "Published: NP 9:55 and PO 10:47 without copy-back, 20:31 and 32:50 with it, each at the parameters found for it. PO made fewer transfers \
         (18,534 pages against 23,192) and took longer.",
    );
    let Some(client) = Client::of("sort") else { return finding };
    let place = match lab.obstacle(Place::Kernel) {
        None => Place::Kernel,
        Some(why) => {
            finding.notes.push(format!("not under the kernel's paging: {why}"));
            match lab.obstacle(Place::Pager) {
                None => Place::Pager,
                Some(why) => {
                    finding.notes.push(format!("not measured: {why}"));
                    return finding;
                }
            }
        }
    };
    if lab.modes(&[Mode::None, Mode::Marks]).len() < 2 || !lab.has_sizing() {
        finding.notes.push("not measured: it takes both modes and the choice of parameters".to_owned());
        return finding;
    }
    if place == Place::Kernel {
        finding.notes.extend(lab.calibrate(client));
    }
    let clock = lab.clock(place);
    for after in lab.afters() {
        let mut arms = Vec::new();
        for (of, parameters) in NAMES {
            let Some(sizing) = Strategy::Modified.published(client.name, parameters) else { continue };
            for (name, mode) in NAMES {
                let ready = lab.ready(client, &Setting { sizing, mode, after: *after }, place);
                arms.extend(ready.map(|ready| (label(name, of), ready)));
            }
        }
        if let Some((first, ready)) = arms.first().cloned() {
            arms.push((twin(&first), ready));
        }
        let rounds = if lab.options.full { ROUNDS * 2 } else { lab.scale.pick(ROUNDS, 2, 1) };
        let name = format!("sort modified {}", after.name());
        let sheets = lab.campaign(name, arms, rounds);
        finding.keep(&sheets);
        let Some(sheet) = sheets.first() else { continue };
        check_results(sheet, &mut finding);
        finding.tables.push(table(sheet, place, clock.metric, after.name()));
        finding.notes.extend(control(sheet, &label("NP", "NP"), clock.metric, lab.seed));
        let over = |above: (&str, &str), below: (&str, &str)| {
            ratio(
                sheet,
                (&label(above.0, above.1), clock.metric),
                (&label(below.0, below.1), clock.metric),
                lab.seed,
            )
        };
        let pager = [over(("PO", "NP"), ("NP", "NP")), over(("PO", "PO"), ("NP", "PO"))];
        let parameters = [over(("NP", "PO"), ("NP", "NP")), over(("PO", "PO"), ("PO", "NP"))];
        let as_published = over(("PO", "PO"), ("NP", "NP"));
        let what = format!(
            "{}: {} with the pager over without, at the same parameters (NP's)",
            after.name(),
            clock.words
        );
        finding.goals.push(Goal::within(what, "x", Bound::AtMost(PAGER_MAX), pager[0]));
        if let (Some(pager), Some(parameters), Some(published)) =
            (both(pager), both(parameters), as_published)
        {
            finding.notes.push(format!(
                "{}: as published, PO at its parameters over NP at its own: {}. The pager alone, at the same parameters: {pager}. The parameters alone, \
                 under the same mode: {parameters}",
                after.name(),
                interval(published)
            ));
        }
    }
    for sizing in NAMES.iter().filter_map(|(_, mode)| Strategy::Modified.published(client.name, *mode)) {
        finding.notes.push(format!("parameters, of the memory: {}", Sizing::text(sizing)));
    }
    finding
}

fn label(mode: &str, parameters: &str) -> String {
    format!("{mode} at {parameters}'s parameters")
}

fn interval(found: Interval) -> String {
    format!("{} [{}, {}]", short(found.estimate), short(found.low), short(found.high))
}

fn both([at_first, at_second]: [Option<Interval>; 2]) -> Option<String> {
    Some(format!("{} and {}", interval(at_first?), interval(at_second?)))
}

fn table(sheet: &Sheet, place: Place, metric: &str, after: &str) -> Table {
    let names = match place {
        Place::Pager => ["paged_in_read", "paged_out_written", "paged_out_discarded"],
        _ => ["process_major_faults", "swapped_out_pages", "lazily_freed_pages"],
    };
    let mut columns = vec![("arm", "modified strategy"), ("seconds", "s"), ("cpu_seconds", "CPU|s")];
    columns.extend([
        ("read_pages", "pages|read"),
        ("written_pages", "pages|written"),
        ("discarded_pages", "pages|discarded"),
        ("collections", "collec-|tions"),
    ]);
    let mut table = Table::new(&format!("Sort, {after}"), &columns);
    for (arm, _) in sheet.arms.iter().filter(|(arm, _)| !arm.ends_with('\'')) {
        let figure = |name: &str| middle(sheet, arm, name);
        let mut row = vec![
            Value::text(arm),
            Value::of(figure(metric).map(|ns| ns / 1e9)),
            Value::of(figure("process_cpu_ns").map(|ns| ns / 1e9)),
        ];
        row.extend(names.map(|name| Value::of(figure(name))));
        row.push(Value::of(figure("collections")));
        table.rows.push(row);
    }
    table
}
