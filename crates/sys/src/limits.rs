//! The memory that this process can still take before the kernel would kill it for lack of memory.
//!
//! **Headroom** is the least of two amounts. One is the least that this process's cgroup and those above it
//! may still take (v1 `memory.limit_in_bytes`, v2 `memory.max` and `memory.high`). The other is the machine's
//! available memory. A cgroup's page cache counts as used: the kernel could reclaim it, but its dirty part is
//! not known. A figure too low causes early returns of memory; a figure too high, an OOM kill.
//!
//! Reading it takes some tens of microseconds: callers read it only when their cache has grown.

use crate::caps::{self, Caps};
use crate::text;
use core::ffi::CStr;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The longest control-group directory followed; a longer one counts as unlimited.
const PATH_MAX: usize = 384;
/// The most ancestors of a control group looked at.
const DEPTH_MAX: usize = 16;
/// Values at or above this are "no limit" (v1 writes the largest page-aligned `i64`).
const UNLIMITED: u64 = 1 << 60;
/// Bytes [`Limits::discover`] reads into.
pub const SCRATCH: usize = 20 << 10;

#[derive(Clone, Copy, Debug)]
struct Group {
    /// The directory, without a trailing slash; the first `len` bytes count.
    path: [u8; PATH_MAX],
    len: usize,
    /// Bytes of `path` that are the mount point: ancestors end there.
    root: usize,
    v2: bool,
}

/// Bytes of a group's `memory.stat` that are looked at: all of it, today.
const STAT_BYTES: usize = 4096;

/// Memory for a process that can use more or less of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Available {
    /// Bytes that may still be taken, with files' pages that the kernel would reclaim.
    pub bytes: u64,
    /// Bytes that may be paged out.
    pub swap: u64,
    /// The lowest limit of a control group, in bytes; `u64::MAX` without a limit.
    pub limit: u64,
}

/// The limits this process lives under.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    groups: [Option<Group>; 2],
}

impl Limits {
    /// Limits not looked up yet: only the machine's memory counts.
    pub const fn unknown() -> Limits {
        Limits { groups: [None, None] }
    }

    /// Looks up the control groups of this process, reading into `scratch` (threads have small stacks).
    pub fn discover(scratch: &mut [u8; SCRATCH]) -> Limits {
        if !caps::has(Caps::CGROUP) {
            return Limits::unknown();
        }
        let (membership, mounts) = scratch.split_at_mut(4096);
        let Some(membership) = text::read(c"/proc/self/cgroup", membership) else {
            return Limits::unknown();
        };
        let Some(mounts) = text::read(c"/proc/self/mountinfo", mounts) else {
            return Limits::unknown();
        };
        Limits::of_texts(membership, mounts)
    }

    /// The control groups of a process by the texts of its `cgroup` and `mountinfo`.
    pub(crate) fn of_texts(membership: &[u8], mounts: &[u8]) -> Limits {
        let mut limits = Limits::unknown();
        let v1 = membership.split(|&byte| byte == b'\n').find_map(|line| {
            let (controllers, path) = split_membership(line)?;
            controllers.split(|&byte| byte == b',').any(|name| name == b"memory").then_some(path)
        });
        let v2 = text::line_after(membership, b"0::");
        for (slot, (path, is_v2)) in limits.groups.iter_mut().zip([(v1, false), (v2, true)]) {
            *slot = path.and_then(|path| find_group(mounts, path, is_v2));
        }
        limits
    }

    /// Bytes left before the nearest limit of a control group; `None` without a limit.
    pub fn group_headroom(&self) -> Option<u64> {
        let least = self.groups.iter().flatten().map(Group::headroom).min()?;
        (least < UNLIMITED).then_some(least)
    }

    /// The available memory. Reads only usage and limits where these leave `enough` bytes.
    ///
    /// Pages of files in a group count as available here, and half of those used recently. Otherwise the heap
    /// of a program that reads files would shrink. Dirty pages are written first.
    pub fn available(&self, enough: u64) -> Available {
        let mut all = Available { bytes: machine_available(), swap: u64::MAX, limit: u64::MAX };
        for group in self.groups.iter().flatten() {
            let there = group.available(enough);
            all.bytes = all.bytes.min(there.bytes);
            all.swap = all.swap.min(there.swap);
            all.limit = all.limit.min(there.limit);
        }
        if all.bytes < enough {
            all.swap = all.swap.min(machine_swap());
        }
        all
    }

    /// True for each version of control groups, 1 and 2, that was found.
    pub fn versions(&self) -> [bool; 2] {
        self.groups.map(|group| group.is_some())
    }

    pub(crate) fn levels(&self) -> usize {
        self.groups.iter().flatten().map(|group| group.levels().count()).sum()
    }

