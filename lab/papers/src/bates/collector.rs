//! Bates 1999, Figures 5 to 9, and 12: the times of a garbage collector, and the delays that it causes in
//! clock readings (stamps).
//!
//! In the paper a stamp was a system call. It released the interpreter's lock, so that the collector could
//! run. This file repeats each figure with Vellum's collector on a heap of lists:
//!
//! | figure | in the paper | here |
//! | --- | --- | --- |
//! | 5, 6 | 1000 slices (steps of a collection), 50 blocks each | 1000 slices, 50 objects each |
//! | 7 | three epochs (whole collections) in idle time, 100 times | three collections, in such slices |
//! | 8, 9 | stamps; idle collection yields to ready threads | a second thread collects, yielding or not |
//! | 12 | stamps; collection is held off (may not run) | the second thread is held off |
//!
//! A thread declares itself blocked while it makes a stamp, so that the second thread may collect. The
//! program reports its writes to the heap (`tells_writes`), so no kernel feature need detect them.

use super::bases::{Bases, raw};
use super::drawn;
use super::stamp::{FILE, SlowStamp};
use crate::finding::table_by;
use crate::{Bound, Finding, Goal, Progress, Scale, Table, Value};
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
use vellum_gc as gc;
use vellum_measure::{MarkCause, Series, Unit};
use vellum_report::plot::{Kind, Plot, Subject};
use vellum_timing::clock::Clock;
use vellum_timing::marks;
use vellum_timing::record::{Detail, Recorder};

/// The paper's slice: 50 blocks of its heap, with one object in each.
const SLICE_OBJECTS: u32 = 50;
/// Slices of Figure 5.
const SLICES: usize = 1000;
/// The first slices, which Figure 6 shows.
const FIRST: usize = 200;
/// Epochs of idle collection.
const EPOCHS: u64 = 3;
/// Number of times the epochs are repeated.
const TIMES: usize = 100;
/// Stamps under each treatment; judged treatments repeat them until enough are delayed.
const STAMPS: usize = 4000;
/// Number of delayed stamps that is enough: if 40 are usual, a fifth of that is no chance result.
const DELAYED_ENOUGH: usize = 40;
/// Repetitions of the stamps, at most.
const TIMES_MAX: usize = 25;
/// Live objects of four words: 8 MiB.
const LIVE: usize = 1 << 18;
/// Bytes of garbage made before each stamp; the paper's stamp made some too.
const GARBAGE: usize = 128 << 10;
/// The longest time of idle collection without a check, in nanoseconds: the clock tick of the paper's
/// machine.
const IDLE_NS: u64 = 10_000_000;
/// The least time of a stamp in its blocking region, in nanoseconds. A waiting collector can begin in this
/// time, like the paper's, which waited for the interpreter.
const REGION_NS: f64 = 50_000.0;
/// A stamp that waited this long for the collector counts as delayed, in nanoseconds. The paper had delays of
/// 1 ms, and of 6 to 8 ms.
const DELAY_NS: f64 = 500_000.0;
/// Bound of the delays when the collector yields, over those when it does not.
const GIVING_WAY_MAX: f64 = 0.2;

/// What the collector does while stamps are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Treatment {
    None,
    Stubborn,
    GivesWay,
    Held,
}

const TREATMENTS: [(Treatment, &str); 4] = [
    (Treatment::None, "no collector"),
    (Treatment::Stubborn, "idle collection, not giving way"),
    (Treatment::GivesWay, "idle collection, giving way"),
    (Treatment::Held, "idle collection, held off"),
];

