//! Where references are learnt from: one trait, several ways a kernel can tell.
//!
//! A source is cleared for a process and counts, whenever asked, the pages that the process has referenced since. That is all a
//! [`Watcher`](super::Watcher) needs; what it costs, and whom it disturbs, each source says itself.
//!
//! Which sources a machine has depends on its kernel's configuration and on privilege. [`SourceKind::availability`] looks, changes
//! nothing, and gives the reason for each that is missing: a source is absent by name, never silently.

use super::tables::Reader;
use crate::{Bytes, Pid};
use std::fmt::{self, Display, Formatter};
use std::io;
use std::path::Path;
use std::time::Duration;

/// The ways of learning references that Vellum knows of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SourceKind {
    /// The processor's accessed bits, cleared by `/proc/PID/clear_refs` and counted by `smaps_rollup`. No privilege.
    AccessedBits,
    /// The same bits, read out of the page tables by a program in the kernel. Root.
    PageTables,
    /// The idle flag of each frame, `/sys/kernel/mm/page_idle/bitmap`.
    IdleBitmap,
    /// The generations of the multi-generational LRU, `/sys/kernel/debug/lru_gen`.
    Generations,
    /// Regions sampled by the kernel's data access monitor.
    Damon,
}

/// Whether a source can be used here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Availability {
    /// Yes.
    Usable,
    /// This kernel has it, and this version of Vellum does not read it.
    NotRead,
    /// No, and why.
    Absent(String),
}

impl SourceKind {
    /// All of them, in the order in which they are preferred.
    pub const ALL: [SourceKind; 5] = [
        SourceKind::PageTables,
        SourceKind::AccessedBits,
        SourceKind::Damon,
        SourceKind::Generations,
        SourceKind::IdleBitmap,
    ];

    /// The name in reports and options.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            SourceKind::PageTables => "page-tables",
            SourceKind::AccessedBits => "accessed-bits",
            SourceKind::IdleBitmap => "idle-bitmap",
            SourceKind::Generations => "generations",
            SourceKind::Damon => "damon",
        }
    }

    /// What is read, in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            SourceKind::PageTables => "accessed bits (clear_refs, page tables read by BPF)",
            SourceKind::AccessedBits => "accessed bits (clear_refs, smaps_rollup)",
            SourceKind::IdleBitmap => "the idle bitmap of frames (page_idle)",
            SourceKind::Generations => "generations of the multi-generational LRU (lru_gen)",
            SourceKind::Damon => "the kernel's data access monitor (DAMON)",
        }
    }

    /// Whether this machine, and this process's privilege, allow it. Only looks.
    #[must_use]
    pub fn availability(self) -> Availability {
        match self {
            SourceKind::PageTables => match accessed_bits() {
                Availability::Usable => {
                    Reader::open().map_or_else(Availability::Absent, |_| Availability::Usable)
                }
                absent => absent,
            },
            SourceKind::AccessedBits => accessed_bits(),
            SourceKind::IdleBitmap => {
                readable("/sys/kernel/mm/page_idle/bitmap", "CONFIG_IDLE_PAGE_TRACKING")
            }
            SourceKind::Generations => match readable("/sys/kernel/mm/lru_gen/enabled", "CONFIG_LRU_GEN") {
                Availability::NotRead => readable("/sys/kernel/debug/lru_gen", "a mounted debugfs, and root"),
                absent => absent,
            },
            SourceKind::Damon => damon(),
        }
    }
}