    /// The number of times that a group of this process ran into its limit so far: a rise means distress now.
    pub fn distress(&self) -> u64 {
        self.groups.iter().flatten().map(Group::distress).fold(0, u64::saturating_add)
    }
}

/// `hierarchy:controllers:path` without the hierarchy.
fn split_membership(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let first = line.iter().position(|&byte| byte == b':')?;
    let rest = &line[first + 1..];
    let second = rest.iter().position(|&byte| byte == b':')?;
    Some((&rest[..second], &rest[second + 1..]))
}

/// Finds the mounted directory of the group `path` in the text of `mountinfo`.
fn find_group(mounts: &[u8], path: &[u8], v2: bool) -> Option<Group> {
    for line in mounts.split(|&byte| byte == b'\n') {
        let mut fields = line.split(|&byte| byte == b' ');
        let (Some(root), Some(point)) = (fields.nth(3), fields.next()) else { continue };
        let mut tail = fields.skip_while(|field| *field != b"-").skip(1);
        let kind = tail.next().unwrap_or(b"");
        let options = tail.nth(1).unwrap_or(b"");
        let fits = if v2 {
            kind == b"cgroup2"
        } else {
            kind == b"cgroup" && options.split(|&byte| byte == b',').any(|option| option == b"memory")
        };
        if !fits {
            continue;
        }
        // Inside a container the mount shows a subtree: the path below it is what follows the mount's root.
        let below = if root == b"/" { path } else { path.strip_prefix(root).unwrap_or(b"") };
        let below = below.strip_suffix(b"/").unwrap_or(below);
        let len = point.len() + below.len();
        if len + 64 > PATH_MAX {
            return None;
        }
        let mut group = Group { path: [0; PATH_MAX], len, root: point.len(), v2 };
        group.path[..point.len()].copy_from_slice(point);
        group.path[point.len()..len].copy_from_slice(below);
        return Some(group);
    }
    None
}

impl Group {
    fn headroom(&self) -> u64 {
        self.levels().filter_map(|len| Some(self.headroom_at(len)?.1)).min().unwrap_or(u64::MAX)
    }

    /// The least that is available from this group up to the mount's root. Memory that may be paged out is
    /// read only where that is not `enough`.
    fn available(&self, enough: u64) -> Available {
        let mut all = Available { bytes: u64::MAX, swap: u64::MAX, limit: u64::MAX };
        for len in self.levels() {
            let Some((limit, headroom)) = self.headroom_at(len) else { continue };
            all.limit = all.limit.min(limit);
            let bytes =
                if headroom < enough { headroom.saturating_add(self.reclaimable_at(len)) } else { headroom };
            all.bytes = all.bytes.min(bytes);
            if bytes < enough {
                all.swap = all.swap.min(self.swap_at(len));
            }
        }
        all
    }

    /// The lengths of the paths of this group and of its ancestors up to the mount's root.
    fn levels(&self) -> impl Iterator<Item = usize> {
        let above = |&len: &usize| {
            let slash = || self.path[..len].iter().rposition(|&byte| byte == b'/').unwrap_or(0);
            (len > self.root).then(|| slash().max(self.root))
        };
        core::iter::successors(Some(self.len), above).take(DEPTH_MAX)
    }

    /// The limit of the group whose path has `len` bytes, and the bytes below it; `None` if it has no limit.
    fn headroom_at(&self, len: usize) -> Option<(u64, u64)> {
        let (limits, usage): (&[&[u8]], &[u8]) = if self.v2 {
            (&[b"/memory.max\0", b"/memory.high\0"], b"/memory.current\0")
        } else {
            (&[b"/memory.limit_in_bytes\0"], b"/memory.usage_in_bytes\0")
        };
        let limit = limits.iter().filter_map(|name| self.read(len, name)).min();
        let limit = limit.filter(|&limit| limit < UNLIMITED)?;
        let used = self.read(len, usage).unwrap_or(limit);
        Some((limit, limit.saturating_sub(used)))
    }

    /// Bytes of files' pages that the kernel would reclaim first in that group, and half of the others.
    /// Lazily freed memory is among the first.
    fn reclaimable_at(&self, len: usize) -> u64 {
        let mut path = [0u8; PATH_MAX];
        let mut buffer = [0u8; STAT_BYTES];
        let Some(path) = self.file(len, b"/memory.stat\0", &mut path) else { return 0 };
        let Some(stat) = text::read(path, &mut buffer) else { return 0 };
        reclaimable_in(stat, self.v2)
    }

