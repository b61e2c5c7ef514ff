//! Smith 1998, Table 7, Figure 1: the clients' time in heaps of 1 to 64 MiB, and the collector's part of it.
//!
//! The paper printed seconds of wall time on its machine; here time is CPU time, so only ratios are
//! compared. The paper's ratios are those of its two collectors, MCC over BDW. Ours are each of Vellum's
//! plans (algorithms) over libgc in the same round. The collector's part is the time outside the inlined
//! fast path of an allocation. A heap that is too small has no figure, as in the paper.

use super::client::{CLIENTS, Client};
use super::lab::{CPU, Lab, Place, View, keep, name, sum};
use crate::finding::table_of;
use crate::workshop::{Build, Collector, Plan};
use crate::{Axis, Bound, Figure, Finding, Goal, Series, Table, Value};
use vellum_campaign::cells::{cell, geomean, middle, sheet, twin};
use vellum_measure::Interval;

/// Heap sizes of the paper, MiB.
const HEAPS: &[u64] = &[1, 2, 4, 8, 12, 16, 24, 32, 48, 64];
/// Heap sizes of a quick run: small, large, and each client's own.
const HEAPS_QUICK: &[u64] = &[4, 64];
const HEAPS_TINY: &[u64] = &[];

/// Decimal digits of seconds, in 1998 and on today's machines.
const THEN: usize = 2;
const NOW: usize = 3;

/// A plan's goals, as ratios of total time to libgc's: at the canonical sizes, at the smallest, anywhere.
const GOALS: [(Plan, f64, Option<f64>, f64); 2] =
    [(Plan::MostlyCopying, 0.6, Some(0.85), 1.0), (Plan::MarkSweep, 0.75, None, 1.0)];
/// The copying plan runs in a heap of this many times the live data.
const ROOM: f64 = 2.0;

pub(super) fn run(lab: &mut Lab<'_>) -> Finding {
    let heaps = lab.scale.pick(HEAPS, HEAPS_QUICK, HEAPS_TINY);
    let rounds = lab.scale.pick(5, 3, 1);
    let mut cells = Vec::new();
    for client in &CLIENTS {
        for mib in client.sizes(heaps) {
            let mut arms = Vec::new();
            for collector in lab.here.clone() {
                arms.extend(lab.arm(collector.name(), client, collector, Build::Plain, mib));
                if collector == Collector::Libgc {
                    arms.extend(lab.arm(&twin(collector.name()), client, collector, Build::Plain, mib));
                }
            }
            cells.push((client, mib, cell(name((client, mib)), rounds, arms)));
        }
    }
    let plain: Vec<_> = cells.iter().map(|(_, _, cell)| cell.clone()).collect();
    let sheets = lab.campaign(&plain);
    let live = live_bytes(lab);
    let mut finding = lab.finding(
        "Client and collector time by heap size",
        "Table 7, Figure 1",
        "Published: overall MCC is between 25 % faster and 15 % slower than BDW; its collector is quicker in all but the \
         smallest heaps; it needs four and a half times as much room.",
    );
    let view = Times { view: View { sheets: &sheets, seed: lab.seed }, plans: lab.plans() };
    for (place, client) in CLIENTS.iter().enumerate() {
        let sizes: Vec<u64> =
            cells.iter().filter(|(other, ..)| other.name == client.name).map(|(_, mib, _)| *mib).collect();
        finding.tables.push(view.table(client, &sizes));
        finding.figures.push(view.figure(place, client, &sizes));
    }
    let all: Vec<(&Client, u64)> = cells.iter().map(|(client, mib, _)| (*client, *mib)).collect();
    for goal in GOALS {
        view.judge(goal, &all, &mut finding);
    }
    finding.goals.push(view.room(&all, &live));
    if let Some(control) = view.geomean(&twin(Collector::Libgc.name()), &canonical()) {
        finding.notes.push(format!(
            "A/A: libgc over itself, geometric mean over the clients at their canonical heaps: {}",
            Value::Ratio(control)
        ));
    }
    finding.notes.push(
        "seconds are CPU time, client + collector; '-' is a heap too small for the client (or a collector that is not here)"
            .into(),
    );
    keep(&mut finding, &sheets);
    finding
}

fn canonical() -> Vec<(&'static Client, u64)> {
    CLIENTS.iter().map(|client| (client, client.heap_mib)).collect()
}

/// The peak of live bytes of each client, measured by libgc at the canonical size.
fn live_bytes(lab: &mut Lab<'_>) -> Vec<Option<f64>> {
    let label = Collector::Libgc.name();
    let mut cells = Vec::new();
    for client in &CLIENTS {
        let arm = lab.arm(label, client, Collector::Libgc, Build::Profile, client.heap_mib);
        cells.push(cell(client.name, 1, arm.into_iter().collect()));
    }
    let sheets = lab.campaign(&cells);
    let most = |client: &Client| middle(sheet(&sheets, client.name)?, label, "live_bytes_max");
    CLIENTS.iter().map(|client| most(client).filter(|bytes| *bytes > 0.0)).collect()
}

struct Times<'s> {
    view: View<'s>,
    plans: Vec<Collector>,
}

