//! Cooper et al. 1992, first open question: heap sizing without tuning, compared with the best parameters
//! found.
//!
//! The paper says of its parameters: "We have not yet incorporated an algorithm to adjust these
//! dynamically; instead, we used a brute-force search." Here the parameters of both published heap-sizing
//! strategies are searched too. (A quick run tries only the published parameters.) The fastest setting
//! then runs by turns with two rules of Vellum that have nothing to tune: `knee` and the square-root rule.

use super::client::{CLIENTS, Client};
use super::lab::Lab;
use super::place::Place;
use super::results::SQUARE_ROOT_C;
use super::search::search;
use super::setting::{Mode, Setting, Sizing, Strategy};
use crate::{Bound, Finding, Goal, Scale, Table, Value};
use vellum_campaign::cells::{control, middle, ratio, twin};

/// Goal: `knee`, untuned, within 10 % of the brute-force optimum.
const OVER_MAX: f64 = 1.1;
const ROUNDS: usize = 5;

pub(super) fn run(lab: &mut Lab<'_>) -> Finding {
    let mut finding = lab.finding(
        "Untuned, beside the optimum",
        "Section 5, and section 7's first paragraph but one",
        "Published: no algorithm; parameters were found by searching, program by program.",
    );
    if let Some(why) = lab.obstacle(Place::Kernel) {
        finding.notes.push(format!("not measured: {why}"));
        return finding;
    }
    let mut table = Table::new(
        "Paged by the kernel, the library's own mode",
        &[
            ("client", "client"),
            ("optimum", "optimum of the search"),
            ("optimum_seconds", "optimum|s"),
            ("knee_seconds", "knee|s"),
            ("knee_over", "knee over|the optimum"),
            ("square_root_seconds", "square root|s"),
            ("square_root_over", "square root over|the optimum"),
            ("tried", "points|tried"),
            ("failed", "of them|failed"),
        ],
    );
    for client in &CLIENTS {
        finding.notes.extend(lab.calibrate(client));
        one(lab, client, &mut table, &mut finding);
    }
    finding.tables = vec![table];
    finding
}

fn one(lab: &mut Lab<'_>, client: &'static Client, table: &mut Table, finding: &mut Finding) {
    let (place, mode, after) = (Place::Kernel, Mode::Default, lab.usual());
    let (mut best, mut tried, mut failed): (Option<(f64, Sizing)>, _, _) = (None, 0, 0);
    for strategy in Strategy::BOTH {
        if lab.scale != Scale::Full {
            // The better of the paper's parameters, by a run of each.
            let sizing = strategy.published(client.name, mode);
            let Some(ready) = lab.ready(client, &Setting { sizing, mode, after }, place) else { continue };
            tried += 1;
            match ready.run().ok().and_then(|metrics| metrics.get(lab.clock(place).metric)) {
                Some(ns) if best.is_none_or(|(least, _)| ns < least) => best = Some((ns, sizing)),
                Some(_) => {}
                None => failed += 1,
            }
            continue;
        }
        match search(lab, (client, strategy, mode, place), after) {
            Ok(found) => {
                tried += found.tried;
                failed += found.failed;
                if best.is_none_or(|(least, _)| found.ns < least) {
                    best = Some((found.ns, found.sizing));
                }
            }
            Err(why) => finding.notes.push(why),
        }
    }
    let Some((_, optimum)) = best else { return };
    let clock = lab.clock(place);
    let square_root = Sizing::SquareRoot { c: SQUARE_ROOT_C };
    let mut arms = Vec::new();
    for (label, sizing) in [
        ("optimum".to_owned(), optimum),
        ("knee".to_owned(), Sizing::Knee),
        (twin("knee"), Sizing::Knee),
        ("square root".to_owned(), square_root),
    ] {
        arms.extend(lab.ready(client, &Setting { sizing, mode, after }, place).map(|ready| (label, ready)));
    }
    let name = format!("{}, untuned", client.name);
    let sheet = &lab.campaign(name, arms, lab.scale.pick(ROUNDS, 1, 1));
    finding.keep(std::slice::from_ref(sheet));
    let seconds = |arm: &str| Value::of(middle(sheet, arm, clock.metric).map(|ns| ns / 1e9));
    let over = |arm: &str| ratio(sheet, (arm, clock.metric), ("optimum", clock.metric), lab.seed);
    table.rows.push(vec![
        Value::text(client.name),
        Value::text(format!("{}: {}", optimum.name(), optimum.text())),
        seconds("optimum"),
        seconds("knee"),
        Value::ratio(over("knee")),
        seconds("square root"),
        Value::ratio(over("square root")),
        Value::Count(tried),
        Value::Count(failed),
    ]);
    finding.notes.extend(control(sheet, "knee", clock.metric, lab.seed));
    let what = format!("{}: knee over the optimum, {}", client.name, clock.words);
    finding.goals.push(Goal::within(what, "x", Bound::AtMost(OVER_MAX), over("knee")));
}