impl Display for SourceKind {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn accessed_bits() -> Availability {
    let refused = |what: &str, error: io::Error| Availability::Absent(format!("{what}: {error}"));
    if let Err(error) = std::fs::OpenOptions::new().write(true).open("/proc/self/clear_refs") {
        return refused("/proc/self/clear_refs (CONFIG_PROC_PAGE_MONITOR)", error);
    }
    match std::fs::read("/proc/self/smaps_rollup") {
        Ok(_) => Availability::Usable,
        Err(error) => refused("/proc/self/smaps_rollup", error),
    }
}

fn readable(path: &str, needs: &str) -> Availability {
    match std::fs::File::open(path) {
        Ok(_) => Availability::NotRead,
        Err(error) => Availability::Absent(format!("{path}: {error}; it needs {needs}")),
    }
}

/// Writing how many monitors there are to be makes all of them anew: where somebody has set one up, there is no place for another.
fn damon() -> Availability {
    const MONITORS: &str = "/sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds";
    const OPERATIONS: &str = "/sys/kernel/mm/damon/admin/kdamonds/0/contexts/0/avail_operations";
    if let Ok(known) = std::fs::read_to_string(OPERATIONS)
        && !known.lines().any(|line| line.trim() == "vaddr")
    {
        let known: Vec<&str> = known.split_whitespace().collect();
        let known = known.join(", ");
        return Availability::Absent(format!(
            "this kernel monitors {known} only; a process's addresses (vaddr) need CONFIG_DAMON_VADDR"
        ));
    }
    match std::fs::read_to_string(Path::new(MONITORS)) {
        Ok(number) if number.trim() != "0" => {
            Availability::Absent(format!("{} monitor(s) of somebody else's are set up", number.trim()))
        }
        Ok(_) => Availability::NotRead,
        Err(error) => {
            Availability::Absent(format!("{MONITORS}: {error}; it needs CONFIG_DAMON_SYSFS, and root"))
        }
    }
}

/// What one process has referenced since its source was last cleared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Memory referenced. A huge page counts whole if any part of it was.
    pub referenced: Bytes,
    /// Memory resident. Pages shared with other processes count whole in each.
    pub resident: Bytes,
    /// Of what is resident, what is mapped by huge pages.
    pub huge: Bytes,
    /// Memory swapped out.
    pub swapped: Bytes,
    /// Of what is resident, program text and libraries that other processes have mapped too, where that was looked at. They are not
    /// among what is referenced: others keep them in memory, and what is known of references to them tells of others too.
    pub shared: Bytes,
}

impl std::ops::AddAssign for Count {
    fn add_assign(&mut self, other: Count) {
        self.referenced += other.referenced;
        self.resident += other.resident;
        self.huge += other.huge;
        self.swapped += other.swapped;
        self.shared += other.shared;
    }
}

/// What a clearing or a count cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// CPU time of ours, which is the kernel's on our behalf for nearly all of it.
    pub cpu: Duration,
    /// For how long the process could not change its mappings, nor take faults that must.
    pub stall: Duration,
}

/// A source failed for one process.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The process has ended: an event, and no failure.
    #[error("process {0} has ended")]
    Ended(Pid),
    /// We may not.
    #[error(
        "may not {operation} of process {pid}: it belongs to another user or hides its memory; watch it as its owner or as root"
    )]
    Forbidden {
        /// What was tried.
        operation: &'static str,
        /// On which process.
        pid: Pid,
    },
    /// The system refused for another reason.
    #[error("cannot {operation} of process {pid}: {source}")]
    System {
        /// What was tried.
        operation: &'static str,
        /// On which process.
        pid: Pid,
        /// What it said.
        source: io::Error,
    },
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

/// A way of learning which pages were referenced.
pub trait Source: Send + std::fmt::Debug {
    /// Which one.
    fn kind(&self) -> SourceKind;

    /// Forgets what the process has referenced until now.
    ///
    /// # Errors
    /// [`SourceError::Ended`] if there is no such process any more; otherwise why it cannot be done.
    fn clear(&mut self, pid: Pid) -> Result<Spent, SourceError>;

    /// What the process has referenced since it was cleared, or since it began if it never was.
    ///
    /// # Errors
    /// As for [`clear`](Self::clear).
    fn count(&mut self, pid: Pid) -> Result<(Count, Spent), SourceError>;

    /// The process is no more, or runs another program: whatever is kept for it can go.
    fn forget(&mut self, pid: Pid);

    /// What the counts are not to be trusted in, on this machine; `None` if there is no such thing.
    fn caveat(&self) -> Option<&'static str> {
        None
    }

    /// What a page costs to count, until that is measured.
    fn count_a_page(&self) -> Duration;

    /// User CPU time that the process itself loses for each page that it references again after a clearing.
    fn penalty_a_page(&self) -> Duration;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_absent_says_why() {
        for kind in SourceKind::ALL {
            match kind.availability() {
                Availability::Absent(why) => {
                    assert!(!why.is_empty());
                    eprintln!("{kind}: {why}");
                }
                found => eprintln!("{kind}: {found:?}"),
            }
        }
    }

    #[test]
    fn errors_of_dead_processes_are_an_end() {
        let error = |errno| SourceError::of("read", Pid(7), io::Error::from_raw_os_error(errno));
        assert!(matches!(error(libc::ESRCH), SourceError::Ended(Pid(7))));
        assert!(matches!(error(libc::EACCES), SourceError::Forbidden { .. }));
        assert!(matches!(error(libc::ENOMEM), SourceError::System { .. }));
    }
}