pub(super) fn run(bases: &Bases, scale: Scale, progress: &mut dyn FnMut(Progress<'_>)) -> Finding {
    let mut finding = Finding::new(
        "collector",
        "A collector at work in the process that measures",
        "Figures 5 to 9, and 12",
        "Published: a slice of 50 blocks mostly short, one in a regular pattern about 1 ms; three epochs of idle collection take \
            as long as the 6 to 8 ms delays of stamps; when idle collection gives way to ready threads these are gone and 1 ms \
            delays stay; with collection held off, none.",
        Vec::new(),
    );
    let config = gc::Config { tells_writes: true, ..gc::Config::DEFAULT };
    // The heap is made once in a process; a second run of this experiment reuses it.
    let _ = gc::init(config);
    let Some(heap) = Lists::new(scale.pick(LIVE, LIVE / 4, LIVE / 64)) else {
        finding.notes.push("not here: no memory for a collected heap".into());
        return finding;
    };
    let clock = bases.best;
    let mut tell = |done, what| progress(Progress { experiment: "collector", done, total: 3, what });
    tell(0, "slices");
    let slices = slices(&clock, scale.pick(SLICES, SLICES, 50));
    tell(1, "epochs");
    let epochs = epochs(&clock, scale.pick(TIMES, TIMES / 4, 2));
    tell(2, "stamps");
    let stamps = stamps(&clock, scale.pick(STAMPS, STAMPS / 4, 40));
    drop(heap);

    finding.tables.push(durations_table(&slices, &epochs));
    finding.runs.push(
        json!({ "cell": "slices", "arm": "50 objects", "round": 0, "metrics": { "values_ns": slices } }),
    );
    finding
        .runs
        .push(json!({ "cell": "epochs", "arm": "3 epochs", "round": 0, "metrics": { "values_ns": epochs } }));
    match &stamps {
        Ok(stamps) => {
            finding.tables.push(stamps_table(stamps));
            finding.goals.push(giving_way(stamps));
            finding.notes.extend(too_few(stamps));
            finding.runs.extend(stamps.iter().map(|(treatment, series)| {
                json!({ "cell": "stamp", "arm": words(*treatment), "round": 0, "metrics": { "values_ns": raw(series) } })
            }));
        }
        Err(error) => finding.notes.push(format!("no stamps were made: {error}")),
    }
    finding.notes.push(format!(
        "a stamp reads {FILE} in a blocking region of {}, in which a second thread may collect; one that waits {} or more to come out of it is delayed",
        Unit::Nanoseconds.scaled(REGION_NS),
        Unit::Nanoseconds.scaled(DELAY_NS)
    ));
    finding.notes.push(
        "what a stamp waited for is known by the collector's marks: delays of other programs' making are in the times, \
            and not among those"
            .into(),
    );
    finding.drawings = drawings(&slices, &epochs, stamps.ok().as_deref());
    finding
}

fn words(treatment: Treatment) -> &'static str {
    TREATMENTS.iter().find(|(one, _)| *one == treatment).map_or("", |(_, words)| words)
}

/// Live linked lists: the words that lead to them are roots until this value is dropped.
struct Lists {
    heads: Box<[usize]>,
}

/// Number of lists over which the objects are distributed.
const HEADS: usize = 64;

impl Lists {
    fn new(objects: usize) -> Option<Lists> {
        let mut lists = Lists { heads: vec![0; HEADS].into_boxed_slice() };
        let range = lists.heads.as_ptr_range();
        // SAFETY: the places are in a box that lives until `drop` removes the roots.
        unsafe { gc::add_roots(range.start.cast(), range.end.cast()) }.ok()?;
        for object in 0..objects {
            let new = gc::alloc(32).cast::<usize>();
            if new.is_null() {
                return None;
            }
            let head = &mut lists.heads[object % HEADS];
            // SAFETY: `new` is a new object of four words.
            unsafe { gc::write(new, *head) };
            // A volatile write, since the compiler does not see that the collector reads it.
            // SAFETY: `head` is a mutable reference into the box.
            unsafe { std::ptr::from_mut(head).write_volatile(new.expose_provenance()) };
        }
        Some(lists)
    }
}

impl Drop for Lists {
    fn drop(&mut self) {
        let range = self.heads.as_ptr_range();
        gc::remove_roots(range.start.cast(), range.end.cast());
    }
}

