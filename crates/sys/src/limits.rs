//! How much memory is left before something dies.
//!
//! **Headroom** is the least of: what each control group above this process may still take (v1
//! `memory.limit_in_bytes`, v2 `memory.max` and `memory.high`), and what the machine has available. Page cache in
//! a group counts as used: it could be reclaimed, but how much of it is dirty is not known, and erring here costs
//! a lazy mark where erring the other way costs a life.
//!
//! Reading is some tens of microseconds; callers ask when their cache has grown, not for each block.

use crate::caps::{self, Caps};
use crate::text;
use core::ffi::CStr;

/// The longest control-group directory followed; a longer one counts as unlimited.
const PATH_MAX: usize = 384;
/// The most ancestors of a control group looked at.
const DEPTH_MAX: usize = 16;
/// Values at or above this are "no limit" (v1 writes the largest page-aligned `i64`).
const UNLIMITED: u64 = 1 << 60;
/// Bytes [`Limits::discover`] reads into.
pub const SCRATCH: usize = 20 << 10;

/// Where a control group's memory files are.
#[derive(Clone, Copy, Debug)]
struct Group {
    /// The directory, without a trailing slash; the first `len` bytes count.
    path: [u8; PATH_MAX],
    len: usize,
    /// Bytes of `path` that are the mount point: ancestors end there.
    root: usize,
    v2: bool,
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
        let mut limits = Limits::unknown();
        if !caps::has(Caps::CGROUP) {
            return limits;
        }
        let (membership, mounts) = scratch.split_at_mut(4096);
        let Some(membership) = text::read(c"/proc/self/cgroup", membership) else {
            return limits;
        };
        let Some(mounts) = text::read(c"/proc/self/mountinfo", mounts) else {
            return limits;
        };
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

    /// Bytes that may still be taken before the nearest limit.
    pub fn headroom(&self) -> u64 {
        let mut least = machine_available();
        for group in self.groups.iter().flatten() {
            least = least.min(group.headroom());
        }
        least
    }

    /// How often a group of this process ran into its limit so far: a rise means distress now.
    pub fn distress(&self) -> u64 {
        self.groups.iter().flatten().map(Group::distress).sum()
    }

    /// Whether any control group sets a limit.
    pub fn is_limited(&self) -> bool {
        self.groups.iter().flatten().any(|group| group.headroom() < UNLIMITED)
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
    /// The least headroom from this group up to the mount's root.
    fn headroom(&self) -> u64 {
        let mut least = u64::MAX;
        let mut len = self.len;
        for _ in 0..DEPTH_MAX {
            let (limits, usage): (&[&[u8]], &[u8]) = if self.v2 {
                (&[b"/memory.max\0", b"/memory.high\0"], b"/memory.current\0")
            } else {
                (&[b"/memory.limit_in_bytes\0"], b"/memory.usage_in_bytes\0")
            };
            let limit = limits.iter().filter_map(|name| self.read(len, name)).min().unwrap_or(u64::MAX);
            if limit < UNLIMITED {
                let used = self.read(len, usage).unwrap_or(limit);
                least = least.min(limit.saturating_sub(used));
            }
            if len <= self.root {
                break;
            }
            len = self.path[..len].iter().rposition(|&byte| byte == b'/').unwrap_or(0).max(self.root);
        }
        least
    }

    /// Times this group itself hit a limit (ancestors' hits show in `memory.events` too, v1 counts its own only).
    fn distress(&self) -> u64 {
        if !self.v2 {
            return self.read(self.len, b"/memory.failcnt\0").unwrap_or(0);
        }
        let mut path = [0u8; PATH_MAX];
        path[..self.len].copy_from_slice(&self.path[..self.len]);
        let name = b"/memory.events\0";
        path[self.len..self.len + name.len()].copy_from_slice(name);
        let mut buffer = [0u8; 256];
        let events = CStr::from_bytes_until_nul(&path).ok().and_then(|path| text::read(path, &mut buffer));
        let Some(events) = events else { return 0 };
        let of = |name: &[u8]| text::line_after(events, name).and_then(text::number).unwrap_or(0);
        of(b"high ") + of(b"max ") + of(b"oom ")
    }

    /// The number in the file `name` (with its slash and NUL) of the ancestor whose path is `len` bytes long.
    fn read(&self, len: usize, name: &[u8]) -> Option<u64> {
        let mut path = [0u8; PATH_MAX];
        path[..len].copy_from_slice(&self.path[..len]);
        path.get_mut(len..len + name.len())?.copy_from_slice(name);
        let path = CStr::from_bytes_until_nul(&path).ok()?;
        let mut buffer = [0u8; 64];
        text::number(text::read(path, &mut buffer)?)
    }
}

/// Bytes the machine could give without swapping: `MemAvailable`, or free memory where that is not shown.
pub fn machine_available() -> u64 {
    let mut buffer = [0u8; 512];
    let shown = text::read(c"/proc/meminfo", &mut buffer)
        .and_then(|meminfo| text::line_after(meminfo, b"MemAvailable:"))
        .and_then(text::number);
    match shown {
        Some(kib) => kib * 1024,
        None => {
            let info = rustix::system::sysinfo();
            (info.freeram as u64 + info.bufferram as u64) * u64::from(info.mem_unit.max(1))
        }
    }
}

/// Whether address space itself is short: `RLIMIT_AS` or `RLIMIT_DATA` is set, or the kernel accounts every mapping
/// strictly (`vm.overcommit_memory` 2). Then nothing may be mapped ahead of need.
pub fn address_space_is_accounted() -> bool {
    use rustix::process::{Resource, getrlimit};
    if [Resource::As, Resource::Data].into_iter().any(|resource| getrlimit(resource).current.is_some()) {
        return true;
    }
    let mut buffer = [0u8; 8];
    text::read(c"/proc/sys/vm/overcommit_memory", &mut buffer).and_then(text::number) == Some(2)
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
    fn membership_lines() {
        assert_eq!(split_membership(b"4:memory:/a:b"), Some((&b"memory"[..], &b"/a:b"[..])));
        assert_eq!(split_membership(b"nonsense"), None);
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
    fn this_machine_has_some_memory() {
        assert!(machine_available() > 0);
        assert!(Limits::discover(&mut [0; SCRATCH]).headroom() > 0);
    }
}
