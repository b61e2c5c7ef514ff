//! Which source a job is watched by.
//!
//! | the job has | taken is the first that can be used of |
//! | --- | --- |
//! | less than [`TABLES_FROM`] | accessed bits: to load what reads page tables would cost more than it saves |
//! | less than [`SAMPLED_FROM`] | page tables, accessed bits |
//! | more | DAMON, generations, page tables, accessed bits |
//!
//! From [`SAMPLED_FROM`] on a clearing by `clear_refs` keeps the job from changing its mappings, and from many of its faults, for a fifth of a second and more (some 22 ms
//! for each GiB). Neither DAMON nor the kernel's ageing locks mappings so.
//!
//! What was asked for by name is taken, or refused with the reason.

use super::accessed::AccessedBits;
use super::damon::Damon;
use super::generations::Generations;
use super::idle::IdleBitmap;
use super::options::WatchError;
use super::source::{Availability, Source, SourceKind};
use super::tables::PageTables;
use super::target::Target;
use crate::Bytes;

/// Where a job has so much memory, what it costs to load the program that reads page tables comes back with the first cycle or the second: the kernel
/// looks through the program for 40 to 70 ms, and a look at a page is 66 ns shorter then.
pub(super) const TABLES_FROM: Bytes = Bytes(512 << 20);
/// Where a job has so much memory, clearing all of its bits at once stops it for too long.
pub(super) const SAMPLED_FROM: Bytes = Bytes(10 << 30);

/// The source asked for; else the one that will cost less, of those that can be used.
pub(super) fn choose(asked: Option<SourceKind>, target: &Target) -> Result<Box<dyn Source>, WatchError> {
    let open = |kind| open(kind, target).map_err(|why| WatchError::Source { kind, why });
    if let Some(kind) = asked {
        return open(kind);
    }
    let (last, others) = preferred(target.resident());
    others.iter().find_map(|kind| open(*kind).ok()).map_or_else(|| open(last), Ok)
}

/// For a job of this size: what is taken if all else cannot be, and what is tried before, in order.
fn preferred(resident: Bytes) -> (SourceKind, &'static [SourceKind]) {
    use SourceKind::{AccessedBits, Damon, Generations, PageTables};
    let others: &[SourceKind] = match resident {
        small if small < TABLES_FROM => &[],
        middling if middling < SAMPLED_FROM => &[PageTables],
        _ => &[Damon, Generations, PageTables],
    };
    (AccessedBits, others)
}

fn open(kind: SourceKind, target: &Target) -> Result<Box<dyn Source>, String> {
    // What is cleared by `clear_refs` needs that, whatever counts afterwards. The others look for themselves.
    if matches!(kind, SourceKind::AccessedBits | SourceKind::PageTables)
        && let Availability::Absent(why) = SourceKind::AccessedBits.availability()
    {
        return Err(why);
    }
    Ok(match kind {
        SourceKind::PageTables => Box::new(PageTables::open()?),
        SourceKind::AccessedBits => Box::new(AccessedBits::default()),
        SourceKind::Damon => Box::new(Damon::open(target)?),
        SourceKind::Generations => Box::new(Generations::of(target)?),
        SourceKind::IdleBitmap => Box::new(IdleBitmap::open()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_larger_the_job_the_less_is_cleared_at_once() {
        use SourceKind::{AccessedBits, Damon, PageTables};
        let first = |mib: u64| {
            let (last, others) = preferred(Bytes(mib << 20));
            (others.first().copied().unwrap_or(last), last)
        };
        assert_eq!(first(1), (AccessedBits, AccessedBits));
        assert_eq!((first(511), first(512)), ((AccessedBits, AccessedBits), (PageTables, AccessedBits)));
        assert_eq!(first(10 << 10), (Damon, AccessedBits));
    }

    #[test]
    fn what_was_asked_for_is_taken_or_refused_by_name() {
        let target = Target::Only(vec![crate::Pid::me()]);
        for kind in SourceKind::ALL {
            match choose(Some(kind), &target) {
                Ok(source) => assert_eq!(source.kind(), kind),
                Err(why) => assert!(why.to_string().contains(kind.name()), "{why}"),
            }
        }
    }
}
