//! Taking memory from a job, as gently as privilege allows.
//!
//! | means | needs | takes |
//! | --- | --- | --- |
//! | [`Means::Evict`] | the same, root, and a kernel with generations (MGLRU) | pages that were not referenced within the window; of a suspended job, what the kernel finds oldest |
//! | [`Means::Reclaim`] | a control group of version 2 whose `memory.reclaim` may be written | what the kernel finds oldest |
//! | [`Means::PageOut`] | `CAP_SYS_NICE`, and the right to look into the process | mappings in which nothing was referenced within the window; of a suspended job, all |
//! | [`Means::SoftLimit`] | a control group of version 1 | nothing by itself: the kernel turns here first when memory is short |
//! | [`Means::Nothing`] | – | nothing: there is advice, and suspending the whole job |
//!
//! None of them is a hard limit: lowering one under a running job can kill it. Nothing is taken where there
//! is no place for it: without swap, anonymous memory stays where it is.
//!
//! [`Means::Evict`] is the source's own way, eviction by age. The job's watch ages its control group at each
//! look ([`vellum_reference::generations`]). If that was more than half a window ago, the governor ages it,
//! except during a cycle. Only generations that ended a whole window ago are taken. There are four of them,
//! so pages are evicted when they have been idle for one to two windows.
//!
//! Departure: the source evicts page by page. Without generations, accessed bits of another process's *pages*
//! need a further privilege, so [`Means::PageOut`] works by mappings only. From a job with one large mapping,
//! part of which is in use, it takes nothing before the job is suspended.

use crate::guardian::Guardian;
use crate::members::Members;
use std::path::{Path, PathBuf};
use std::time::Duration;
use vellum_process::{Bytes, Pid, privilege, procfs};
use vellum_reference::generations::{GroupGenerations, List};
use vellum_sys::remote;

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

/// Which memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// Pages that were not referenced for this much wall-clock time, where ages are known; elsewhere mappings
    /// without a reference since the accessed bits were cleared.
    Idle(Duration),
    All,
}

