//! Smith 1998, Table 6, Figure 2: the cost to a program of one more word in each object, and the value of
//! type information.
//!
//! The paper compares two collectors, MCC and BDW (today's libgc). It added a word to BDW's objects, to
//! find how much MCC's header words slow programs down. Vellum has no header words, so here libgc and
//! Vellum both run with an added word. The paper also asks what type information is worth. Here a build
//! with all objects untyped and none atomic (free of pointers) is compared with the normal one.

use super::client::CLIENTS;
use super::lab::{Lab, keep};
use crate::finding::table_of;
use crate::workshop::{Build, Collector};
use crate::{Axis, Figure, Finding, Series, Table, Value};
use vellum_campaign::Sheet;
use vellum_campaign::cells::{cell, excess_percent, paired, ratio, sheet};
use vellum_measure::Interval;

/// The builds beside the plain one, and their suffixes to a collector's name.
const VARIANTS: [(Build, &str); 2] = [(Build::Header, "+word"), (Build::Untyped, "-types")];

pub(super) fn run(lab: &mut Lab<'_>) -> Finding {
    let rounds = lab.scale.pick(7, 3, 1);
    let mut cells = Vec::new();
    for client in &CLIENTS {
        let mut arms = Vec::new();
        for collector in lab.here.clone() {
            let plain = collector.name();
            arms.extend(lab.arm(plain, client, collector, Build::Plain, client.heap_mib));
            for (build, suffix) in VARIANTS {
                arms.extend(lab.arm(&format!("{plain}{suffix}"), client, collector, build, client.heap_mib));
            }
        }
        cells.push(cell(client.name, rounds, arms));
    }
    let sheets = lab.campaign(&cells);
    let mut finding = lab.finding(
        "A word more an object, and objects without types",
        "Table 6, Figure 2",
        "Published: MCC's client time over BDW's, and that of BDW with a word more an object. The source wished to know what type \
         information is worth and could not tell.",
    );
    finding.tables = vec![table_6(lab, &sheets), types(lab, &sheets)];
    finding.figures = vec![figure_2(lab, &sheets)];
    keep(&mut finding, &sheets);
    finding
}

/// The change of one arm's client time relative to another's, in percent.
fn slowdown(sheet: &Sheet, arm: &str, over: &str, seed: u64) -> Option<Interval> {
    let client = |arm: &str| -> Vec<Option<f64>> {
        let (cpu, collector) = (sheet.by_round(arm, "cpu_ns"), sheet.by_round(arm, "collector_ns"));
        // The collector's part is extrapolated from samples: on a busy machine it may exceed the total.
        let part =
            |(cpu, collector): (Option<f64>, Option<f64>)| Some(cpu? - collector?).filter(|ns| *ns > 0.0);
        cpu.into_iter().zip(collector).map(part).collect()
    };
    paired(&client(arm), &client(over), seed).map(excess_percent)
}

fn percent(found: Option<Interval>) -> Value {
    found.map_or(Value::Nothing, Value::PercentRange)
}

fn table_6(lab: &Lab<'_>, sheets: &[Sheet]) -> Table {
    let mut columns = vec![
        ("client".to_owned(), "client".to_owned()),
        ("published_mcc_percent".into(), "published|MCC".into()),
        ("published_header_percent".into(), "published|BDW + word".into()),
    ];
    let libgc = Collector::Libgc.name();
    let mut arms = vec![format!("{libgc}+word")];
    for plan in lab.plans() {
        arms.extend([plan.name().to_owned(), format!("{}+word", plan.name())]);
    }
    columns.extend(arms.iter().map(|arm| (format!("{arm}_percent"), arm.replace('+', "| + "))));
    let mut table = table_of("Table 6: client time over libgc's (then BDW's), percent", &columns);
    for client in &CLIENTS {
        let (mcc, header) = client.published().slowdown;
        let mut row = vec![Value::text(client.title), Value::Percent(mcc), Value::Percent(header)];
        let found = |arm: &String| slowdown(sheet(sheets, client.name)?, arm, libgc, lab.seed);
        row.extend(arms.iter().map(|arm| percent(found(arm))));
        table.rows.push(row);
    }
    table
}

fn types(lab: &Lab<'_>, sheets: &[Sheet]) -> Table {
    let mut columns = vec![("client".to_owned(), "client".to_owned())];
    for collector in &lab.here {
        columns.push((format!("{}_untyped_ratio", collector.name()), format!("{}|[95 %]", collector.name())));
    }
    let mut table = table_of("Total time with everything untyped, over the same with types", &columns);
    for client in &CLIENTS {
        let mut row = vec![Value::text(client.title)];
        for collector in &lab.here {
            let (plain, without) = (collector.name(), format!("{}-types", collector.name()));
            let found = sheet(sheets, client.name)
                .and_then(|sheet| ratio(sheet, (&without, "cpu_ns"), (plain, "cpu_ns"), lab.seed));
            row.push(Value::ratio(found));
        }
        table.rows.push(row);
    }
    table
}

fn figure_2(lab: &Lab<'_>, sheets: &[Sheet]) -> Figure {
    let libgc = Collector::Libgc.name();
    let arms = lab.plans().into_iter().map(|plan| plan.name().to_owned()).chain([format!("{libgc}+word")]);
    let ours = arms.map(|arm| {
        let found = |(place, name)| {
            Some((place as f64, slowdown(sheet(sheets, name)?, &arm, libgc, lab.seed)?.estimate))
        };
        let points = CLIENTS.iter().map(|client| client.name).enumerate().filter_map(found).collect();
        Series::bars(arm.as_str(), points)
    });
    let published = |label: &str, of: fn(&super::Client) -> f64| {
        Series::bars(label, CLIENTS.iter().enumerate().map(|(at, client)| (at as f64, of(client))).collect())
    };
    let published = [
        published("MCC, 1998", |client| client.published().slowdown.0),
        published("BDW + word, 1998", |client| client.published().slowdown.1),
    ];
    Figure {
        name: "smith-figure2".into(),
        title: "Figure 2: client time over libgc's (BDW's)".into(),
        x: Axis::Names("client".into(), CLIENTS.map(|client| client.title.to_owned()).to_vec()),
        y: Axis::Linear("percent".into()),
        series: ours.chain(published).collect(),
    }
}