/// The times of `count` slices, in nanoseconds.
fn slices(clock: &Clock, count: usize) -> Vec<f64> {
    (0..count)
        .map(|_| {
            let begun = clock.stamp();
            gc::step(SLICE_OBJECTS);
            clock.between(begun, clock.stamp())
        })
        .collect()
}

/// The times of three collections in slices, in nanoseconds, `count` times.
fn epochs(clock: &Clock, count: usize) -> Vec<f64> {
    (0..count)
        .map(|_| {
            let begun = clock.stamp();
            let last = gc::stats().collections + EPOCHS;
            while gc::stats().collections < last {
                gc::step(SLICE_OBJECTS);
            }
            clock.between(begun, clock.stamp())
        })
        .collect()
}

/// The collector's hook: records each pause as a mark.
unsafe extern "C" fn note(kind: i32, start_ns: u64, end_ns: u64) {
    let kind = if kind == MARK_IDLE { marks::Kind::IDLE } else { marks::Kind::MAJOR };
    marks::record(kind, start_ns, end_ns);
}

/// The kind that the hook gets for an idle slice.
const MARK_IDLE: i32 = 2;

type Stamps = Vec<(Treatment, Series)>;

/// `count` stamps under each treatment.
fn stamps(clock: &Clock, count: usize) -> Result<Stamps, Box<dyn std::error::Error>> {
    let stamp = SlowStamp::open()?;
    let (mut found, mut times) = (Vec::new(), 1);
    let before = gc::on_pause(Some(note));
    for (treatment, words) in TREATMENTS {
        gc::give_way(treatment != Treatment::Stubborn);
        if treatment == Treatment::Held {
            gc::hold(true);
        }
        let over = AtomicBool::new(false);
        let enough = |series: &Series, made: usize| match treatment {
            Treatment::Stubborn => made == TIMES_MAX || delays(series) >= DELAYED_ENOUGH,
            Treatment::GivesWay => made >= times,
            Treatment::None | Treatment::Held => true,
        };
        let series = std::thread::scope(|scope| {
            if treatment != Treatment::None {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        gc::idle(IDLE_NS);
                        std::hint::spin_loop();
                    }
                });
            }
            let series = repeated(|| timed(clock, count, &stamp), enough);
            over.store(true, Ordering::Relaxed);
            // The thread ends without a join here: it waits for nothing that this thread holds.
            series
        });
        if treatment == Treatment::Held {
            gc::hold(false);
        }
        gc::give_way(true);
        let (mut series, made) = series?;
        if treatment == Treatment::Stubborn {
            times = made;
        }
        series.labels = vec![words.to_owned()];
        found.push((treatment, series));
    }
    gc::on_pause(before);
    Ok(found)
}

/// Repeats series until `enough` returns true; returns them as one series, with their number.
fn repeated<E>(
    mut make: impl FnMut() -> Result<Series, E>,
    enough: impl Fn(&Series, usize) -> bool,
) -> Result<(Series, usize), E> {
    let (mut all, mut made) = (make()?, 1);
    while !enough(&all, made) {
        let more = make()?;
        all.observations.extend(more.observations);
        all.marks.extend(more.marks);
        made += 1;
    }
    Ok((all, made))
}

fn timed(
    clock: &Clock,
    count: usize,
    stamp: &SlowStamp,
) -> Result<Series, vellum_timing::record::RecordError> {
    let mut recorder = Recorder::new(*clock, Detail::Stamps, count)?;
    for _ in 0..count {
        std::hint::black_box(gc::alloc_atomic(GARBAGE));
        recorder.repeat(1, || {
            gc::blocking(|| {
                let begun = clock.stamp();
                while clock.between(begun, clock.stamp()) < REGION_NS {
                    std::hint::spin_loop();
                }
                stamp.now()
            })
        });
    }
    Ok(recorder.finish("stamp"))
}

