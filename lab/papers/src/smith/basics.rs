//! Smith 1998, Tables 2 and 5, Figure 3: the clients' allocations, their sizes, and the live share.
//!
//! A special build of the clients counts allocations, under libgc with the heap sizes of Table 2. Words
//! and objects are compared instead of MB: a word is twice as wide here, so MB would be twice the paper's.

use super::client::{CLIENTS, Client};
use super::lab::{Lab, keep};
use super::published::{Basics, WORD_BYTES};
use crate::finding::table_by;
use crate::workshop::{Build, Collector};
use crate::{Axis, Figure, Finding, Series, Table, Value};
use vellum_campaign::Sheet;
use vellum_campaign::cells::{cell, middle, sheet};

/// Bytes of a word here.
const OUR_WORD_BYTES: f64 = 8.0;
/// The arm without the cost of counting.
const TIMED: &str = "timed";
const SIZES: [&str; 4] = ["objects_1", "objects_2", "objects_3", "objects_4"];

pub(super) fn run(lab: &mut Lab<'_>) -> Finding {
    let label = Collector::Libgc.name();
    let cells: Vec<_> = CLIENTS
        .iter()
        .filter_map(|client| {
            let counted = lab.arm(label, client, Collector::Libgc, Build::Profile, client.heap_mib)?;
            let timed = lab.arm(TIMED, client, Collector::Libgc, Build::Plain, client.heap_mib)?;
            Some(cell(client.name, 1, vec![counted, timed]))
        })
        .collect();
    let sheets = lab.campaign(&cells);
    let mut finding = lab.finding(
        "What the clients allocate and keep",
        "Tables 2 and 5, Figure 3",
        "Published: ML programs compiled to C. Ours are written in C after their descriptions and made to allocate alike; \
         lab/papers/clients/README.md says where they depart.",
    );
    finding.tables = vec![table_2(lab, &sheets), table_5(&sheets)];
    finding.figures = vec![figure_3(&sheets)];
    keep(&mut finding, &sheets);
    finding
}

fn figure(sheets: &[Sheet], client: &str, metric: &str) -> Option<f64> {
    middle(sheet(sheets, client)?, Collector::Libgc.name(), metric)
}

fn table_2(lab: &Lab<'_>, sheets: &[Sheet]) -> Table {
    let title = "Table 2: published | ours; collections at the canonical heap size under libgc";
    let missing = " (libgc is not here: only what was published)";
    let ours = |client: &Client, metric: &str| figure(sheets, client.name, metric);
    let words = |client: &Client, metric: &str, unit: f64| {
        Value::of(ours(client, metric).map(|bytes| bytes / OUR_WORD_BYTES / unit))
    };
    let live =
        |client: &Client| ours(client, "live_objects").filter(|_| ours(client, "collections") != Some(0.0));
    let then = |client: &Client, of: fn(&Basics) -> f64| Value::Number(of(&client.published().basics));
    table_by(
        &[title, if lab.has(Collector::Libgc) { "" } else { missing }].concat(),
        &CLIENTS,
        &[
            ("client", "client", &|one| Value::text(one.title)),
            ("heap_mib", "heap|MiB", &|one| Value::Count(one.heap_mib as usize)),
            ("published_allocated_mwords", "alloc.|M words", &|one| {
                then(one, |basics| basics.allocated_mb / WORD_BYTES)
            }),
            ("allocated_mwords", "|ours", &|one| words(one, "allocated_bytes", 1e6)),
            ("published_live_kwords", "most live|K words", &|one| {
                then(one, |basics| basics.live_kb / WORD_BYTES)
            }),
            ("live_kwords", "|ours", &|one| words(one, "live_bytes_max", 1e3)),
            ("published_collections", "# of|GCs", &|one| then(one, |basics| basics.collections)),
            ("collections", "|ours", &|one| Value::of(ours(one, "collections"))),
            ("published_collection_ms", "GC|ms", &|one| then(one, |basics| basics.collection_ms)),
            ("collection_ms", "|ours", &|one| Value::of(collection_ms(sheets, one.name))),
            ("published_live_objects", "live obj.|a GC", &|one| then(one, |basics| basics.live_objects)),
            ("live_objects", "|ours", &|one| Value::of(live(one))),
        ],
    )
}

/// The collector's time divided by the number of collections, including sweeping between them, as in the
/// paper.
fn collection_ms(sheets: &[Sheet], client: &str) -> Option<f64> {
    let sheet = sheet(sheets, client)?;
    let collections = middle(sheet, TIMED, "collections").filter(|count| *count > 0.0)?;
    Some(middle(sheet, TIMED, "collector_ns")? / collections / 1e6)
}

/// Percentage of objects of each size, and of atomic data.
fn shares(sheets: &[Sheet], client: &str) -> Option<[f64; 5]> {
    let mut counts = [0.0; 5];
    for (count, metric) in counts.iter_mut().zip(SIZES.into_iter().chain(["atomic"])) {
        *count = figure(sheets, client, metric)?;
    }
    let all: f64 = counts[..4].iter().sum();
    (all > 0.0).then(|| counts.map(|count| count / all * 100.0))
}

fn table_5(sheets: &[Sheet]) -> Table {
    let columns: Vec<(String, String)> = ["1", "2", "3", "4plus", "atomic"]
        .iter()
        .flat_map(|size| {
            let head = size.replace("plus", "+");
            [
                (format!("published_{size}_percent"), format!("{head}|%")),
                (format!("ours_{size}_percent"), "|ours".to_owned()),
            ]
        })
        .collect();
    let mut all = vec![("client", "client")];
    all.extend(columns.iter().map(|(key, head)| (key.as_str(), head.as_str())));
    let mut table = Table::new("Table 5: objects by words, and without pointers, percent", &all);
    for client in &CLIENTS {
        let ours = shares(sheets, client.name);
        let mut row = vec![Value::text(client.title)];
        for (at, published) in client.published().sizes.into_iter().enumerate() {
            row.extend([Value::Number(published), Value::of(ours.map(|ours| ours[at]))]);
        }
        table.rows.push(row);
    }
    table
}

fn figure_3(sheets: &[Sheet]) -> Figure {
    let points = |at: usize| {
        let share = |(place, name)| Some((place as f64, shares(sheets, name)?[at]));
        CLIENTS.iter().map(|client| client.name).enumerate().filter_map(share).collect()
    };
    let labels = ["1 word", "2 words", "3 words", "4 and more", "atomic"];
    Figure {
        name: "smith-figure3".into(),
        title: "Figure 3: objects by size".into(),
        x: Axis::Names("client".into(), CLIENTS.map(|client| client.title.to_owned()).to_vec()),
        y: Axis::Linear("percent of objects".into()),
        series: labels.iter().enumerate().map(|(at, label)| Series::bars(*label, points(at))).collect(),
    }
}
