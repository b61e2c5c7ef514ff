//! References sampled by the kernel's data access monitor, at a cost that does not grow with the job.
//!
//! Why beside the other sources: it alone needs neither a stall nor a control group. Accessed bits and page
//! tables lock the mappings of a job of 1 TiB for some 20 s at each clearing. Generations need a control
//! group of version 2 that the job has to itself.
//!
//! The monitor (DAMON) draws a page from each of a number of regions, clears its accessed bit, and tests the
//! bit an interval later. Usually the interval is a few milliseconds, and regions are split and joined until
//! pages within each are used alike. Here the interval *is the window*, the regions are [`mod@strata`] of our
//! own, and each is sampled once:
//!
//! ```text
//! w(T) ≈ Σ bytes of the strata whose page was referenced within T     unbiased, whatever the strata
//! ```
//!
//! The standard error of a look is at most half the sampled memory divided by the root of the number of
//! strata: 1.1 % of the memory with [`STRATA`]. It is near zero where strata are used throughout or not at
//! all, as in large arrays. The error of the mean over cycles is less.
//!
//! | | |
//! | --- | --- |
//! | looks | one to a clearing, at a wall-clock time fixed beforehand. Kernel timers are up to an eighth late; the CPU time of the monitor's thread shows the end |
//! | cost | some 2 µs of the kernel's thread for each stratum and look, twice that where mappings have changed. Only one page a stratum loses its bit |
//! | stall | none: mappings are locked for reading, page by page |
//! | grain | pages, huge ones whole |
//!
//! References that are not seen: of processes that began after the clearing, until the next; in memory mapped
//! after it; `read` and `write`. DAMON's own statistics of regions are not used: they are averages over
//! neighbours.
//!
//! The kernel supports one monitor. If another process has set one up, this source is absent ([`available`]).

mod keeper;
mod monitor;
pub(crate) mod strata;

pub(super) use monitor::available;

use super::accessed::{REARM, thread_cpu};
use super::aside::Aside;
use super::stale::LEFT_BY_OTHERS;
use crate::source::{Count, Done, Source, SourceError, SourceKind, Spent, status};
use crate::target::Target;
use monitor::Monitor;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::time::{Duration, Instant};
use strata::{Stratum, areas, resident, strata};
use vellum_kernel::{Bytes, Pid};

pub(crate) const STRATA: usize = 2048;
/// More processes are not watched this way.
const PROCESSES_MAX: usize = 256;
/// The residency of the processes' memory is read once in this many clearings.
const WEIGH_EVERY: u32 = 64;
/// The shortest and the longest time to a look.
const AHEAD: [Duration; 2] = [Duration::from_millis(10), Duration::from_secs(24 * 3600)];
/// The kernel looks every tenth of a second whether the sample is there; a machine under load may take
/// longer.
const LATE: Duration = Duration::from_secs(5);
/// From this part of its sleep on, the CPU time of the kernel's thread is read …
const NEARLY: f64 = 0.8;
/// … and then again at intervals of this part of the sleep, to see whether it has woken up; until this part
/// has passed.
const LOOK_EVERY: f64 = 0.005;
const LATEST: f64 = 1.25;
/// The cost of a stratum, until it is measured.
const COUNT: Duration = Duration::from_micros(2);

/// Samples of the kernel's data access monitor.
#[derive(Debug)]
pub struct Damon {
    monitor: Monitor,
    aside: Aside,
    /// Resident memory of each process's mappings, by their first address.
    weights: HashMap<Pid, HashMap<u64, u64>>,
    weighed: u32,
    sample: Option<Sample>,
}

#[derive(Debug)]
struct Sample {
    began: Instant,
    ahead: Duration,
    /// The CPU time that the thread had used when it was seen asleep.
    asleep: Option<u64>,
}

