//! Builds the report of `vellum run` from the data that were observed during the run.

use super::launch::{Observed, Plan};
use super::report::{
    Attachment, Faults, Memory, PAGE_BYTES, Pages, PeakParts, Process, Report, SCHEMA, Samples, Sampling,
    SizeBucket, Standing, Stranger, Survivor, Time,
};
use crate::failure::Failure;
use crate::heap;
use crate::outcome::Outcome;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, UNIX_EPOCH};
use vellum_process::Point;
use vellum_wire::{Attach, Counter, SIZE_BUCKETS, Slot, size_bucket_floor};

/// The report of one run on Vellum.
///
/// # Errors
/// If a profile was kept and cannot be read.
pub(crate) fn report(plan: &Plan, observed: &Observed) -> Result<Report, Failure> {
    let slots = observed.board.as_deref().map(|board| board.claimed()).unwrap_or_default();
    let usage = &observed.ended.usage;
    let series = &observed.sampled.series;
    let largest = usage.largest_process.0;
    let peak_bytes = series.peak().map_or(largest, |peak| peak.0.max(largest));
    let attachment = attachment(plan, observed, slots);
    let survivors = observed.sampled.survivors.iter();
    let survivors = survivors.map(|(pid, name)| Survivor { pid: pid.0, name: name.clone() });
    let heap = heap::profile(plan, observed, &heap::Scope::default())?;
    Ok(Report {
        schema: SCHEMA,
        vellum_version: env!("CARGO_PKG_VERSION"),
        command: plan.argv.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        program: plan.program.display().to_string(),
        started_unix_ns: observed.started.duration_since(UNIX_EPOCH).map_or(0, nanos),
        outcome: Outcome::of(observed.ended.outcome),
        exit_status: observed.ended.outcome.shell_status(),
        time: Time {
            wall_ns: nanos(observed.ended.wall),
            user_ns: nanos(usage.user),
            system_ns: nanos(usage.system),
            voluntary_switches: usage.voluntary_switches,
            involuntary_switches: usage.involuntary_switches,
        },
        memory: Memory {
            peak_bytes,
            largest_process_peak_bytes: largest,
            average_bytes: series.average().map(|average| average.0),
            at_peak: series
                .at_peak()
                .map(|at| PeakParts::of(peak_bytes, at.resident.0, at.files.0, at.cached.0)),
        },
        faults: Faults { minor: usage.minor_faults, major: usage.major_faults },
        attachment,
        pages: pages(slots),
        frames_asked: plan.frames.map(|bytes| bytes / PAGE_BYTES),
        processes: processes(observed, slots),
        survivors: survivors.collect(),
        sampling: Sampling { looks: series.looks(), cost_ns: nanos(observed.sampled.cost) },
        working_set: observed.working_set.as_ref().and_then(|found| found.as_ref().ok()).cloned(),
        heap: heap.map(Box::new),
        missing: missing(observed),
        samples: samples(series.points()),
    })
}

fn attachment(plan: &Plan, observed: &Observed, slots: &[Slot]) -> Attachment {
    // The program may have called exec: its last slot is that of the last program.
    let own = slots.iter().rev().find(|slot| slot.pid.load(Relaxed) == observed.pid.0 as u32);
    let program = match own {
        Some(slot) => standing(slot),
        None if !plan.preloads() => Standing::NotPreloaded,
        None => Standing::NoAnswer,
    };
    let reason = match program {
        Standing::Serving => None,
        Standing::OwnAllocator => Some("the program has its own allocator".to_owned()),
        Standing::MemoryChecker => Some("the program runs under a memory checker".to_owned()),
        Standing::Disabled => Some("VELLUM_DISABLE is set".to_owned()),
        Standing::Unsuited => Some("this kernel's pages are not of 4 KiB".to_owned()),
        Standing::Claimed => Some("the program ended before the library was set up".to_owned()),
        Standing::NotPreloaded | Standing::NoAnswer => Some(match plan.obstacle {
            Some(obstacle) => format!("it is {}", obstacle.words()),
            None if observed.board.is_none() => "no statistics board could be made".to_owned(),
            None => "the library did not report (was LD_PRELOAD changed, or can the library not be loaded?)"
                .to_owned(),
        }),
    };
    let strangers = observed.sampled.strangers.iter().map(|stranger| Stranger {
        name: stranger.comm.clone(),
        processes: stranger.count.into(),
        obstacle: stranger.why.map(|why| why.name()),
        words: stranger.why.map(|why| why.words()),
    });
    Attachment {
        library: plan.library.display().to_string(),
        program,
        reason,
        seated_processes: slots.len() as u64,
        serving_processes: slots.iter().filter(|slot| slot.attach() == Attach::Serving).count() as u64,
        unseated_processes: observed.board.as_ref().map_or(0, |board| board.unseated().into()),
        strangers: strangers.collect(),
    }
}

