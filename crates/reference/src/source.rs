//! The sources, by which page references are counted: one trait for several interfaces of the kernel.
//!
//! A *clearing* of a [`Source`] marks all pages of a job as not referenced. Each later *look* counts the
//! pages referenced since the clearing. There are two kinds of sources:
//!
//! ```text
//! for each process     accessed bits, page tables         any number of looks, at any time
//! for a whole job      generations of a cgroup            two looks for each clearing,
//!                                                         as there are four generations
//! ```
//!
//! A source that allows fewer looks than a cycle has is cleared again within the cycle
//! ([`SourceKind::looks`]). If a look also clears accessed bits, it costs the job time, as a clearing does
//! ([`SourceKind::looks_clear`]). The documentation of each source has its other costs.
//!
//! The available sources depend on the kernel's configuration and on privilege. [`SourceKind::availability`]
//! tests a source without changing anything, and returns the reason if it is not available.

use std::fmt::{self, Display, Formatter};
use std::io;
use std::str::FromStr;
use std::time::Duration;
use vellum_kernel::generations::GENERATIONS;
use vellum_kernel::{Bytes, Pid};

/// The user CPU time that a process loses for each page that it references again after its accessed bit was
/// cleared: 170 to 210 ns on one machine, 300 to 480 ns on a virtual machine with nested page tables. This is
/// near the larger, to keep within the budget.
pub(crate) const REARM: Duration = Duration::from_nanos(400);

/// The kinds of sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SourceKind {
    /// The processor's accessed bits, cleared by `/proc/PID/clear_refs` and counted by `smaps_rollup`. No
    /// privilege.
    AccessedBits,
    /// The same bits, read out of the page tables by a program in the kernel. Root.
    PageTables,
    /// The generations of the multi-generational LRU, `/sys/kernel/debug/lru_gen`.
    Generations,
}

/// True if a source can be used here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Availability {
    /// Yes.
    Usable,
    /// No, and why.
    Absent(String),
}

impl SourceKind {
    /// All kinds, in order of preference.
    pub const ALL: [SourceKind; 3] =
        [SourceKind::PageTables, SourceKind::AccessedBits, SourceKind::Generations];

    /// The name in reports and options.
    pub fn name(self) -> &'static str {
        match self {
            SourceKind::PageTables => "page-tables",
            SourceKind::AccessedBits => "accessed-bits",
            SourceKind::Generations => "generations",
        }
    }

    /// The bits or counts that it reads, in words.
    pub fn words(self) -> &'static str {
        match self {
            SourceKind::PageTables => "accessed bits (clear_refs, page tables read by BPF)",
            SourceKind::AccessedBits => "accessed bits (clear_refs, smaps_rollup)",
            SourceKind::Generations => "generations of the multi-generational LRU (lru_gen)",
        }
    }

    /// The number of looks that a clearing allows.
    pub(crate) fn looks(self) -> u32 {
        // Each look begins a generation; the clearing's and the one below it take the other two.
        if self == SourceKind::Generations { GENERATIONS as u32 - 2 } else { u32::MAX }
    }

    /// True if a look takes the job's accessed bits as a clearing does.
    pub(crate) fn looks_clear(self) -> bool {
        self == SourceKind::Generations
    }

    /// The cost of counting a page, or of ageing it, until it is measured.
    pub(crate) fn count_a_page(self) -> Duration {
        Duration::from_nanos(match self {
            SourceKind::PageTables => 4,
            SourceKind::AccessedBits => 70,
            SourceKind::Generations => 30,
        })
    }
}

impl Display for SourceKind {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A source, or none for the first that can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceChoice(Option<SourceKind>);

impl SourceChoice {
    /// The name of the automatic choice.
    pub const AUTO: &str = "auto";

    /// The source; `None` leaves the choice to the watch.
    pub fn kind(self) -> Option<SourceKind> {
        self.0
    }
}

impl FromStr for SourceChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<SourceChoice, String> {
        if text == Self::AUTO {
            return Ok(SourceChoice(None));
        }
        let known = SourceKind::ALL.into_iter().find(|kind| kind.name() == text);
        let names = || {
            format!("the sources are {}, {}", Self::AUTO, SourceKind::ALL.map(SourceKind::name).join(", "))
        };
        known.map(|kind| SourceChoice(Some(kind))).ok_or_else(names)
    }
}

/// The memory of a process: referenced since its source was cleared, and resident.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Memory referenced. A huge page counts whole if any part of it was.
    pub referenced: Bytes,
    /// Memory resident. Pages shared with other processes count whole in each.
    pub resident: Bytes,
    /// The part of the resident memory that is mapped by huge pages.
    pub huge: Bytes,
    /// Memory swapped out.
    pub swapped: Bytes,
    /// Resident program text and libraries that other processes have mapped too, where that was looked at.
    /// They are not in `referenced`: others keep them in memory, and references by others cannot be separated
    /// from the job's.
    pub shared: Bytes,
    /// Memory that processes of the job share with each other, as far as it was counted more than once and
    /// has been taken off `referenced`, `resident` and `shared` of the whole job.
    pub twice: Bytes,
}

impl Count {
    /// Subtracts memory that was counted more than once.
    pub(crate) fn take_off(&mut self, twice: &Count) {
        let less = |of: Bytes, by: Bytes| Bytes(of.0.saturating_sub(by.0));
        self.referenced = less(self.referenced, twice.referenced);
        self.resident = less(self.resident, twice.resident);
        self.shared = less(self.shared, twice.shared);
        self.twice = twice.resident;
    }
}

