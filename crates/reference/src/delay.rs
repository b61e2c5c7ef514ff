//! Measures S, the cost of a page fault on this machine, on our own pages.
//!
//! The theory (`vellum_workset`) takes S as given, and results depend on it. The best amount of memory
//! (the knee) differs between compressed swap in memory (S is 5 µs) and a disk (100 µs and more).
//!
//! ```text
//! swap    own pages ─▶ MADV_PAGEOUT ─▶ touched, one in READ_AHEAD pages    S = fault + cost of paging out
//! file    a file without a name ─▶ written, dropped from the cache,
//!         mapped ─▶ touched                                                S = fault
//! ```
//!
//! - Only pages that had left memory (`mincore`) count; other pages may still be in the swap cache.
//! - S is the mean, since costs add up. The median is reported beside it.
//! - Time in which the thread waited for a processor (`schedstat`) is subtracted.
//! - The device is reported with S. Without swap, a program's written memory cannot be paged out. A limit
//!   below that memory kills the program; a higher limit costs it only faults on mapped files.
//! - A job's own faults under pressure, on a busy device, may take longer than S.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::mm::{Advice, MapFlags, ProtFlags};
use vellum_sys::{PAGE, map};

const TOUCHED: usize = 96;
/// Only one page in this many is touched: pages that the kernel reads ahead would not fault.
const READ_AHEAD: usize = 16;
const BYTES: usize = TOUCHED * READ_AHEAD * PAGE;
/// Fewer pages that were really gone are no measurement.
const GONE_MIN: usize = 16;
const TIME_MAX: Duration = Duration::from_millis(500);
/// Steps over the touched pages by this many, so that no device sees a sequence; no factor of [`TOUCHED`].
const STEP: usize = 37;

const _: () = assert!(!TOUCHED.is_multiple_of(STEP), "every page is touched once");

/// The device from which a reclaimed page comes back.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Device {
    /// Swap, by what `/proc/swaps` calls it.
    Swap {
        /// The device or file.
        name: String,
    },
    /// The file system of this directory: there is no swap, or it could not be measured.
    File {
        /// The directory.
        directory: PathBuf,
        /// True if the machine has swap at all.
        swap: bool,
    },
    /// Given by the user.
    Given,
}

/// S, with its source.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Delay {
    /// The mean cost of a fault, in nanoseconds.
    pub mean_ns: f64,
    /// The median of the faults alone.
    pub median_ns: f64,
    /// The part of the mean that paging out costs; 0 where pages are dropped, half where S was given.
    #[serde(default)]
    pub out_ns: f64,
    /// The number of measured faults; 0 for a given S.
    pub faults: usize,
    /// From where.
    pub device: Device,
}

/// S cannot be measured here.
#[derive(Debug, thiserror::Error)]
#[error("the delay of a fault cannot be measured ({why}); give it, as in --delay 100us")]
pub struct DelayError {
    /// Why not.
    why: String,
}

impl Delay {
    /// S as it was given.
    pub fn given(delay: Duration) -> Delay {
        let ns = delay.as_nanos() as f64;
        Delay { mean_ns: ns, median_ns: ns, out_ns: ns / 2.0, faults: 0, device: Device::Given }
    }

    /// S, measured: from swap if there is any, else from the disk. Takes up to a second, little of it on the
    /// processor.
    pub fn measure() -> Result<Delay, DelayError> {
        let name = vellum_kernel::machine::first_swap();
        if let Some(name) = &name
            && let Some(delay) = of_swap(name)
        {
            return Ok(delay);
        }
        let places = ["/var/tmp", "/tmp", "."].map(PathBuf::from);
        let mut why =
            "no directory of /var/tmp, /tmp and the present one lies on a disk and may be written to"
                .to_owned();
        for directory in places.into_iter().filter(|directory| is_on_disk(directory)) {
            match of_file(&directory, name.is_some()) {
                Ok(delay) => return Ok(delay),
                Err(error) => why = format!("{}: {error}", directory.display()),
            }
        }
        Err(DelayError { why })
    }
}

fn of_swap(name: &str) -> Option<Delay> {
    let memory = Mapping::new(None)?;
    memory.fill();
    let began = Stopwatch::start();
    // SAFETY: the whole mapping is ours; its contents stay, in memory or in swap.
    unsafe { rustix::mm::madvise(memory.base.cast(), BYTES, Advice::LinuxPageOut) }.ok()?;
    let out_ns = began.elapsed().as_nanos() as f64 / (BYTES / PAGE) as f64;
    let times = memory.touch();
    (times.len() >= GONE_MIN).then(|| summary(&times, out_ns, Device::Swap { name: name.to_owned() }))
}

fn of_file(directory: &Path, swap: bool) -> std::io::Result<Delay> {
    let mode = Mode::RUSR | Mode::WUSR;
    let file: OwnedFd = rustix::fs::open(directory, OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, mode)?;
    let file = File::from(file);
    let text: Vec<u8> = noise().take(BYTES / size_of::<u64>()).flat_map(u64::to_ne_bytes).collect();
    std::os::unix::fs::FileExt::write_all_at(&file, &text, 0)?;
    file.sync_data()?;
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
    let memory = Mapping::new(Some(&file)).ok_or_else(std::io::Error::last_os_error)?;
    // SAFETY: advice on the whole of a mapping of ours.
    unsafe { rustix::mm::madvise(memory.base.cast(), BYTES, Advice::Random) }?;
    let times = memory.touch();
    if times.len() < GONE_MIN {
        return Err(std::io::Error::other("its pages stay in memory"));
    }
    Ok(summary(&times, 0.0, Device::File { directory: directory.to_owned(), swap }))
}