fn standing(slot: &Slot) -> Standing {
    match slot.attach() {
        Attach::Serving => Standing::Serving,
        Attach::OwnAllocator => Standing::OwnAllocator,
        Attach::MemoryChecker => Standing::MemoryChecker,
        Attach::Disabled => Standing::Disabled,
        Attach::Unsuited => Standing::Unsuited,
        Attach::Claimed => Standing::Claimed,
    }
}

/// Sums of counters over all slots, or the highest of a peak. Gauges of the current state are omitted, as the
/// processes have ended.
fn pages(slots: &[Slot]) -> Pages {
    let mut counters = BTreeMap::new();
    for counter in lasting_counters() {
        let values = slots.iter().map(|slot| slot.get(counter));
        // Processes reach their peaks at different times, so a sum of peaks would be wrong.
        let over_all = if counter.is_peak() { values.max().unwrap_or(0) } else { values.sum() };
        counters.insert(counter.name(), over_all);
    }
    let block_sizes = (0..SIZE_BUCKETS).map(|bucket| SizeBucket {
        from_bytes: if bucket == 0 { 0 } else { size_bucket_floor(bucket) },
        below_bytes: size_bucket_floor(bucket + 1),
        blocks: slots.iter().map(|slot| slot.size_count(bucket)).sum(),
    });
    let block_sizes = block_sizes.filter(|bucket| bucket.blocks > 0).collect();
    let warm: u64 = slots.iter().map(|slot| slot.get(Counter::BytesWarm)).sum();
    Pages { counters, faults_avoided: warm / PAGE_BYTES, block_sizes }
}

fn lasting_counters() -> impl Iterator<Item = Counter> {
    Counter::ALL.iter().copied().filter(|counter| !counter.name().starts_with("now_"))
}

fn processes(observed: &Observed, slots: &[Slot]) -> Vec<Process> {
    // Slots have monotonic times, and this command's start is a wall-clock time: reading both clocks now
    // gives their difference.
    let monotonic_now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let monotonic_now = Duration::new(monotonic_now.tv_sec as u64, monotonic_now.tv_nsec as u32);
    let since_start = observed.started.elapsed().unwrap_or_default();
    let start = nanos(monotonic_now.saturating_sub(since_start));
    slots
        .iter()
        .map(|slot| Process {
            pid: slot.pid.load(Relaxed),
            name: String::from_utf8_lossy(&slot.comm_bytes()).trim_end_matches('\0').to_owned(),
            standing: standing(slot),
            attached_ns: slot.since_ns.load(Relaxed).saturating_sub(start),
            counters: lasting_counters()
                .map(|counter| (counter.name(), slot.get(counter)))
                .filter(|(_, value)| *value > 0)
                .collect(),
        })
        .collect()
}

/// The data that could not be obtained on this machine.
fn missing(observed: &Observed) -> Vec<String> {
    let mut missing = Vec::new();
    let sampled = &observed.sampled;
    if !sampled.readable {
        missing.push(
            "/proc cannot be read (or few files may be open: ulimit -n): no samples; the peak is the largest process's".to_owned(),
        );
    } else if sampled.series.looks() < 2 {
        missing.push("the run was too short to sample: the peak is the largest process's".to_owned());
    }
    // A run too short to sample is also too short for a curve; only one reason is reported.
    if missing.is_empty() {
        missing.extend(observed.working_set.as_ref().and_then(|found| found.as_ref().err()).cloned());
    }
    if let strays @ 1.. = sampled.strays.0 {
        missing.push(format!(
            "processes that outlived their parents: {strays}; their time and faults are those of their last sample"
        ));
    }
    missing
}

fn samples(points: &[Point]) -> Samples {
    let mut samples = Samples::default();
    for point in points {
        samples.at_ns.push(nanos(point.at));
        samples.processes.push(point.processes);
        samples.resident_bytes.push(point.resident.0);
        samples.resident_max_bytes.push(point.resident_max.0);
        samples.minor_faults.push(point.minor_faults);
        samples.major_faults.push(point.major_faults);
        samples.cached_bytes.push(point.cached.0);
        samples.live_bytes.push(point.live.0);
        samples.in_use_bytes.push(point.in_use.0);
        samples.free_in_slabs_bytes.push(point.free_in_slabs.0);
        samples.returned_bytes.push(point.returned.0);
        samples.extents_out.push(point.extents);
        samples.cache_hits.push(point.cache_hits);
        samples.warm_bytes.push(point.warm.0);
    }
    samples
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
