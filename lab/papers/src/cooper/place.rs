//! The environments (`Place`) in which a benchmark program runs with short or ample memory, and the runs.
//!
//! | `Place` | pages to | memory limit | start of the client | privilege |
//! | --- | --- | --- | --- | --- |
//! | `Kernel` | swap (a file, or zram) | a memory cgroup | by `sh`, which first enters the cgroup | root |
//! | `Pager` | a store in a folder | `VELLUM_FRAMES` | directly | none |
//! | `Plenty` | nothing | none | directly | none |
//!
//! A run's figures come from its own report, from the library's counters (in shared memory, the *board*),
//! and from `/proc/vmstat`. The last counts the whole machine, and is valid only if nothing else pages.
//!
//! In a version 1 cgroup, the kernel sometimes finds nothing to reclaim although there is swap. The limit is
//! then raised a little for a moment (`confine`); the run reports how often (`relieved`).

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;
use vellum_campaign::confine::{Device, DeviceError, Group, SwapFile};
use vellum_campaign::{Ended, Launch, Metrics};
use vellum_process::{BoardFile, Interrupt};
use vellum_wire::{BOARD_ENV, Counter};

/// The name of the cgroups.
const GROUP: &str = "vellum-cooper";
/// Bytes of swap for each byte of memory: the original strategy's heap is three times the live data, twice
/// over.
const SWAP_TIMES: u64 = 12;
/// Time between two checks of a run.
const LOOK: Duration = Duration::from_millis(4);
/// The kernel's counters for the whole machine, and our names for them.
const KERNEL: [(&str, &str); 3] =
    [("pswpin", "swapped_in_pages"), ("pswpout", "swapped_out_pages"), ("pglazyfreed", "lazily_freed_pages")];

/// The environment of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The kernel pages, in a cgroup.
    Kernel,
    /// Vellum's pager pages.
    Pager,
    /// Memory is ample.
    Plenty,
}

impl Place {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Pager => "pager",
            Self::Plenty => "plenty",
        }
    }
}

/// The kernel's swap, made for the experiment and removed with it.
#[derive(Debug)]
pub(super) enum Swap {
    Zram { _device: Device },
    File { _file: SwapFile },
}

impl Swap {
    /// Makes swap that is large enough for clients with `memory` bytes.
    pub(super) fn new(zram: bool, folder: &std::path::Path, memory: u64) -> Result<Self, DeviceError> {
        let bytes = memory * SWAP_TIMES;
        Ok(if zram {
            Self::Zram { _device: Device::new(bytes)? }
        } else {
            Self::File { _file: SwapFile::new(folder, bytes)? }
        })
    }
}

/// A run that is ready to start.
#[derive(Debug, Clone)]
pub(super) struct Ready {
    pub(super) launch: Launch,
    pub(super) place: Place,
    /// The process's memory in bytes: the cgroup's limit, or the frames.
    pub(super) limit: u64,
    pub(super) folder: PathBuf,
    /// Distinguishes simultaneous runs.
    pub(super) number: usize,
    pub(super) allowed: Duration,
}

fn failed(what: &str, why: &dyn std::fmt::Display) -> Ended {
    Ended::NotStarted { program: what.to_owned(), why: why.to_string() }
}

impl Ready {
    /// Makes the run. Everything made for it is removed before it returns.
    ///
    /// # Errors
    /// The reason why it failed.
    pub(super) fn run(&self) -> Result<Metrics, Ended> {
        let board = BoardFile::create().map_err(|error| failed("a board", &error))?;
        let mut launch = self.launch.clone();
        launch.env.push((BOARD_ENV.into(), board.path().into()));
        let mut group = None;
        match self.place {
            Place::Plenty => {}
            Place::Pager => {
                launch.env.push(("VELLUM_FRAMES".into(), self.limit.to_string().into()));
                launch.env.push(("VELLUM_STORE".into(), self.folder.clone().into()));
            }
            Place::Kernel => {
                let made = Group::new(&format!("{GROUP}-{}", self.number), self.limit);
                let made = made.map_err(|error| failed("a cgroup", &error))?;
                launch = launch.entering(&made);
                group = Some(made);
            }
        }
        let before = kernel_counts();
        let mut watch = || {
            if let Some(group) = &group {
                group.relieve();
            }
            if asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let mut metrics = launch.run_watched(self.allowed, LOOK, &mut watch)?;
        let after = kernel_counts();
        for (at, (_, name)) in KERNEL.into_iter().enumerate() {
            metrics.set(name, after[at] - before[at]);
        }
        if let Some(group) = &group {
            metrics.set("relieved", f64::from(group.relieved()));
            metrics.set("most_charged_bytes", group.most_charged().map_or(f64::NAN, |bytes| bytes as f64));
        }
        for counter in Counter::ALL {
            let all = board.claimed().iter().map(|slot| slot.get(*counter));
            let value = if counter.is_peak() { all.max().unwrap_or(0) } else { all.sum() };
            metrics.set(counter.name(), value as f64);
        }
        Ok(metrics)
    }
}

/// Whether a signal to end this process has arrived.
pub(super) fn asked() -> bool {
    Interrupt::arrived().is_some()
}

/// The kernel's counters for the whole machine until now; NaN for missing ones.
fn kernel_counts() -> [f64; KERNEL.len()] {
    let counts = vellum_kernel::machine::counters(KERNEL.map(|(name, _)| name));
    counts.map(|count| count.map_or(f64::NAN, |count| count as f64))
}