    /// Bytes that processes of that group may have paged out.
    fn swap_at(&self, len: usize) -> u64 {
        if self.v2 {
            let limit = self.read(len, b"/memory.swap.max\0").unwrap_or(u64::MAX);
            return limit.saturating_sub(self.read(len, b"/memory.swap.current\0").unwrap_or(0));
        }
        if self.read(len, b"/memory.swappiness\0") == Some(0) {
            return 0;
        }
        // Both limit and usage are of memory and swap together.
        let both = self.read(len, b"/memory.memsw.limit_in_bytes\0").filter(|&limit| limit < UNLIMITED);
        let Some(both) = both else { return u64::MAX };
        let used = self.read(len, b"/memory.memsw.usage_in_bytes\0").unwrap_or(both);
        both.saturating_sub(used).saturating_sub(self.headroom_at(len).map_or(0, |(_, below)| below))
    }

    /// Times this group hit a limit (with those of groups below it in `memory.events`, but not in v1).
    fn distress(&self) -> u64 {
        if !self.v2 {
            return self.read(self.len, b"/memory.failcnt\0").unwrap_or(0);
        }
        let mut path = [0u8; PATH_MAX];
        let mut buffer = [0u8; 256];
        let path = self.file(self.len, b"/memory.events\0", &mut path);
        let Some(events) = path.and_then(|path| text::read(path, &mut buffer)) else { return 0 };
        distress_in(events)
    }

    /// The number in the file `name` (with its slash and NUL) of the ancestor whose path is `len` bytes long.
    fn read(&self, len: usize, name: &[u8]) -> Option<u64> {
        let mut path = [0u8; PATH_MAX];
        let mut buffer = [0u8; 64];
        text::number(text::read(self.file(len, name, &mut path)?, &mut buffer)?)
    }

    /// Writes to `path` the path of the file `name` (with its slash and NUL) of the group at `len` bytes.
    fn file<'p>(&self, len: usize, name: &[u8], path: &'p mut [u8; PATH_MAX]) -> Option<&'p CStr> {
        path[..len].copy_from_slice(&self.path[..len]);
        path.get_mut(len..len + name.len())?.copy_from_slice(name);
        CStr::from_bytes_until_nul(path).ok()
    }
}

/// The bytes of a group's files' pages that the kernel would reclaim, by the text of its `memory.stat`.
pub(crate) fn reclaimable_in(stat: &[u8], v2: bool) -> u64 {
    let [first, later]: [&[u8]; 2] = if v2 {
        [b"inactive_file ", b"active_file "]
    } else {
        [b"total_inactive_file ", b"total_active_file "]
    };
    let bytes = |name| text::line_after(stat, name).and_then(text::number).unwrap_or(0);
    bytes(first).saturating_add(bytes(later) / 2)
}

/// Times a limit was met, by the text of a group's `memory.events`.
pub(crate) fn distress_in(events: &[u8]) -> u64 {
    let of = |name: &[u8]| text::line_after(events, name).and_then(text::number).unwrap_or(0);
    of(b"high ").saturating_add(of(b"max ")).saturating_add(of(b"oom "))
}

/// `MemAvailable` in bytes, by the text of `meminfo`.
pub(crate) fn available_in(meminfo: &[u8]) -> Option<u64> {
    text::line_after(meminfo, b"MemAvailable:").and_then(text::number).map(|kib| kib.saturating_mul(1024))
}

/// Bytes the machine could give without swapping: `MemAvailable`, or free memory where that is not shown.
pub fn machine_available() -> u64 {
    let mut buffer = [0u8; 512];
    match text::read(c"/proc/meminfo", &mut buffer).and_then(available_in) {
        Some(bytes) => bytes,
        None => {
            let info = rustix::system::sysinfo();
            (info.freeram as u64 + info.bufferram as u64) * u64::from(info.mem_unit.max(1))
        }
    }
}

/// Bytes of memory that the machine has.
pub fn machine_total() -> u64 {
    let info = rustix::system::sysinfo();
    info.totalram as u64 * u64::from(info.mem_unit.max(1))
}

fn machine_swap() -> u64 {
    let info = rustix::system::sysinfo();
    info.freeswap as u64 * u64::from(info.mem_unit.max(1))
}

/// True if address space itself is short: `RLIMIT_AS` or `RLIMIT_DATA` is set, or the kernel accounts every
/// mapping strictly (`vm.overcommit_memory` 2). Then nothing may be mapped ahead of need.
pub fn address_space_is_accounted() -> bool {
    let mut buffer = [0u8; 8];
    let mode = text::read(c"/proc/sys/vm/overcommit_memory", &mut buffer).and_then(text::number);
    if mode != Some(1) {
        let info = rustix::system::sysinfo();
        let all = (info.totalram as u64 + info.totalswap as u64) * u64::from(info.mem_unit.max(1));
        MOST_AT_ONCE.store(all, Relaxed);
    }
    address_space_is_limited() || mode == Some(2)
}