/// The value below which this share of the values lies; nothing without values.
fn quantile(values: &[f64], share: f64) -> Value {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = ((sorted.len() as f64 * share) as usize).min(sorted.len().saturating_sub(1));
    Value::of(sorted.get(at).copied())
}

fn durations_table(slices: &[f64], epochs: &[f64]) -> Table {
    let rows = [("a slice of 50 objects (Figures 5, 6)", slices), ("three epochs (Figure 7)", epochs)];
    table_by(
        "The collector's own time",
        &rows,
        &[
            ("what", "what", &|(what, _)| Value::text(*what)),
            ("times", "times", &|(_, values)| Value::Count(values.len())),
            ("min_ns", "min|ns", &|(_, values)| quantile(values, 0.0)),
            ("median_ns", "median|ns", &|(_, values)| quantile(values, 0.5)),
            ("p99_ns", "99 %|ns", &|(_, values)| quantile(values, 0.99)),
            ("max_ns", "max|ns", &|(_, values)| quantile(values, 1.0)),
        ],
    )
}

/// The time for which each stamp waited at the end of its region for an idle slice to end, in nanoseconds.
fn waits(series: &Series) -> Vec<f64> {
    let slices: Vec<_> = series.marks.iter().filter(|mark| mark.cause == MarkCause::Idle).collect();
    let wait = |from: u64, to: u64| {
        let first = slices.partition_point(|slice| slice.end_ns <= from);
        let over = slices[first..].iter().take_while(|slice| slice.start_ns < to);
        over.map(|slice| (slice.end_ns.min(to) - slice.start_ns.max(from)) as f64).sum()
    };
    let stamps = series.observations.iter();
    stamps.map(|one| wait(one.start_ns + REGION_NS as u64, one.start_ns + one.wall_ns as u64)).collect()
}

/// Number of stamps delayed by the collector.
fn delays(series: &Series) -> usize {
    waits(series).iter().filter(|ns| **ns >= DELAY_NS).count()
}

/// Number of delayed stamps in a thousand.
fn delayed(series: &Series) -> f64 {
    delays(series) as f64 * 1000.0 / series.observations.len().max(1) as f64
}

fn stamps_table(stamps: &Stamps) -> Table {
    let idle = |series: &Series| series.marks.iter().filter(|mark| mark.cause == MarkCause::Idle).count();
    let longest = |series: &Series| waits(series).into_iter().fold(0.0, f64::max);
    table_by(
        "A stamp in a blocking region (Figures 8, 9 and 12)",
        stamps,
        &[
            ("treatment", "collector", &|(treatment, _)| Value::text(words(*treatment))),
            ("stamps", "stamps", &|(_, series)| Value::Count(series.observations.len())),
            ("min_ns", "min|ns", &|(_, series)| quantile(&raw(series), 0.0)),
            ("median_ns", "median|ns", &|(_, series)| quantile(&raw(series), 0.5)),
            ("p99_ns", "99 %|ns", &|(_, series)| quantile(&raw(series), 0.99)),
            ("max_ns", "max|ns", &|(_, series)| quantile(&raw(series), 1.0)),
            ("idle_slices", "idle|slices", &|(_, series)| Value::Count(idle(series))),
            ("waited_ns", "longest wait|for it, ns", &|(_, series)| Value::Number(longest(series))),
            ("delayed_per_mille", "delayed by it|of 1000", &|(_, series)| Value::Number(delayed(series))),
        ],
    )
}

/// The reason why yielding is not judged, if it is not.
fn too_few(stamps: &Stamps) -> Option<String> {
    let (_, series) = stamps.iter().find(|(one, _)| *one == Treatment::Stubborn)?;
    let (delayed, made) = (delays(series), series.observations.len());
    (delayed < DELAYED_ENOUGH).then(|| {
        format!("only {delayed} of {made} stamps were delayed when collection does not give way: too few to judge by")
    })
}

