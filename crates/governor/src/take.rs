//! Reclaims memory from a job, by the most precise means that privilege allows.
//!
//! | means | needs | reclaims |
//! | --- | --- | --- |
//! | [`Means::Evict`] | the needs of `Reclaim`, root, and a kernel with generations (MGLRU) | pages that were not referenced within the window; of a suspended job, the kernel's oldest pages |
//! | [`Means::Reclaim`] | a cgroup of version 2 whose `memory.reclaim` may be written | the kernel's oldest pages |
//! | [`Means::PageOut`] | `CAP_SYS_NICE`, and the right to read the process's memory | mappings without a reference within the window; of a suspended job, all |
//! | [`Means::SoftLimit`] | a cgroup of version 1 | nothing at once: the kernel reclaims here first when memory is short |
//! | [`Means::Nothing`] | – | nothing: the job gets advice, and can be suspended |
//!
//! None of these means is a hard limit: lowering a hard limit under a running job can kill the job.
//! Without swap, anonymous memory stays resident.
//!
//! [`Means::Evict`] evicts by age, as Nishigaki 1981 does (see `vellum_workset`). The job's watch ages the
//! job's cgroup (begins a generation of pages) whenever it looks ([`vellum_kernel::generations`]). If the
//! last ageing was more than half a window ago, the governor ages the cgroup itself, unless the watch has
//! looks to come in the present cycle, which that would spoil. A generation that ended a whole window ago is
//! evicted: its pages have been idle for one to two windows.
//!
//! Departure: Nishigaki evicts page by page. Without generations, reading which *pages* of another process
//! were accessed needs a further privilege, so [`Means::PageOut`] works by mappings only. From a job with
//! one large mapping, part of which is in use, it reclaims nothing before the job is suspended.

use crate::guardian::Guardian;
use crate::members::Members;
use std::path::{Path, PathBuf};
use std::time::Duration;
use vellum_kernel::generations::{GroupGenerations, List};
use vellum_kernel::mapping::{Mapping, Sizes, smaps};
use vellum_kernel::{Bytes, Cgroup, Control, Pid, SYS_NICE, SYS_PTRACE, has_capability, statm_resident};
use vellum_sys::{Addr, Span, remote};

/// The bytes paged out in one call: a call holds the process's map.
const CALL_BYTES: u64 = 4 << 20;
/// With less swap free than this there is no place for anything.
pub(crate) const SWAP_MIN: Bytes = Bytes(16 << 20);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Means {
    /// The generations of a control group, and its `memory.reclaim`.
    Evict(GroupGenerations, PathBuf),
    /// `memory.reclaim` of this control group.
    Reclaim(PathBuf),
    /// `process_madvise`.
    PageOut,
    /// `memory.soft_limit_in_bytes` of this control group.
    SoftLimit(PathBuf),
    Nothing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// Pages not referenced for this wall-clock time, by generations. Without generations: mappings without
    /// a reference since the accessed bits were cleared.
    Idle(Duration),
    All,
}

impl Means {
    pub(crate) fn choose(group: Option<&Path>) -> Means {
        let writable = |path: &Path| rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok();
        if let Some(group) = group {
            let cgroup = Cgroup::at(group);
            let reclaim = cgroup.control(Control::Reclaim);
            if writable(&reclaim) {
                return match GroupGenerations::of(group) {
                    Ok(generations) => Means::Evict(generations, reclaim),
                    Err(_) => Means::Reclaim(reclaim),
                };
            }
            let soft_limit = cgroup.control(Control::SoftLimit);
            if writable(&soft_limit) && !may_page_out() {
                return Means::SoftLimit(soft_limit);
            }
        }
        if may_page_out() { Means::PageOut } else { Means::Nothing }
    }

