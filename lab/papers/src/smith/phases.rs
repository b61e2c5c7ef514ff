//! Smith 1998, Tables 3 and 4, Figure 4: the time of each phase of a collection, in heaps as in Table 2.
//!
//! MCC had five phases: pin, root, graph, free, sweep. Vellum measures three: scanning the roots (pin and
//! root), tracing from there (graph), and sweeping (free and sweep). libgc measures none.
//!
//! The library also reports the counts of Table 3, about memory that is promoted (kept in place, not copied)
//! because a root leads into it. MCC promoted whole pages of 2 KB and lost the free memory in them. Vellum
//! copies only from sparse blocks of 16 KiB, so it promotes only these, and then allocates in their gaps.

use super::client::CLIENTS;
use super::lab::{Lab, keep};
use crate::finding::table_of;
use crate::workshop::{Build, Collector, Plan};
use crate::{Axis, Figure, Finding, Series, Table, Value};
use vellum_campaign::Sheet;
use vellum_campaign::cells::{cell, middle, sheet};

/// The phases: name, metric, and the paper's phases that they contain.
const PHASES: [(&str, &str, &[usize]); 3] =
    [("roots", "root_ns", &[0, 1]), ("trace", "mark_ns", &[2]), ("sweep", "sweep_ns", &[3, 4])];

const KIB: f64 = 1024.0;

pub(super) fn run(lab: &mut Lab<'_>) -> Finding {
    let rounds = lab.scale.pick(5, 3, 1);
    let mut cells = Vec::new();
    for client in &CLIENTS {
        let mut arms = Vec::new();
        for plan in lab.plans() {
            arms.extend(lab.arm(plan.name(), client, plan, Build::Plain, client.heap_mib));
        }
        cells.push(cell(client.name, rounds, arms));
    }
    let sheets = lab.campaign(&cells);
    let mut finding = lab.finding(
        "Where a collection's time goes",
        "Tables 3 and 4, Figure 4",
        "Published: MCC's pin and root together, graph, free and sweep together; and what it found as roots.",
    );
    finding.tables = vec![table_4(lab, &sheets), table_3(lab, &sheets)];
    finding.figures = lab.plans().first().map(|plan| figure_4(&sheets, plan.name())).into_iter().collect();
    finding.notes.push(
        "Table 3: pages of MCC had 2 KB, blocks have 16 KiB; only blocks that were to be emptied can be promoted, and what is free in them is used \
         by the next objects, which MCC did not do"
            .into(),
    );
    keep(&mut finding, &sheets);
    finding
}

fn published(client: &super::Client, parts: &[usize]) -> f64 {
    parts.iter().map(|part| client.published().phases[*part]).sum()
}

/// A phase's time in percent of the collections' time.
fn share(sheets: &[Sheet], client: &str, plan: &str, metric: &str) -> Option<f64> {
    let sheet = sheet(sheets, client)?;
    let all: f64 = PHASES.iter().filter_map(|(_, metric, _)| middle(sheet, plan, metric)).sum();
    Some(middle(sheet, plan, metric)? / all * 100.0).filter(|share| share.is_finite())
}

fn table_4(lab: &Lab<'_>, sheets: &[Sheet]) -> Table {
    let mut columns = vec![("client".to_owned(), "client".to_owned())];
    for (phase, ..) in PHASES {
        columns.push((format!("published_{phase}_percent"), format!("{phase}|1998, %")));
        for plan in lab.plans() {
            columns.push((format!("{}_{phase}_percent", plan.name()), format!("{phase}|{}", plan.name())));
        }
    }
    let mut table = table_of("Table 4: share of the collections' time", &columns);
    for client in &CLIENTS {
        let mut row = vec![Value::text(client.title)];
        for (_, metric, parts) in PHASES {
            row.push(Value::Number(published(client, parts)));
            let ours = lab.plans().into_iter().map(|plan| share(sheets, client.name, plan.name(), metric));
            row.extend(ours.map(Value::of));
        }
        table.rows.push(row);
    }
    table
}

/// A count of all collections, in units of `unit`, divided by the number of collections.
fn a_collection(sheets: &[Sheet], client: &str, plan: Collector, metric: &str, unit: f64) -> Option<f64> {
    let sheet = sheet(sheets, client)?;
    let collections = middle(sheet, plan.name(), "collections").filter(|count| *count > 0.0)?;
    Some(middle(sheet, plan.name(), metric)? / unit / collections)
}

fn table_3(lab: &Lab<'_>, sheets: &[Sheet]) -> Table {
    let mut columns = vec![
        ("client".to_owned(), "client".to_owned()),
        ("published_roots".into(), "1998:|roots".into()),
        ("published_promoted_pages".into(), "promoted|pages".into()),
        ("published_roots_a_page".into(), "roots|a page".into()),
        ("published_fragmentation_kb".into(), "lost|KB".into()),
    ];
    for plan in lab.plans() {
        let name = plan.name();
        columns.extend([
            (format!("{name}_roots"), format!("{name}:|roots")),
            (format!("{name}_rooted_blocks"), "in|blocks".to_owned()),
            (format!("{name}_roots_a_block"), "roots|a block".to_owned()),
        ]);
        if moves(plan) {
            columns.push((format!("{name}_promoted_blocks"), "promoted|blocks".to_owned()));
            columns.push((format!("{name}_promoted_free_kib"), "free there|KiB".to_owned()));
        }
    }
    let mut table = table_of("Table 3: averages a collection", &columns);
    for client in &CLIENTS {
        let then = client.published().roots;
        let mut row = vec![Value::text(client.title)];
        row.extend([then.roots, then.pages, then.a_page, then.lost_kb].map(Value::Number));
        for plan in lab.plans() {
            let count = |metric: &str, unit| a_collection(sheets, client.name, plan, metric, unit);
            let (roots, blocks) = (count("roots_found", 1.0), count("rooted_blocks", 1.0));
            let a_block = roots.zip(blocks).map(|(roots, blocks)| roots / blocks);
            row.extend([roots, blocks, a_block].map(Value::of));
            if moves(plan) {
                let free = count("promoted_free_bytes", KIB);
                row.extend([count("promoted_blocks", 1.0), free].map(Value::of));
            }
        }
        table.rows.push(row);
    }
    table
}

const fn moves(plan: Collector) -> bool {
    matches!(plan, Collector::Vellum(Plan::MostlyCopying))
}

fn figure_4(sheets: &[Sheet], plan: &str) -> Figure {
    let series = PHASES.iter().flat_map(|(phase, metric, parts)| {
        let ours = CLIENTS.iter().enumerate();
        let ours =
            ours.filter_map(|(at, client)| Some((at as f64, share(sheets, client.name, plan, metric)?)));
        let then = CLIENTS.iter().enumerate().map(|(at, client)| (at as f64, published(client, parts)));
        [
            Series::bars(format!("{phase}, {plan}"), ours.collect()),
            Series::bars(format!("{phase}, MCC 1998"), then.collect()),
        ]
    });
    Figure {
        name: "smith-figure4".into(),
        title: "Figure 4: share of the collections' time".into(),
        x: Axis::Names("client".into(), CLIENTS.map(|client| client.title.to_owned()).to_vec()),
        y: Axis::Linear("percent".into()),
        series: series.collect(),
    }
}
