//! The kernel's monitor, through `/sys/kernel/mm/damon/admin`: made, given its samples, and removed.
//!
//! ```text
//! kdamonds/nr_kdamonds                     locked (flock) while our monitor is there; 0 before and after
//!          0/state                         on · off · update_schemes_tried_bytes
//!          0/pid                           the kernel's thread, whose CPU time is part of the cost
//!          0/contexts/0/operations         vaddr
//!                       monitoring_attrs   intervals, and how many regions
//!                       targets/N          pid_target, regions/K/{start,end}
//!                       schemes/0          action stat, pattern: accessed at least once;
//!                                          tried_regions/total_bytes
//! ```
//!
//! Its sampling and aggregation intervals are the same, so a sum is of one sample. When it is switched on, it
//! draws a page from every region and clears its accessed bit. An interval later it looks, and adds up the
//! regions whose page was referenced.
//!
//! The command for the sum, written to `state`, waits until the interval is over. No signal ends that wait.
//! Other commands by the same open file wait behind it, and some kernels refuse commands by any file
//! (`EBUSY`). A separate thread therefore writes it, by its own file, when the interval is nearly over.
//! Until then a sample can be ended at once.
//!
//! Invariant: nothing is written where a monitor of somebody else's is set up. The kernel's own monitors
//! (`DAMON_RECLAIM`) have no such files, and exclude ours while they run.
//!
//! Source: Linux, Documentation/admin-guide/mm/damon/usage.rst.

use super::keeper::Keeper;
use super::strata::Stratum;
use crate::sources::accessed::thread_cpu;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use vellum_kernel::{Pid, symbols};
use vellum_sys::clock::process_cpu_ns;

const KDAMONDS: &str = "/sys/kernel/mm/damon/admin/kdamonds";
/// The first version that sums up the regions a scheme applies to.
const LINUX_MIN: (u32, u32) = (6, 6);
const REGIONS_MIN: usize = 3;
/// The kernel has regions follow the process's mappings in such steps; never, while a sample lasts.
const UPDATE: Duration = Duration::from_secs(1 << 30);
/// The sum is requested this long before the interval is over, or halfway through a shorter interval. Later
/// it would be the next interval's.
const BEFORE: Duration = Duration::from_millis(250);
/// The number of tries to switch a busy monitor off, and the pause between two tries.
pub(super) const TRIES: u32 = 100;
pub(super) const BETWEEN: Duration = Duration::from_millis(10);

/// True if a monitor of our own can be had here. Changes nothing.
pub(in crate::sources) fn available() -> Result<(), String> {
    let number = Path::new(KDAMONDS).join("nr_kdamonds");
    let there = std::fs::read_to_string(&number)
        .map_err(|why| format!("{}: {why}; it needs CONFIG_DAMON_SYSFS, and root", number.display()))?;
    if there.trim() != "0" {
        let vaddr = Path::new(KDAMONDS).join("0/contexts/0/avail_operations");
        can_watch_processes(&vaddr)?;
        return Err(format!(
            "{} monitor(s) of somebody else's are set up, and making another would take them away; their owner removes them by writing 0 to {}",
            there.trim(),
            number.display()
        ));
    }
    if rustix::fs::access(&number, rustix::fs::Access::WRITE_OK).is_err() {
        return Err(format!("{}: it may be written to by root only", number.display()));
    }
    let release = rustix::system::uname();
    let release = release.release().to_string_lossy().into_owned();
    if version(&release).is_some_and(|version| version < LINUX_MIN) {
        return Err(format!("it needs Linux {}.{}, and this is {release}", LINUX_MIN.0, LINUX_MIN.1));
    }
    kernel_has_vaddr(Path::new(symbols::KALLSYMS))
}

/// True if the kernel was built to monitor processes' addresses: before there is a monitor, only its own
/// functions show it. If they cannot be read, the answer is yes, and [`Monitor::make`] may fail.
fn kernel_has_vaddr(functions: &Path) -> Result<(), String> {
    let (mut virtual_addresses, mut physical_addresses) = (false, false);
    symbols::each(functions, |symbol| {
        virtual_addresses |= symbol.name.starts_with("damon_va_");
        physical_addresses |= symbol.name.starts_with("damon_pa_");
        !virtual_addresses
    });
    let physical_only = physical_addresses && !virtual_addresses;
    if physical_only { Err(without_vaddr("physical addresses (paddr)")) } else { Ok(()) }
}

fn without_vaddr(known: &str) -> String {
    format!("this kernel monitors {known} only; a process's addresses (vaddr) need CONFIG_DAMON_VADDR")
}

/// True if a context can monitor processes' addresses. A missing file counts as yes.
fn can_watch_processes(operations: &Path) -> Result<(), String> {
    match std::fs::read_to_string(operations) {
        Ok(known) if !known.lines().any(|line| line.trim() == "vaddr") => {
            let known: Vec<&str> = known.split_whitespace().collect();
            Err(without_vaddr(&known.join(", ")))
        }
        _ => Ok(()),
    }
}