    pub(crate) fn words(&self) -> &'static str {
        match self {
            Means::Evict(..) => "evicting old generations",
            Means::Reclaim(_) => "memory.reclaim",
            Means::PageOut => "paging out idle mappings",
            Means::SoftLimit(_) => "a soft limit",
            Means::Nothing => "advice and suspension only",
        }
    }

    /// True if it can reclaim memory with this much free swap.
    pub(crate) fn can_reclaim(&self, swap: Bytes) -> bool {
        matches!(self, Means::Evict(..) | Means::Reclaim(_) | Means::PageOut) && swap >= SWAP_MIN
    }

    /// Takes about `wanted` from the members; returns what they hold less.
    pub(crate) fn reclaim(&self, wanted: Bytes, members: &Members, which: Which) -> Bytes {
        let before = resident(members);
        match (self, which) {
            (Means::Evict(generations, _), Which::Idle(idle)) => {
                // A group that is gone has nothing to give.
                let _ = generations.evict(idle, wanted.0.div_ceil(vellum_sys::PAGE as u64));
            }
            (Means::Reclaim(file) | Means::Evict(_, file), _) => {
                // The kernel says EAGAIN if it found less: then less was taken.
                let _ = std::fs::write(file, wanted.0.to_string());
            }
            (Means::PageOut, _) => page_out(wanted, members, which),
            (Means::SoftLimit(_) | Means::Nothing, _) => {}
        }
        Bytes(before.0.saturating_sub(resident(members).0))
    }

    /// Ages the group if that was last done more than `after` ago. Returns true if the generations now show
    /// which pages have been idle for `idle`.
    pub(crate) fn age(&self, after: Option<Duration>, idle: Duration) -> bool {
        let Means::Evict(generations, _) = self else { return true };
        // Where generations can no longer be read, ages will never be known: then taking nothing must count.
        let Ok(lists) = generations.lists() else { return true };
        let due = |list: &List| list.generations.last().is_some_and(|last| Some(last.age) >= after);
        let lists = match after {
            Some(_) if lists.iter().any(due) => generations.age().unwrap_or(lists),
            _ => lists,
        };
        lists.iter().any(|list| list.idle_for(idle).is_some())
    }

    /// Sets the soft limit of the job.
    pub(crate) fn soften(&self, target: Bytes, guardian: &Guardian) {
        let Means::SoftLimit(file) = self else { return };
        let before = std::fs::read_to_string(file).unwrap_or_default();
        if guardian.table().will_change(file, before.trim()) {
            let _ = std::fs::write(file, target.0.to_string());
        }
    }

    pub(crate) fn harden(&self, guardian: &Guardian) {
        let Means::SoftLimit(file) = self else { return };
        // A limit of -1 is none, which is what it was before unless somebody had set one; the guardian knows
        // which.
        if let Some(before) = guardian.table().was(file) {
            let _ = std::fs::write(file, before);
            guardian.table().changed_back(file);
        }
    }
}

/// True if we may page out other processes' memory.
pub fn may_page_out() -> bool {
    has_capability(SYS_NICE) && has_capability(SYS_PTRACE)
}

fn resident(members: &Members) -> Bytes {
    let of = |pid: &Pid| Some(statm_resident(&std::fs::read(pid.file("statm")).ok()?)?.0);
    members.keys().filter_map(of).sum()
}

fn page_out(wanted: Bytes, members: &Members, which: Which) {
    let mut left = wanted.0;
    for pid in members.keys() {
        let Ok(process) = remote::open(pid.0) else { continue };
        let text = std::fs::read(pid.file("smaps")).unwrap_or_default();
        for (mapping, sizes) in smaps(&text).filter(|(mapping, sizes)| gives(mapping, sizes, which)) {
            let (mut start, mut rest) = (mapping.start, mapping.end - mapping.start);
            // A sparse mapping holds less than it spans.
            let dense = sizes.resident.0 as f64 / rest as f64;
            while rest > 0 {
                if left == 0 {
                    return;
                }
                let piece = rest.min(CALL_BYTES);
                let span = Span::new(Addr::new(start as usize), piece as usize);
                if remote::page_out(&process, span).is_err() {
                    break;
                }
                left = left.saturating_sub((piece as f64 * dense) as u64);
                (start, rest) = (start + piece, rest - piece);
            }
        }
    }
}

fn gives(mapping: &Mapping<'_>, sizes: &Sizes, which: Which) -> bool {
    let is_idle = which == Which::All || sizes.referenced == Bytes(0);
    let is_fixed = sizes.is_fixed || mapping.is_kernels();
    mapping.is_private() && !is_fixed && sizes.resident > Bytes(0) && mapping.end > mapping.start && is_idle
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_read_and_chosen() {
        let text = b"\
7f00-7f10 rw-p 00000000 00:00 0 \nSize: 64 kB\nRss:  40 kB\nReferenced:  0 kB\nVmFlags: rd wr mr mw me ac \n\
7f10-7f20 rw-p 00000000 00:00 0                [heap]\nRss: 64 kB\nReferenced: 4 kB\nVmFlags: rd wr\n\
7f20-7f30 rw-s 00000000 00:01 9                /dev/shm/a b: c\nRss: 64 kB\nReferenced: 0 kB\nVmFlags: rd wr sh\n\
7f30-7f40 rw-p 00000000 00:00 0 \nRss: 64 kB\nReferenced: 0 kB\nVmFlags: rd wr lo\n\
7f40-7f50 r-xp 00000000 00:00 0                [vdso]\nRss: 4 kB\nReferenced: 0 kB\nVmFlags: rd ex\n";
        let gives =
            |which| smaps(text).map(|(mapping, sizes)| gives(&mapping, &sizes, which)).collect::<Vec<_>>();
        assert_eq!(gives(Which::Idle(Duration::ZERO)), [true, false, false, false, false]);
        assert_eq!(gives(Which::All), [true, true, false, false, false]);
    }

    #[test]
    fn without_swap_nothing_is_counted_on() {
        assert!(!Means::PageOut.can_reclaim(Bytes(0)) && Means::PageOut.can_reclaim(SWAP_MIN));
        assert!(
            !Means::Nothing.can_reclaim(SWAP_MIN) && !Means::SoftLimit("/x".into()).can_reclaim(SWAP_MIN)
        );
        assert_eq!(Means::Nothing.reclaim(Bytes(1 << 20), &Members::new(), Which::All), Bytes(0));
    }
}