impl Means {
    /// The best there is for a job in `group`.
    pub(crate) fn choose(group: Option<&Path>) -> Means {
        let writable = |path: &Path| rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok();
        if let Some(group) = group {
            let reclaim = group.join("memory.reclaim");
            if writable(&reclaim) {
                return match GroupGenerations::of(group) {
                    Ok(generations) => Means::Evict(generations, reclaim),
                    Err(_) => Means::Reclaim(reclaim),
                };
            }
            if writable(&group.join("memory.soft_limit_in_bytes")) && !may_page_out() {
                return Means::SoftLimit(group.join("memory.soft_limit_in_bytes"));
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

    /// Whether it takes anything where `swap` is free.
    pub(crate) fn takes(&self, swap: Bytes) -> bool {
        matches!(self, Means::Evict(..) | Means::Reclaim(_) | Means::PageOut) && swap >= SWAP_MIN
    }

    /// Takes about `wanted` from the members; returns what they hold less.
    pub(crate) fn take(&self, wanted: Bytes, members: &Members, which: Which) -> Bytes {
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

    /// Ages the group if that was last done more than `after` ago. Returns whether it is known now which
    /// pages have been idle for `idle`.
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

    /// Says how much the job may have when memory is short.
    pub(crate) fn soften(&self, target: Bytes, guardian: &Guardian) {
        let Means::SoftLimit(file) = self else { return };
        let before = std::fs::read_to_string(file).unwrap_or_default();
        if guardian.will_change(file, before.trim()) {
            let _ = std::fs::write(file, target.0.to_string());
        }
    }

    /// Restores the earlier limit.
    pub(crate) fn harden(&self, guardian: &Guardian) {
        let Means::SoftLimit(file) = self else { return };
        // A limit of -1 is none, which is what it was before unless somebody had set one; the guardian knows
        // which.
        if let Some(before) = guardian.was(file) {
            let _ = std::fs::write(file, before);
            guardian.changed_back(file);
        }
    }
}

/// Whether we may page out other processes' memory.
#[must_use]
pub fn may_page_out() -> bool {
    privilege::holds(privilege::SYS_NICE) && privilege::holds(privilege::SYS_PTRACE)
}

/// What the members hold, exactly.
fn resident(members: &Members) -> Bytes {
    let of = |pid: &Pid| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
        Some(Bytes::from_pages(text.split_ascii_whitespace().nth(1)?.parse().ok()?))
    };
    members.keys().filter_map(of).sum()
}

fn page_out(wanted: Bytes, members: &Members, which: Which) {
    let mut left = wanted.0;
    for pid in members.keys() {
        let Ok(process) = remote::open(pid.0) else { continue };
        let text = procfs::text(format!("/proc/{pid}/smaps")).unwrap_or_default();
        for mapping in mappings(&text).filter(|mapping| mapping.gives(which)) {
            let (mut start, mut rest) = (mapping.start, mapping.span());
            // A sparse mapping holds less than it spans.
            let dense = mapping.resident.0 as f64 / rest as f64;
            while rest > 0 {
                if left == 0 {
                    return;
                }
                let piece = rest.min(CALL_BYTES);
                if remote::page_out(&process, start as usize, piece as usize).is_err() {
                    break;
                }
                left = left.saturating_sub((piece as f64 * dense) as u64);
                (start, rest) = (start + piece, rest - piece);
            }
        }
    }
}

/// One mapping, as `smaps` has it.
#[derive(Debug, PartialEq)]
pub(crate) struct Mapping {
    start: u64,
    end: u64,
    private: bool,
    resident: Bytes,
    referenced: Bytes,
    /// It cannot be paged: locked, huge by reservation, a device's.
    fixed: bool,
}

impl Mapping {
    /// Bytes of address space.
    pub(crate) fn span(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    fn gives(&self, which: Which) -> bool {
        let idle = which == Which::All || self.referenced == Bytes(0);
        self.private && !self.fixed && self.resident > Bytes(0) && self.end > self.start && idle
    }
}

pub(crate) fn mappings(text: &str) -> impl Iterator<Item = Mapping> + '_ {
    let mut lines = text.lines().peekable();
    std::iter::from_fn(move || {
        let (mut mapping, name) = loop {
            let mut words = lines.next()?.split_ascii_whitespace();
            let Some((start, end)) = words.next().and_then(|range| range.split_once('-')) else { continue };
            let (Ok(start), Ok(end)) = (u64::from_str_radix(start, 16), u64::from_str_radix(end, 16)) else {
                continue;
            };
            let private = words.next().is_some_and(|mode| mode.ends_with('p'));
            let zero = Bytes(0);
            break (
                Mapping { start, end, private, resident: zero, referenced: zero, fixed: false },
                words.nth(3),
            );
        };
        // What the kernel maps into every process.
        mapping.fixed = name.is_some_and(|name| name.starts_with("[v"));
        while let Some((field, value)) = lines.peek().and_then(|line| line.split_once(':')) {
            if field.contains('-') {
                break;
            }
            let size = || {
                value
                    .split_ascii_whitespace()
                    .next()
                    .and_then(|number| number.parse().ok())
                    .map(Bytes::from_kib)
            };
            match field {
                "Rss" => mapping.resident = size().unwrap_or_default(),
                "Referenced" => mapping.referenced = size().unwrap_or_default(),
                "VmFlags" => {
                    mapping.fixed |=
                        value.split_ascii_whitespace().any(|flag| ["lo", "ht", "pf", "io"].contains(&flag));
                }
                _ => {}
            }
            lines.next();
        }
        Some(mapping)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_read_and_chosen() {
        let text = "\
7f00-7f10 rw-p 00000000 00:00 0 \nSize: 64 kB\nRss:  40 kB\nReferenced:  0 kB\nVmFlags: rd wr mr mw me ac \n\
7f10-7f20 rw-p 00000000 00:00 0                [heap]\nRss: 64 kB\nReferenced: 4 kB\nVmFlags: rd wr\n\
7f20-7f30 rw-s 00000000 00:01 9                /dev/shm/a b: c\nRss: 64 kB\nReferenced: 0 kB\nVmFlags: rd wr sh\n\
7f30-7f40 rw-p 00000000 00:00 0 \nRss: 64 kB\nReferenced: 0 kB\nVmFlags: rd wr lo\n\
7f40-7f50 r-xp 00000000 00:00 0                [vdso]\nRss: 4 kB\nReferenced: 0 kB\nVmFlags: rd ex\n";
        let all: Vec<Mapping> = mappings(text).collect();
        assert_eq!(all.len(), 5);
        assert_eq!((all[0].start, all[0].end, all[0].resident), (0x7f00, 0x7f10, Bytes::from_kib(40)));
        let gives = |which| all.iter().map(|mapping| mapping.gives(which)).collect::<Vec<_>>();
        assert_eq!(gives(Which::Idle(Duration::ZERO)), [true, false, false, false, false]);
        assert_eq!(gives(Which::All), [true, true, false, false, false]);
        assert_eq!(mappings("nonsense\n:::\n-\n").count(), 0);
    }

    #[test]
    fn without_swap_nothing_is_counted_on() {
        assert!(!Means::PageOut.takes(Bytes(0)) && Means::PageOut.takes(SWAP_MIN));
        assert!(!Means::Nothing.takes(SWAP_MIN) && !Means::SoftLimit("/x".into()).takes(SWAP_MIN));
        assert_eq!(Means::Nothing.take(Bytes(1 << 20), &Members::new(), Which::All), Bytes(0));
    }
}
