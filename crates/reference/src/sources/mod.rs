//! Chooses the source (a way to observe page references) by which a job is watched.
//!
//! | resident memory of the job | the first available of these sources is used |
//! | --- | --- |
//! | less than [`TABLES_FROM`] | accessed bits (loading the program that reads page tables would cost more than it saves) |
//! | less than [`GENERATIONS_FROM`] | page tables, accessed bits |
//! | more | generations, page tables, accessed bits |
//!
//! From [`GENERATIONS_FROM`] on, a clearing by `clear_refs` blocks changes of mappings and many faults for a
//! fifth of a second and more (some 22 ms for each GiB). The kernel's ageing does not lock mappings.
//!
//! If the user names a source, that one is used, or the watch fails with the reason.

pub(crate) mod accessed;
mod aside;
mod clearing;
mod generations;
mod pools;
mod stale;
pub(crate) mod tables;

pub use stale::has_soft_dirty;

use crate::options::WatchError;
use crate::source::{Availability, Source, SourceKind};
use crate::target::Target;
use accessed::AccessedBits;
use generations::Generations;
use std::fs::OpenOptions;
use std::io;
use tables::Reader;
use vellum_kernel::Bytes;

/// From this much memory on, loading the program that reads page tables is worth it by the second cycle.
/// Verifying the program takes 40 to 70 ms, and saves 66 ns a page and look.
pub(super) const TABLES_FROM: Bytes = Bytes(512 << 20);
/// From this much memory on, clearing all bits at once stops the job for too long.
pub(super) const GENERATIONS_FROM: Bytes = Bytes(10 << 30);

/// The selected source, or the cheapest usable one.
pub(super) fn choose(asked: Option<SourceKind>, target: &Target) -> Result<Box<dyn Source>, WatchError> {
    let open = |kind| open(kind, target).map_err(|why| WatchError::Source { kind, why });
    if let Some(kind) = asked {
        return open(kind);
    }
    let (last, others) = preferred(target.resident());
    others.iter().find_map(|kind| open(*kind).ok()).map_or_else(|| open(last), Ok)
}

/// For a job of this size: the source of last resort, and those tried before it, in order.
fn preferred(resident: Bytes) -> (SourceKind, &'static [SourceKind]) {
    use SourceKind::{AccessedBits, Generations, PageTables};
    let others: &[SourceKind] = match resident {
        small if small < TABLES_FROM => &[],
        middling if middling < GENERATIONS_FROM => &[PageTables],
        _ => &[Generations, PageTables],
    };
    (AccessedBits, others)
}

fn open(kind: SourceKind, target: &Target) -> Result<Box<dyn Source>, String> {
    // Both of these clear by `clear_refs`, so they need it. The others check for themselves.
    if matches!(kind, SourceKind::AccessedBits | SourceKind::PageTables)
        && let Availability::Absent(why) = SourceKind::AccessedBits.availability()
    {
        return Err(why);
    }
    Ok(match kind {
        SourceKind::PageTables => Box::new(AccessedBits::by_tables()?),
        SourceKind::AccessedBits => Box::new(AccessedBits::by_smaps()),
        SourceKind::Generations => Box::new(Generations::of(target)?),
    })
}

impl SourceKind {
    /// True if this machine, and this process's privilege, allow it. Changes nothing. For
    /// [`SourceKind::Generations`] it cannot test if the job is a control group.
    pub fn availability(self) -> Availability {
        let usable =
            |found: Result<(), String>| found.map_or_else(Availability::Absent, |()| Availability::Usable);
        match self {
            SourceKind::PageTables => match accessed_bits() {
                Availability::Usable => usable(Reader::open().map(|_| ())),
                absent => absent,
            },
            SourceKind::AccessedBits => accessed_bits(),
            SourceKind::Generations => usable(vellum_kernel::generations::available()),
        }
    }
}

fn accessed_bits() -> Availability {
    let refused = |what: &str, error: io::Error| Availability::Absent(format!("{what}: {error}"));
    if let Err(error) = OpenOptions::new().write(true).open("/proc/self/clear_refs") {
        return refused("/proc/self/clear_refs (CONFIG_PROC_PAGE_MONITOR)", error);
    }
    match std::fs::read("/proc/self/smaps_rollup") {
        Ok(_) => Availability::Usable,
        Err(error) => refused("/proc/self/smaps_rollup", error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_larger_the_job_the_less_is_cleared_at_once() {
        use SourceKind::{AccessedBits, Generations, PageTables};
        let first = |mib: u64| {
            let (last, others) = preferred(Bytes(mib << 20));
            (others.first().copied().unwrap_or(last), last)
        };
        assert_eq!(first(1), (AccessedBits, AccessedBits));
        assert_eq!((first(511), first(512)), ((AccessedBits, AccessedBits), (PageTables, AccessedBits)));
        assert_eq!(first(10 << 10), (Generations, AccessedBits));
    }

    #[test]
    fn what_was_asked_for_is_taken_or_refused_by_name() {
        let target = Target::Only(vec![vellum_kernel::Pid::me()]);
        for kind in SourceKind::ALL {
            match choose(Some(kind), &target) {
                Ok(source) => assert_eq!(source.kind(), kind),
                Err(why) => assert!(why.to_string().contains(kind.name()), "{why}"),
            }
        }
    }

    #[test]
    fn text_that_a_jobs_processes_share_counts_once_in_every_source() {
        use std::io::{Read, Write};
        use std::process::{Command, Stdio};
        let mut children: Vec<_> = (0..6)
            .map(|_| Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap())
            .collect();
        for child in &mut children {
            // One that answers has all of its libraries.
            child.stdin.as_mut().unwrap().write_all(b"x").unwrap();
            child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        }
        let job: Vec<_> = children.iter().map(|child| vellum_kernel::Pid(child.id() as i32)).collect();
        for kind in [SourceKind::AccessedBits, SourceKind::PageTables] {
            let found = open(kind, &Target::Only(job.clone())).and_then(|mut source| {
                let count = |source: &mut Box<dyn Source>, of: &[_]| {
                    source.count(of).map(|done| done.count).map_err(|why| why.to_string())
                };
                let mut alone = open(kind, &Target::Only(job.clone()))?;
                let all = count(&mut source, &job)?;
                // What those that are gone have shared is not taken off the one that is left.
                let left = count(&mut source, &job[..1])?;
                Ok((count(&mut alone, &job[..1])?, all, left))
            });
            match found {
                Err(why) => vellum_skip::skip(format_args!("{kind}: {why}")),
                Ok((one, all, left)) => {
                    let off = left.resident.0.abs_diff(one.resident.0);
                    assert!(off <= one.resident.0 / 4, "{kind}: {one:?}, {left:?}");
                    assert!(one.shared > Bytes(1 << 20), "{kind}: {one:?}");
                    assert!(all.shared.0 < one.shared.0 * 3 / 2, "{kind}: {one:?}, {all:?}");
                    assert!(all.resident.0 < one.resident.0 * 4, "{kind}: {one:?}, {all:?}");
                    assert!(all.twice.0 > one.shared.0 * 4, "{kind}: {one:?}, {all:?}");
                }
            }
        }
        for mut child in children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}