impl Damon {
    /// Sets up a monitor, which lives as long as this.
    ///
    /// # Errors
    /// Why this kernel, this process's privilege, somebody else's monitor or the number of processes does not
    /// allow it.
    pub fn open(target: &Target) -> Result<Damon, String> {
        let processes = target.members(std::iter::empty()).len();
        if processes > PROCESSES_MAX {
            return Err(too_many(processes));
        }
        let monitor = Monitor::make()?;
        Ok(Damon { monitor, aside: Aside::default(), weights: HashMap::new(), weighed: 0, sample: None })
    }

    fn cut(&mut self, job: &[Pid], lost: &mut Vec<(Pid, SourceError)>) -> Vec<(Pid, Vec<Stratum>)> {
        if self.weighed == 0 {
            self.weights.clear();
        }
        self.weighed = (self.weighed + 1) % WEIGH_EVERY;
        let mut found = Vec::with_capacity(job.len());
        for pid in job {
            match self.areas(*pid) {
                Ok(areas) if areas.is_empty() => {}
                Ok(areas) => found.push((*pid, areas)),
                Err(SourceError::Ended(_)) => {}
                Err(error) => lost.push((*pid, error)),
            }
        }
        let weight = |areas: &[strata::Area]| areas.iter().map(|area| u128::from(area.weight)).sum::<u128>();
        let all = found.iter().map(|(_, areas)| weight(areas)).sum::<u128>().max(1);
        let free = (STRATA - found.len().min(PROCESSES_MAX)) as u128;
        let share = |areas: &[strata::Area]| 1 + (free * weight(areas) / all) as usize;
        found.into_iter().map(|(pid, areas)| (pid, strata(&areas, share(&areas)))).collect()
    }