fn summary(times: &[Duration], out_ns: f64, device: Device) -> Delay {
    let mut sorted: Vec<f64> = times.iter().map(|time| time.as_nanos() as f64).collect();
    sorted.sort_by(f64::total_cmp);
    let mean = sorted.iter().sum::<f64>() / sorted.len() as f64;
    let median_ns = sorted[sorted.len() / 2];
    Delay { mean_ns: mean + out_ns, median_ns, out_ns, faults: sorted.len(), device }
}

/// True if data dropped from the cache must be read again from a device.
pub fn is_on_disk(directory: &Path) -> bool {
    /// `f_type` of file systems that are memory.
    const MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];
    rustix::fs::statfs(directory).is_ok_and(|found| !MEMORY.contains(&(found.f_type as u64)))
}

/// Wall-clock time without that in which another ran though this thread could have.
struct Stopwatch {
    began: Instant,
    held_up: Duration,
}

impl Stopwatch {
    fn start() -> Stopwatch {
        let held_up = held_up();
        Stopwatch { began: Instant::now(), held_up }
    }

    fn elapsed(&self) -> Duration {
        let elapsed = self.began.elapsed();
        elapsed.saturating_sub(held_up().saturating_sub(self.held_up))
    }
}

/// The time that this thread was ready and did not run; zero if the kernel does not count it.
fn held_up() -> Duration {
    vellum_kernel::machine::thread_waited().unwrap_or_default()
}

/// Numbers that do not compress, by Weyl's sequence through a multiplication.
fn noise() -> impl Iterator<Item = u64> {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    (1u64..).map(|n| {
        let mixed = n.wrapping_mul(STEP);
        (mixed ^ (mixed >> 29)).wrapping_mul(STEP)
    })
}

struct Mapping {
    base: *mut u8,
}

impl Mapping {
    fn new(file: Option<&File>) -> Option<Mapping> {
        let both = ProtFlags::READ | ProtFlags::WRITE;
        let (none, private) = (std::ptr::null_mut(), MapFlags::PRIVATE);
        let base = match file {
            // SAFETY: a new mapping at a place of the kernel's choice.
            None => unsafe { rustix::mm::mmap_anonymous(none, BYTES, both, private) },
            // SAFETY: a new mapping at a place of the kernel's choice. The file is as long as the mapping and
            // has no name by which others could truncate it.
            Some(file) => unsafe { rustix::mm::mmap(none, BYTES, ProtFlags::READ, private, file, 0) },
        };
        Some(Mapping { base: base.ok()?.cast() })
    }

    /// Half of each page is noise: it compresses to about half, as programs' memory does.
    fn fill(&self) {
        const WORDS: usize = PAGE / size_of::<u64>();
        let mut noise = noise();
        for page in 0..BYTES / PAGE {
            // SAFETY: the page lies in the mapping, which is writable, aligned to pages and only ours.
            let words =
                unsafe { std::slice::from_raw_parts_mut(self.base.add(page * PAGE).cast::<u64>(), WORDS) };
            words[..WORDS / 2].iter_mut().zip(&mut noise).for_each(|(word, noise)| *word = noise);
        }
    }

    fn touch(&self) -> Vec<Duration> {
        let began = Instant::now();
        let mut times = Vec::with_capacity(TOUCHED);
        for turn in 0..TOUCHED {
            let page = (turn * STEP) % TOUCHED * READ_AHEAD;
            // SAFETY: within the mapping, which lives as long as `self`.
            let at = unsafe { self.base.add(page * PAGE) };
            if map::is_resident(vellum_sys::Addr::of(at)) != Some(false) {
                continue;
            }
            let before = Stopwatch::start();
            // SAFETY: `at` lies within the mapping, which is readable and lives as long as `self`.
            std::hint::black_box(unsafe { at.read_volatile() });
            times.push(before.elapsed());
            if began.elapsed() > TIME_MAX {
                break;
            }
        }
        times
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `new`; no reference into it outlives a method, and `self` is being
        // dropped.
        let _ = unsafe { rustix::mm::munmap(self.base.cast(), BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_costs_more_than_nothing_and_says_from_where() {
        match Delay::measure() {
            Ok(delay) => {
                eprintln!("{delay:?}");
                assert!(delay.mean_ns > 100.0 && delay.faults >= GONE_MIN, "{delay:?}");
                assert_ne!(delay.device, Device::Given);
            }
            Err(error) => vellum_skip::skip(format_args!("{error}")),
        }
    }

    #[test]
    fn every_page_is_touched_once() {
        let mut seen: Vec<usize> = (0..TOUCHED).map(|turn| (turn * STEP) % TOUCHED).collect();
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..TOUCHED));
    }
}