impl std::ops::AddAssign for Count {
    fn add_assign(&mut self, other: Count) {
        self.referenced += other.referenced;
        self.resident += other.resident;
        self.huge += other.huge;
        self.swapped += other.swapped;
        self.shared += other.shared;
        self.twice += other.twice;
    }
}

/// The cost of a clearing or a count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    /// CPU time of ours, which is the kernel's on our behalf for nearly all of it.
    pub(crate) cpu: Duration,
    /// For how long the process could not change its mappings, nor take a fault that needs the lock on them.
    pub(crate) stall: Duration,
}

/// A source failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SourceError {
    /// The process has ended: an event, and no failure.
    #[error("process {0} has ended")]
    Ended(Pid),
    /// We may not.
    #[error(
        "may not {operation} of process {pid}: it belongs to another user or hides its memory; watch it as its owner or as root"
    )]
    Forbidden { operation: &'static str, pid: Pid },
    /// The system refused for another reason.
    #[error("cannot {operation} of process {pid}: {source}")]
    System { operation: &'static str, pid: Pid, source: io::Error },
    /// The references since the clearing can no longer be determined; another clearing will do.
    #[error("this look is lost: {0}")]
    Spoiled(&'static str),
    /// The source failed for the whole job.
    #[error("{0}")]
    Whole(String),
}

impl SourceError {
    pub(crate) fn of(operation: &'static str, pid: Pid, source: io::Error) -> SourceError {
        match source.raw_os_error() {
            Some(libc::ESRCH | libc::ENOENT) => SourceError::Ended(pid),
            Some(libc::EACCES | libc::EPERM) => SourceError::Forbidden { operation, pid },
            _ => SourceError::System { operation, pid, source },
        }
    }
}

/// The result of a clearing or a count of a job.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// The sum over all processes that could be reached; zero after a clearing.
    pub(crate) count: Count,
    /// Its cost: all CPU time, and the longest stall of any process.
    pub(crate) spent: Spent,
    /// The number of processes that were reached.
    pub(crate) reached: usize,
    /// Processes that could not be inspected, and the reasons.
    pub(crate) lost: Vec<(Pid, SourceError)>,
}

/// A way of learning which pages of a job were referenced.
pub(crate) trait Source: Send + std::fmt::Debug {
    /// Which one.
    fn kind(&self) -> SourceKind;

    /// Drops the references of these processes until now. Fails only if it fails for the whole job; failures
    /// for one process are in [`Done::lost`].
    fn clear(&mut self, job: &[Pid]) -> Result<Done, SourceError>;

    /// Counts the memory that these processes have referenced since the clearing, or since they began. Fails
    /// as [`clear`](Self::clear) does, or with [`SourceError::Spoiled`].
    fn count(&mut self, job: &[Pid]) -> Result<Done, SourceError>;

    /// The counts that need no clearing: all but `referenced`.
    fn size(&mut self, job: &[Pid]) -> Result<Done, SourceError> {
        self.count(job)
    }

    /// The process has ended, or runs another program: drops all that is kept for it.
    fn discard(&mut self, pid: Pid);

    /// The error of the counts on this machine, in words, if there is one.
    fn caveat(&self) -> Option<&'static str>;
}

/// Does the same for each process. Processes that have ended are left out silently.
pub(crate) fn each(job: &[Pid], mut work: impl FnMut(Pid) -> Result<(Count, Spent), SourceError>) -> Done {
    let mut done = Done::default();
    for pid in job {
        match work(*pid) {
            Ok((count, spent)) => {
                done.count += count;
                done.spent.cpu += spent.cpu;
                done.spent.stall = done.spent.stall.max(spent.stall);
                done.reached += 1;
            }
            Err(SourceError::Ended(_)) => {}
            Err(error) => done.lost.push((*pid, error)),
        }
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_its_processes_added_up_and_those_that_fail_are_named() {
        let done = each(&[Pid(1), Pid(2), Pid(3), Pid(4)], |pid| match pid.0 {
            1 => Err(SourceError::Ended(pid)),
            2 => Err(SourceError::Forbidden { operation: "read", pid }),
            number => {
                let millis = Duration::from_millis(number as u64);
                let count = Count { referenced: Bytes(10), resident: Bytes(100), ..Count::default() };
                Ok((count, Spent { cpu: millis, stall: millis }))
            }
        });
        assert_eq!((done.reached, done.count.referenced, done.count.resident), (2, Bytes(20), Bytes(200)));
        assert_eq!((done.spent.cpu, done.spent.stall), (Duration::from_millis(7), Duration::from_millis(4)));
        assert!(matches!(done.lost[..], [(Pid(2), SourceError::Forbidden { .. })]));
    }

    #[test]
    fn errors_of_dead_processes_are_an_end() {
        let error = |errno| SourceError::of("read", Pid(7), io::Error::from_raw_os_error(errno));
        assert!(matches!(error(libc::ESRCH), SourceError::Ended(Pid(7))));
        assert!(matches!(error(libc::EACCES), SourceError::Forbidden { .. }));
        assert!(matches!(error(libc::ENOMEM), SourceError::System { .. }));
    }
}