/// True if `RLIMIT_AS` or `RLIMIT_DATA` is set now: another process can set them at any time (`prlimit`).
pub fn address_space_is_limited() -> bool {
    use rustix::process::{Resource, getrlimit};
    [Resource::As, Resource::Data].into_iter().any(|resource| getrlimit(resource).current.is_some())
}

/// Bytes of memory and swap; no limit before that was read, and where every request is to be granted.
static MOST_AT_ONCE: AtomicU64 = AtomicU64::new(u64::MAX);

/// True if the kernel would refuse to map `bytes` bytes at once, as it does by default beyond all memory and
/// swap. Reserved address space is exempt. Strict accounting is [`address_space_is_accounted`].
pub fn is_refused_at_once(bytes: usize) -> bool {
    bytes as u64 > MOST_AT_ONCE.load(Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_found_below_its_mount() {
        let mounts = b"30 20 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
            31 20 0:27 /docker/abc /sys/fs/cgroup/unified rw shared:1 - cgroup2 cgroup2 rw\n";
        let v1 = find_group(mounts, b"/jobs/one", false).expect("the v1 mount");
        assert_eq!(&v1.path[..v1.len], b"/sys/fs/cgroup/memory/jobs/one");
        let v2 = find_group(mounts, b"/docker/abc/x", true).expect("the v2 mount");
        assert_eq!(&v2.path[..v2.len], b"/sys/fs/cgroup/unified/x");
        assert!(find_group(b"", b"/", true).is_none());
    }

    #[test]
    fn the_nearest_ancestor_limit_counts() {
        let dir = std::env::temp_dir().join(format!("vellum-limits-{}", std::process::id()));
        let inner = dir.join("a/b");
        std::fs::create_dir_all(&inner).expect("a scratch directory");
        let write = |name: &str, text: &str| std::fs::write(dir.join(name), text).expect("a scratch file");
        write("memory.max", "max\n");
        write("a/memory.max", "1000\n");
        write("a/memory.current", "400\n");
        write("a/b/memory.max", "5000\n");
        write("a/b/memory.high", "900\n");
        write("a/b/memory.current", "100\n");
        let text = dir.to_str().expect("an ASCII path");
        let line = format!("31 20 0:27 / {text} rw - cgroup2 cgroup2 rw\n");
        let group = find_group(line.as_bytes(), b"/a/b", true).expect("the mount");
        assert_eq!(group.headroom(), 600);
        write("a/b/memory.high", "650\n");
        assert_eq!(group.headroom(), 550);
        std::fs::remove_dir_all(&dir).expect("scratch removed");
    }

    #[test]
    fn files_count_as_available_where_headroom_is_not_enough() {
        let dir = std::env::temp_dir().join(format!("vellum-available-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a scratch directory");
        let write = |name: &str, text: &str| std::fs::write(dir.join(name), text).expect("a scratch file");
        let text = dir.to_str().expect("an ASCII path");
        write("memory.max", "1000\n");
        write("memory.current", "900\n");
        write("memory.stat", "anon 300\nactive_file 200\ninactive_file 300\n");
        write("memory.swap.max", "max\n");
        let line = format!("31 20 0:27 / {text} rw - cgroup2 cgroup2 rw\n");
        let group = find_group(line.as_bytes(), b"/", true).expect("the mount");
        assert_eq!(group.available(50), Available { bytes: 100, swap: u64::MAX, limit: 1000 });
        assert_eq!(
            group.available(400),
            Available { bytes: 500, swap: u64::MAX, limit: 1000 },
            "half of what is active"
        );
        write("memory.swap.max", "70\n");
        write("memory.swap.current", "30\n");
        assert_eq!(group.available(501), Available { bytes: 500, swap: 40, limit: 1000 });

        write("memory.limit_in_bytes", "1000\n");
        write("memory.usage_in_bytes", "900\n");
        write("memory.stat", "inactive_file 1\ntotal_inactive_file 20\ntotal_active_file 60\n");
        let line = format!("35 24 0:30 / {text} rw - cgroup cgroup rw,memory\n");
        let group = find_group(line.as_bytes(), b"/", false).expect("the mount");
        assert_eq!(group.available(1000), Available { bytes: 150, swap: u64::MAX, limit: 1000 });
        write("memory.memsw.limit_in_bytes", "5000\n");
        write("memory.memsw.usage_in_bytes", "1100\n");
        // 3900 of both, 100 of which are memory.
        assert_eq!(group.available(1000).swap, 3800);
        write("memory.swappiness", "0\n");
        assert_eq!(group.available(1000).swap, 0);
        std::fs::remove_dir_all(&dir).expect("scratch removed");
    }
}