    fn areas(&mut self, pid: Pid) -> Result<Vec<strata::Area>, SourceError> {
        let read = |name: &str, operation| {
            std::fs::read(pid.file(name)).map_err(|source| SourceError::of(operation, pid, source))
        };
        let weights = match self.weights.entry(pid) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(resident(&read("smaps", "read smaps")?).collect()),
        };
        let maps = read("maps", "read maps")?;
        Ok(areas(&maps, |start| weights.get(&start).copied()))
    }

    fn held(&mut self, job: &[Pid]) -> Result<(Count, usize), SourceError> {
        let (mut held, mut reached) = (Count::default(), 0);
        self.aside.begin(job);
        for pid in job {
            let of = status(*pid).and_then(|status| Ok((status, self.aside.of(*pid)?)));
            match of {
                Ok((status, aside)) => {
                    held += Count {
                        resident: status.resident,
                        swapped: status.swapped,
                        huge: aside.huge.min(status.resident),
                        shared: aside.shared,
                        referenced: Bytes(0),
                        twice: Bytes(0),
                    };
                    reached += 1;
                }
                Err(SourceError::Ended(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok((held, reached))
    }
}

fn too_many(processes: usize) -> String {
    format!(
        "{processes} processes: DAMON watches at most {PROCESSES_MAX}; choose another source with --source"
    )
}

impl Source for Damon {
    fn kind(&self) -> SourceKind {
        SourceKind::Damon
    }

    fn clear(&mut self, job: &[Pid], ahead: Duration) -> Result<Done, SourceError> {
        if job.len() > PROCESSES_MAX {
            return Err(SourceError::Whole(too_many(job.len())));
        }
        let cpu = thread_cpu();
        let mut done = Done::default();
        let cut = self.cut(job, &mut done.lost);
        done.reached = cut.len();
        if done.reached > 0 {
            let ahead = ahead.clamp(AHEAD[0], AHEAD[1]);
            self.monitor.sample(cut, ahead).map_err(|why| not_sampled(&why))?;
            self.sample = Some(Sample { began: Instant::now(), ahead, asleep: None });
        }
        done.spent = Spent { cpu: thread_cpu().saturating_sub(cpu), ..Spent::default() };
        Ok(done)
    }

    fn count(&mut self, job: &[Pid]) -> Result<Done, SourceError> {
        let cpu = thread_cpu();
        if self.sample.take().is_none() {
            return Err(SourceError::Spoiled("no sample was begun"));
        }
        let found = self.monitor.found(Instant::now() + LATE).map_err(|why| not_sampled(&why))?;
        let found = found.ok_or(SourceError::Spoiled("of the pages that were drawn none was referenced"))?;
        let (held, reached) = self.held(job)?;
        let mut count = Count { referenced: Bytes(found.bytes).min(held.resident), ..held };
        count.take_off(&self.aside.twice(&count));
        let spent = Spent { cpu: thread_cpu().saturating_sub(cpu), elsewhere: found.cpu, ..Spent::default() };
        Ok(Done { count, spent, reached, lost: Vec::new() })
    }

    fn size(&mut self, job: &[Pid]) -> Result<Done, SourceError> {
        let cpu = thread_cpu();
        let (mut count, reached) = self.held(job)?;
        count.take_off(&self.aside.twice(&count));
        let spent = Spent { cpu: thread_cpu().saturating_sub(cpu), ..Spent::default() };
        Ok(Done { count, spent, reached, lost: Vec::new() })
    }

    fn discard(&mut self, pid: Pid) {
        self.aside.discard(pid);
        self.weights.remove(&pid);
    }

    fn looks(&self) -> u32 {
        1
    }

    fn is_timed(&self) -> bool {
        true
    }

    fn to_come(&mut self) -> Duration {
        let Some(sample) = &mut self.sample else { return Duration::ZERO };
        let (passed, nearly) = (sample.began.elapsed(), sample.ahead.mul_f64(NEARLY));
        if passed < nearly {
            return nearly - passed;
        }
        let used = self.monitor.used();
        match sample.asleep {
            // It sleeps for no less than its interval.
            None => {
                sample.asleep = Some(used);
                sample.ahead.saturating_sub(passed)
            }
            _ if passed < sample.ahead => sample.ahead - passed,
            // Nor, most often, for exactly as long: timers are coarser the longer they run, an eighth at
            // worst.
            Some(asleep) if used == asleep && passed < sample.ahead.mul_f64(LATEST) + LATE => {
                sample.ahead.mul_f64(LOOK_EVERY)
            }
            Some(_) => Duration::ZERO,
        }
    }

    fn visits(&self, entries: f64) -> f64 {
        entries.min(STRATA as f64)
    }

    fn caveat(&self) -> Option<&'static str> {
        Some(LEFT_BY_OTHERS)
    }

    fn count_a_page(&self) -> Duration {
        COUNT
    }

    fn penalty_a_page(&self) -> Duration {
        REARM
    }
}

fn not_sampled(why: &io::Error) -> SourceError {
    match why.raw_os_error() {
        Some(libc::ENODEV) => SourceError::Whole("DAMON: somebody else has taken the monitor away".to_owned()),
        Some(libc::EBUSY) => SourceError::Whole(
            "DAMON: DAMON_RECLAIM or DAMON_LRU_SORT excludes other monitors; switch it off, or choose another source with --source"
                .to_owned(),
        ),
        // A process that ended while it was written down.
        Some(libc::EINVAL | libc::ESRCH) => SourceError::Spoiled("a process ended while it was to be sampled"),
        _ if why.kind() == io::ErrorKind::NotFound => {
            SourceError::Whole(format!("DAMON: somebody else has taken the monitor away ({why})"))
        }
        _ => SourceError::Whole(format!("DAMON: {why}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_of_the_kernel_are_told_apart() {
        let error = |errno| not_sampled(&io::Error::from_raw_os_error(errno));
        assert!(matches!(error(libc::EINVAL), SourceError::Spoiled(_)));
        assert!(matches!(error(libc::EBUSY), SourceError::Whole(why) if why.contains("DAMON_RECLAIM")));
        assert!(matches!(error(libc::ENODEV), SourceError::Whole(why) if why.contains("somebody else")));
    }
}
