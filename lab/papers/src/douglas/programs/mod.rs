//! Douglas 2011, Table 2: whole programs, unmodified, with and without Vellum.
//!
//! Each row answers two questions:
//!
//! - How much CPU time could be saved at all? The **ceiling** is the number of minor faults times the CPU
//!   time of one first touch of an anonymous page. The faults are those of the program under glibc, minus
//!   those of the same program on a trivial input. The first touch is measured by turns with the programs.
//! - How much is saved? The result is the CPU time saved, as a share of the ceiling. The share can exceed 1,
//!   as Vellum also saves the cost of glibc's own bookkeeping.
//!
//! CPU time is user and system time of the program and all its children. Peak memory is that of the largest
//! process.

mod rows;
mod sources;

use super::bench::Bench;
use crate::finding::table_by;
use crate::{Axis, Bound, Figure, Finding, Goal, Series, Table, Value};
use rows::Row;
use vellum_campaign::cells::{cell, middle, ratio, sheet, twin};
use vellum_campaign::{Arm, Cell, GLIBC, Launch, Sheet, VELLUM};
use vellum_measure::Interval;

const CPU: &str = "process_cpu_ns";
const FAULTS: &str = "process_minor_faults";
const PEAK: &str = "process_peak_bytes";
/// The cell that measures the cost of a first touch.
const TOUCH: &str = "touch";
/// Bytes that the host of a virtual machine must back before each program: somewhat more than the largest row
/// uses.
const BACKED: usize = 1 << 30;
/// Goal: the recovered share of the ceiling.
const RECOVERED: f64 = 0.5;
/// Goals: peak memory at most this many times glibc's,
const PEAK_TIMES: f64 = 1.05;
/// or this many bytes above it.
const PEAK_ABOVE: f64 = (4 << 20) as f64;
const MIB: f64 = (1 << 20) as f64;

pub(super) fn run(bench: &mut Bench<'_>) -> Finding {
    let mut finding = Finding::new(
        "programs",
        "Whole programs",
        "Table 2",
        "Published: G++ +1.19 to +5.68 %, Python -0.41 to +1.73 %, a solver +0.58 to +1.41 %; mean +1.88 %, median +1.20 %.",
        Vec::new(),
    );
    let prepared =
        tempfile::tempdir().and_then(|folder| Ok((rows::rows(bench.scale, folder.path())?, folder)));
    let ((rows, notes), _folder) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => {
            finding
                .notes
                .push(format!("the inputs could not be written to the temporary directory: {error}"));
            return finding;
        }
    };
    finding.notes.extend(notes);
    let sheets = bench.campaign(&cells(bench, &rows));
    let touch_ns = sheet(&sheets, TOUCH).and_then(|sheet| middle(sheet, TOUCH, "touch_cpu_ns"));
    let judged: Vec<Judged> =
        rows.iter().map(|row| Judged::new(row, &sheets, touch_ns.unwrap_or(f64::NAN), bench.seed)).collect();

    if let Some(touch_ns) = touch_ns {
        finding
            .notes
            .push(format!("one first touch of an anonymous page costs {touch_ns:.0} ns of CPU time here"));
    }
    finding.notes.push("improvement: CPU time saved, of glibc's; ceiling: what faults and clearing cost under glibc, of its CPU time".into());
    finding.tables.push(table(&judged));
    judged.iter().for_each(|row| finding.goals.extend(row.goals()));
    finding.figures = figures(&judged);
    finding.keep(&sheets);
    finding
}

fn cells(bench: &Bench<'_>, rows: &[Row]) -> Vec<Cell> {
    let rounds = bench.scale.pick(9, 3, 1);
    let arm = |label: String, launch: Launch| Arm { label, launch };
    // A program that grows for seconds needs more memory than the host has backed at its start: as much as
    // the largest row uses.
    let prepare = bench.backing(bench.scale.pick(BACKED, BACKED / 4, 0));
    let mut cells = vec![cell(TOUCH, bench.scale.pick(15, 7, 1), vec![bench.arm(TOUCH, TOUCH, &[])])];
    for row in rows {
        let mut arms = vec![arm(GLIBC.to_owned(), row.launch.clone()), arm(twin(GLIBC), row.launch.clone())];
        if let Some(vellum) = bench.peer(VELLUM) {
            let preload = vellum.library.clone();
            arms.push(arm(VELLUM.to_owned(), Launch { preload, ..row.launch.clone() }));
        }
        cells.push(Cell { prepare: prepare.clone(), ..cell(row.name.clone(), rounds, arms) });
        let (trivial, launch) = &row.trivial;
        if !cells.iter().any(|cell| cell.name == *trivial) {
            cells.push(cell(*trivial, 3.min(rounds), vec![arm(GLIBC.to_owned(), launch.clone())]));
        }
    }
    cells
}

/// A row with the figures of its runs.
struct Judged {
    name: String,
    published: &'static str,
    cpu_ns: Option<f64>,
    peak: Option<(f64, f64)>,
    faults: Option<f64>,
    /// Vellum's CPU time over glibc's.
    time: Option<Interval>,
    control: Option<Interval>,
    ceiling_ns: Option<f64>,
}