/// The numbers before the second dot of `6.12.1-cloud`.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|byte: char| !byte.is_ascii_digit()).map_while(|word| word.parse().ok());
    Some((numbers.next()?, numbers.next()?))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    /// Bytes of the regions whose page was referenced.
    pub(super) bytes: u64,
    /// CPU time of the kernel's thread, and of ours that waited for it.
    pub(super) cpu: Duration,
}

/// A sample under way.
#[derive(Debug)]
struct Sampling {
    /// Dropped when the result is not needed any more.
    _wanted: Sender<()>,
    found: Receiver<io::Result<Found>>,
}

#[derive(Debug)]
pub(super) struct Monitor {
    /// First to be dropped: takes the monitor away.
    _keeper: Keeper,
    _number: File,
    state: File,
    place: PathBuf,
    targets: Vec<(Pid, Vec<Stratum>)>,
    sampling: Option<Sampling>,
}

impl Monitor {
    pub(super) fn make() -> Result<Monitor, String> {
        available()?;
        let path = Path::new(KDAMONDS).join("nr_kdamonds");
        let failed = |what: &str| {
            let what = what.to_owned();
            move |why: io::Error| format!("{what}: {why}")
        };
        let number = OpenOptions::new().read(true).write(true).open(&path).map_err(failed("nr_kdamonds"))?;
        rustix::fs::flock(&number, rustix::fs::FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| "another vellum has set a monitor up; there can be one at a time".to_owned())?;
        // Once more: the last holder of the lock may have written since.
        available()?;
        number.write_all_at(b"1", 0).map_err(failed("cannot set a monitor up"))?;
        let place = Path::new(KDAMONDS).join("0");
        let state =
            OpenOptions::new().read(true).write(true).open(place.join("state")).map_err(failed("state"))?;
        let keeper = Keeper::start(&state, &number).map_err(|why| {
            let _ = number.write_all_at(b"0", 0);
            format!("cannot fork a process that takes the monitor away in the end: {why}")
        })?;
        let monitor =
            Monitor { _keeper: keeper, _number: number, state, place, targets: Vec::new(), sampling: None };
        monitor.write("contexts/nr_contexts", 1).map_err(failed("a context"))?;
        can_watch_processes(&monitor.place.join("contexts/0/avail_operations"))?;
        monitor.describe().map_err(failed("cannot describe what to monitor"))?;
        Ok(monitor)
    }

    fn describe(&self) -> io::Result<()> {
        self.write("contexts/0/operations", "vaddr")?;
        self.write("contexts/0/schemes/nr_schemes", 1)?;
        let scheme = |file: &str| format!("contexts/0/schemes/0/{file}");
        self.write(&scheme("action"), "stat")?;
        let pattern = |of: &str| scheme(&format!("access_pattern/{of}"));
        self.write(&pattern("sz/min"), 0)?;
        self.write(&pattern("sz/max"), u64::MAX)?;
        self.write(&pattern("nr_accesses/min"), 1)?;
        self.write(&pattern("nr_accesses/max"), u32::MAX)?;
        self.write(&pattern("age/min"), 0)?;
        self.write(&pattern("age/max"), u32::MAX)
    }

    /// Draws a page from each stratum of each process. The result is ready an `interval` later.
    pub(super) fn sample(&mut self, strata: Vec<(Pid, Vec<Stratum>)>, interval: Duration) -> io::Result<()> {
        self.stop();
        self.tell(strata)?;
        let micros = interval.as_micros().max(1);
        let attribute = |file: &str| format!("contexts/0/monitoring_attrs/{file}");
        // In any order: the kernel checks these values against each other only when the monitor is switched
        // on.
        self.write(&attribute("intervals/sample_us"), micros)?;
        self.write(&attribute("intervals/aggr_us"), micros)?;
        self.write(&attribute("intervals/update_us"), UPDATE.as_micros())?;
        let regions: usize = self.targets.iter().map(|(_, strata)| strata.len()).sum();
        self.write(&attribute("nr_regions/min"), REGIONS_MIN)?;
        self.write(&attribute("nr_regions/max"), regions.max(REGIONS_MIN) * 2)?;
        self.state.write_all_at(b"on", 0)?;
        let asked_after = interval.saturating_sub(BEFORE).max(interval / 2);
        let (sender, found) = channel();
        let (wanted, dropped) = channel();
        let place = self.place.clone();
        std::thread::Builder::new().name("damon".into()).spawn(move || {
            if dropped.recv_timeout(asked_after) == Err(RecvTimeoutError::Timeout) {
                // A receiver that has gone has switched the monitor off.
                let _ = sender.send(sum(&place));
            }
        })?;
        self.sampling = Some(Sampling { _wanted: wanted, found });
        Ok(())
    }

    pub(super) fn used(&self) -> u64 {
        used(&self.place)
    }