impl Times<'_> {
    /// An arm's total time over libgc's.
    fn ratio(&self, at: Place<'_>, arm: &str) -> Option<Interval> {
        self.view.over(at, arm, CPU)
    }

    /// The geometric mean of such ratios, round by round. `None` if a cell lacks figures.
    fn geomean(&self, arm: &str, cells: &[Place<'_>]) -> Option<Interval> {
        let names = cells.iter().map(|at| name(*at));
        geomean(self.view.sheets, names, (arm, CPU), (Collector::Libgc.name(), CPU), self.view.seed)
    }

    fn table(&self, client: &Client, sizes: &[u64]) -> Table {
        let mut columns = vec![
            ("heap_mib".to_owned(), "heap|MiB".to_owned()),
            ("published_bdw_s".into(), "published: BDW|client + GC, s".into()),
            ("published_mcc_s".into(), "MCC|client + GC, s".into()),
            ("published_ratio".into(), "MCC /|BDW".into()),
            ("libgc_s".into(), "libgc|client + GC, s".into()),
        ];
        for plan in &self.plans {
            let name = plan.name();
            columns.push((format!("{name}_s"), format!("{name}|client + GC, s")));
            columns.push((format!("{name}_over_libgc"), format!("{name} /|libgc [95 %]")));
        }
        let mut table = table_of(&format!("Table 7: {}", client.title), &columns);
        for mib in sizes {
            let published = client.published().times.iter().find(|row| row.0 == *mib);
            let (bdw, mcc) = published.map_or((None, None), |row| (row.1, row.2));
            let split = |arm: &str| self.view.split((client, *mib), arm);
            let mut row =
                vec![Value::Count(*mib as usize), sum(bdw, THEN), sum(mcc, THEN), Value::of(over(mcc, bdw))];
            row.push(sum(split(Collector::Libgc.name()), NOW));
            for plan in &self.plans {
                row.push(sum(split(plan.name()), NOW));
                row.push(Value::ratio(self.ratio((client, *mib), plan.name())));
            }
            table.rows.push(row);
        }
        table
    }

    fn figure(&self, place: usize, client: &Client, sizes: &[u64]) -> Figure {
        let bytes = |mib: u64| (mib << 20) as f64;
        let published = client.published().times.iter();
        let published =
            published.filter_map(|(mib, bdw, mcc)| Some((bytes(*mib), over(*mcc, *bdw)?))).collect();
        let mut series = vec![Series::published("MCC / BDW, 1998", published)];
        for plan in &self.plans {
            let ratio = |mib: &u64| Some((bytes(*mib), self.ratio((client, *mib), plan.name())?.estimate));
            series.push(Series::line(
                format!("{} / libgc", plan.name()),
                sizes.iter().filter_map(ratio).collect(),
            ));
        }
        Figure {
            name: format!("smith-figure1{}", ('a'..).nth(place).unwrap_or_default()),
            title: format!("Figure 1: {}, client + collector", client.title),
            x: Axis::Bytes("heap".into()),
            y: Axis::Linear("total time, ratio".into()),
            series,
        }
    }

    fn judge(
        &self,
        (plan, canonical_max, smallest_max, worst_max): (Plan, f64, Option<f64>, f64),
        all: &[Place<'_>],
        finding: &mut Finding,
    ) {
        let plan = Collector::Vellum(plan).name();
        let mut demand = |what: String, max: f64, found: Option<Interval>| {
            finding.goals.push(Goal::within(what, "", Bound::AtMost(max), found));
        };
        let found = self.geomean(plan, &canonical());
        demand(format!("{plan} / libgc, total time, geomean at canonical heaps"), canonical_max, found);
        if let Some(max) = smallest_max {
            let smallest = |client: &'static Client| {
                let runs = |mib: &u64| self.ratio((client, *mib), plan).is_some();
                let of_client = all.iter().filter(|(other, _)| other.name == client.name);
                Some((client, of_client.map(|(_, mib)| *mib).find(runs)?))
            };
            let smallest: Option<Vec<_>> = CLIENTS.iter().map(smallest).collect();
            let found = smallest.and_then(|cells| self.geomean(plan, &cells));
            demand(format!("{plan} / libgc, geomean at the smallest heaps where both run"), max, found);
        }
        let (place, worst) = self.view.worst(all, plan, CPU);
        demand(format!("{plan} / libgc, the worst anywhere{place}"), worst_max, worst);
    }

    /// The number of heaps with twice the live data or more in which the copying plan does not run.
    fn room(&self, all: &[Place<'_>], live: &[Option<f64>]) -> Goal {
        let plan = Collector::Vellum(Plan::MostlyCopying);
        let what =
            format!("heaps of at least {ROOM} times the live data in which {} does not run", plan.name());
        let enough = |client: &Client, mib: u64| {
            let at = CLIENTS.iter().position(|other| other.name == client.name)?;
            Some((mib << 20) as f64 >= ROOM * live[at]?)
        };
        let fails = all.iter().filter(|(client, mib)| {
            enough(client, *mib) == Some(true)
                && self.view.figure((*client, *mib), plan.name(), CPU).is_none()
        });
        let found =
            (self.plans.contains(&plan) && live.iter().any(Option::is_some)).then(|| fails.count() as f64);
        Goal::of(what, "", Bound::AtMost(0.0), found)
    }
}

fn over(above: Option<(f64, f64)>, below: Option<(f64, f64)>) -> Option<f64> {
    let (above, below) = (above?, below?);
    Some((above.0 + above.1) / (below.0 + below.1))
}