impl Judged {
    fn new(row: &Row, sheets: &[Sheet], touch_ns: f64, seed: u64) -> Self {
        let own = sheet(sheets, &row.name);
        let of = |arm: &str, metric: &str| middle(own?, arm, metric);
        let trivial = sheet(sheets, row.trivial.0).and_then(|sheet| middle(sheet, GLIBC, FAULTS));
        let faults = of(GLIBC, FAULTS).zip(trivial).map(|(all, start)| (all - start).max(0.0));
        let over = |arm: &str| ratio(own?, (arm, CPU), (GLIBC, CPU), seed);
        Self {
            name: row.name.clone(),
            published: row.published,
            cpu_ns: of(GLIBC, CPU),
            peak: of(GLIBC, PEAK).zip(of(VELLUM, PEAK)),
            faults,
            time: over(VELLUM),
            control: over(&twin(GLIBC)),
            ceiling_ns: faults.map(|faults| faults * touch_ns).filter(|ns| ns.is_finite()),
        }
    }

    /// CPU time saved, in percent of glibc's.
    fn improvement(&self) -> Option<Interval> {
        self.time.map(|time| saved(time, 100.0))
    }

    /// The ceiling as a share of the CPU time.
    fn ceiling(&self) -> Option<f64> {
        Some(self.ceiling_ns? / self.cpu_ns?)
    }

    /// CPU time saved as a share of the ceiling.
    fn recovered(&self) -> Option<Interval> {
        let ceiling = self.ceiling().filter(|share| *share > 0.0)?;
        self.time.map(|time| saved(time, 1.0 / ceiling))
    }

    /// The difference between two runs of the same program, in percent.
    fn noise(&self) -> Option<f64> {
        self.control.map(|c| (c.high - 1.0).abs().max((c.low - 1.0).abs()) * 100.0)
    }

    fn goals(&self) -> Vec<Goal> {
        let peak = self.peak.map(|(glibc, ours)| (ours - (glibc * PEAK_TIMES).max(glibc + PEAK_ABOVE)) / MIB);
        let noise = self.noise().unwrap_or(0.0);
        // A row is slower if its whole interval is, by more than two runs of the same program differ.
        let slower = self.improvement().map(|saved| -saved.high);
        vec![
            Goal::within(
                format!("{}: recovered share", self.name),
                "",
                Bound::AtLeast(RECOVERED),
                self.recovered(),
            ),
            Goal::of(format!("{}: slower by at least", self.name), " %", Bound::AtMost(noise), slower),
            Goal::of(format!("{}: peak less the allowed peak", self.name), " MiB", Bound::AtMost(0.0), peak),
        ]
    }
}

/// One minus the ratio, times `scale`.
fn saved(ratio: Interval, scale: f64) -> Interval {
    let of = |ratio: f64| (1.0 - ratio) * scale;
    Interval { estimate: of(ratio.estimate), low: of(ratio.high), high: of(ratio.low) }
}

fn table(rows: &[Judged]) -> Table {
    let verdicts = |row: &Judged| {
        let words: Vec<&str> = row.goals().iter().map(|goal| goal.verdict.word()).collect();
        words.join(" / ")
    };
    let improvement = |row: &Judged| row.improvement().map_or(Value::Nothing, Value::PercentRange);
    table_by(
        "Table 2: whole programs, CPU time",
        rows,
        &[
            ("test", "test", &|row| Value::text(&*row.name)),
            ("published", "published|(its like)", &|row| Value::text(row.published)),
            ("peak_glibc_mib", "peak MiB|glibc", &|row| Value::of(row.peak.map(|(glibc, _)| glibc / MIB))),
            ("peak_vellum_mib", "|vellum", &|row| Value::of(row.peak.map(|(_, ours)| ours / MIB))),
            ("cpu_s", "CPU s|glibc", &|row| Value::of(row.cpu_ns.map(|ns| ns / 1e9))),
            ("improvement_percent", "improvement|[95 %]", &improvement),
            ("control_percent", "A/A|within %", &|row| Value::of(row.noise())),
            ("faults", "faults|for memory", &|row| Value::of(row.faults)),
            ("ceiling_percent", "ceiling|% of CPU", &|row| Value::of(row.ceiling().map(|part| part * 100.0))),
            ("recovered", "recovered share|[95 %]", &|row| Value::ratio(row.recovered())),
            ("verdicts", "half / not slower / peak", &|row| Value::text(verdicts(row))),
        ],
    )
}

fn figures(rows: &[Judged]) -> Vec<Figure> {
    let short = |row: &Judged| row.name.split(',').next().unwrap_or_default().to_owned();
    let names: Vec<String> = rows.iter().map(short).collect();
    let points = |of: &dyn Fn(&Judged) -> Option<f64>| {
        rows.iter().enumerate().filter_map(|(place, row)| Some((place as f64, of(row)?))).collect::<Vec<_>>()
    };
    vec![
        Figure {
            name: "douglas-table2".into(),
            title: "Table 2: CPU time saved, and what could be saved at all".into(),
            x: Axis::Names("program".into(), names.clone()),
            y: Axis::Linear("% of the CPU time under glibc".into()),
            series: vec![
                Series::bars("ceiling (faults, clearing)", points(&|row| Some(row.ceiling()? * 100.0))),
                Series::bars("saved by Vellum", points(&|row| Some(row.improvement()?.estimate))),
            ],
        },
        Figure {
            name: "douglas-table2-memory".into(),
            title: "Table 2: peak memory of the largest process".into(),
            x: Axis::Names("program".into(), names),
            y: Axis::Linear("MiB".into()),
            series: vec![
                Series::bars("glibc", points(&|row| Some(row.peak?.0 / MIB))),
                Series::bars("vellum", points(&|row| Some(row.peak?.1 / MIB))),
            ],
        },
    ]
}