    /// The result of the sample. Waits until `until`; `None` if it is not ready then, or no drawn page was
    /// referenced.
    pub(super) fn found(&mut self, until: Instant) -> io::Result<Option<Found>> {
        let Some(sampling) = &self.sampling else { return Ok(None) };
        let found = sampling.found.recv_timeout(until.saturating_duration_since(Instant::now()));
        self.stop();
        match found {
            Ok(found) => found.map(Some),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Ok(None),
        }
    }

    pub(super) fn stop(&mut self) {
        if self.sampling.take().is_some() {
            // Refused if it has ended by itself, which it does when all its processes have, and while the sum
            // is being made.
            for _ in 0..TRIES {
                match self.state.write_all_at(b"off", 0) {
                    Err(why) if why.kind() == io::ErrorKind::ResourceBusy => std::thread::sleep(BETWEEN),
                    _ => break,
                }
            }
        }
    }

    fn tell(&mut self, strata: Vec<(Pid, Vec<Stratum>)>) -> io::Result<()> {
        if self.targets.len() != strata.len() {
            self.targets.clear();
            self.write("contexts/0/targets/nr_targets", strata.len())?;
        }
        for (at, (pid, strata)) in strata.iter().enumerate() {
            let target = |file: &str| format!("contexts/0/targets/{at}/{file}");
            let before = self.targets.get(at);
            if before.is_none_or(|(before, _)| before != pid) {
                self.write(&target("pid_target"), pid)?;
            }
            let before = before.map_or(&[][..], |(_, strata)| strata);
            if before.len() != strata.len() {
                self.write(&target("regions/nr_regions"), strata.len())?;
            }
            for (region, stratum) in strata.iter().enumerate() {
                if before.len() != strata.len() || before[region] != *stratum {
                    self.write(&target(&format!("regions/{region}/start")), stratum.0)?;
                    self.write(&target(&format!("regions/{region}/end")), stratum.1)?;
                }
            }
        }
        self.targets = strata;
        Ok(())
    }

    fn write(&self, file: &str, value: impl std::fmt::Display) -> io::Result<()> {
        let path = self.place.join(file);
        std::fs::write(&path, value.to_string())
            .map_err(|why| io::Error::new(why.kind(), format!("{}: {why}", path.display())))
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.stop();
    }
}

fn sum(place: &Path) -> io::Result<Found> {
    let state = OpenOptions::new().write(true).open(place.join("state"))?;
    let read = |file: &str| std::fs::read_to_string(place.join(file));
    state.write_all_at(b"update_schemes_tried_bytes", 0)?;
    let bytes = read("contexts/0/schemes/0/tried_regions/total_bytes")?;
    let bytes = bytes.trim().parse().map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
    Ok(Found { bytes, cpu: thread_cpu() + Duration::from_nanos(used(place)) })
}

fn used(place: &Path) -> u64 {
    let thread = std::fs::read_to_string(place.join("pid")).unwrap_or_default();
    thread.trim().parse().ok().and_then(process_cpu_ns).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_compared_by_number() {
        assert_eq!(version("6.12.117+deb12-cloud-amd64"), Some((6, 12)));
        assert!(version("6.1.0-40") < Some(LINUX_MIN) && version("6.6") >= Some(LINUX_MIN));
        assert_eq!(version("x"), None);
    }

    #[test]
    fn where_there_is_none_it_says_why_and_changes_nothing() {
        let number = || std::fs::read_to_string(Path::new(KDAMONDS).join("nr_kdamonds")).ok();
        let before = number();
        if let Err(why) = available() {
            assert!(Monitor::make().is_err());
            assert!(!why.is_empty());
        }
        assert_eq!(number(), before);
    }

    #[test]
    fn a_kernel_without_processes_addresses_is_known_by_its_functions() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("kallsyms");
        let physical = "0000000000000000 t damon_pa_apply_scheme\n";
        let others = "0000000000000000 T damon_start\n";
        for (functions, usable) in [
            (physical.to_owned() + others, false),
            (physical.to_owned() + "0000000000000000 t damon_va_apply_scheme\n", true),
            (others.to_owned(), true),
            (String::new(), true),
        ] {
            std::fs::write(&file, &functions).unwrap();
            assert_eq!(kernel_has_vaddr(&file).is_ok(), usable, "{functions}");
        }
        assert!(kernel_has_vaddr(Path::new("/no/such")).is_ok());
    }

    #[test]
    fn operations_without_processes_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("avail_operations");
        std::fs::write(&file, "fvaddr\npaddr\n").unwrap();
        let why = can_watch_processes(&file).unwrap_err();
        assert!(why.contains("fvaddr, paddr only") && why.contains("CONFIG_DAMON_VADDR"), "{why}");
        std::fs::write(&file, "vaddr\nfvaddr\npaddr\n").unwrap();
        assert!(can_watch_processes(&file).is_ok() && can_watch_processes(Path::new("/no/such")).is_ok());
    }
}