fn giving_way(stamps: &Stamps) -> Goal {
    let of = |wanted| stamps.iter().find(|(one, _)| *one == wanted).map(|(_, series)| series);
    let ratio = of(Treatment::GivesWay)
        .zip(of(Treatment::Stubborn).filter(|series| delays(series) >= DELAYED_ENOUGH))
        .map(|(gives, stubborn)| delayed(gives) / delayed(stubborn));
    let what = "delayed stamps when idle collection gives way / when not";
    Goal::of(what, "", Bound::AtMost(GIVING_WAY_MAX), ratio)
}

fn drawings(
    slices: &[f64],
    epochs: &[f64],
    stamps: Option<&[(Treatment, Series)]>,
) -> Vec<(&'static str, Plot)> {
    let plot = |name, kind, values: Vec<f64>, title: &str| {
        let subject = Subject::new("collector", values);
        let plot = Plot::new(kind, Series::TIME, Unit::Nanoseconds, vec![subject]);
        (name, plot.map(|plot| plot.title(title)))
    };
    let of = |wanted: Treatment| -> Vec<f64> {
        let series = stamps.into_iter().flatten().find(|(one, _)| *one == wanted);
        series.map(|(_, series)| raw(series)).unwrap_or_default()
    };
    let first = |values: Vec<f64>| values.into_iter().take(FIRST).collect::<Vec<f64>>();
    drawn([
        plot("bates-figure5", Kind::Order, slices.to_vec(), "Figure 5: slices of 50 objects"),
        plot("bates-figure6", Kind::Order, first(slices.to_vec()), "Figure 6: the first 200"),
        plot("bates-figure7", Kind::Order, epochs.to_vec(), "Figure 7: three epochs"),
        plot(
            "bates-figure8",
            Kind::Order,
            of(Treatment::GivesWay),
            "Figure 8: a stamp, idle collection giving way",
        ),
        plot("bates-figure9", Kind::Order, first(of(Treatment::GivesWay)), "Figure 9: the first 200"),
        plot(
            "bates-figure8-before",
            Kind::Order,
            of(Treatment::Stubborn),
            "Before Figure 8: idle collection not giving way",
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use vellum_measure::{Mark, Observation};

    /// A series of `count` stamps, of which `delayed` waited for a slice.
    fn series(count: usize, delayed: usize) -> Series {
        let (stamp_ns, start) = (2.0 * DELAY_NS, |place: usize| place as u64 * 10 * DELAY_NS as u64);
        let observations = (0..count).map(|place| Observation {
            start_ns: start(place),
            wall_ns: stamp_ns,
            ..Observation::default()
        });
        let marks = (0..delayed).map(|place| {
            let (start_ns, end_ns) = (start(place), start(place) + stamp_ns as u64);
            Mark { start_ns, end_ns, cause: MarkCause::Idle }
        });
        Series { observations: observations.collect(), marks: marks.collect(), ..Series::default() }
    }

    #[test]
    fn stamps_repeat_until_enough_are_delayed() {
        let enough = |all: &Series, made: usize| made == TIMES_MAX || delays(all) >= DELAYED_ENOUGH;
        let made = |delayed| repeated(|| Ok::<_, ()>(series(100, delayed)), enough).unwrap();
        let (all, times) = made(15);
        assert_eq!((all.observations.len(), times), (300, 3));
        assert_eq!(made(0).1, TIMES_MAX);
    }

    #[test]
    fn too_few_delays_give_no_verdict() {
        let of = |stubborn, gives| {
            vec![(Treatment::Stubborn, series(4000, stubborn)), (Treatment::GivesWay, series(4000, gives))]
        };
        let few = of(5, 0);
        assert!(too_few(&few).unwrap().contains("only 5 of 4000"));
        assert_eq!(giving_way(&few).found, None);
        let many = of(50, 2);
        assert_eq!(too_few(&many), None);
        assert!((giving_way(&many).found.unwrap() - 0.04).abs() < 1e-9);
    }
}
