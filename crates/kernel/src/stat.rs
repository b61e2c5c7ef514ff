//! Processes by their id, and the parsers of their files `stat`, `statm` and `children` in `/proc`.
//!
//! `stat` has identity, times and faults. `statm` has the exact number of resident pages; some kernels
//! estimate it in `stat`. Both have one line (see proc(5)); reading one takes a few microseconds.
//!
//! - Fields are counted from the last `)`: a command's name may hold spaces and parentheses.
//! - Faults and times have two parts: *own* (all threads of the process) and *waited* (children that the
//!   process has waited for). The total of a job is the sum of both parts over its live processes, plus the
//!   waited part of the process that started the job.

use crate::Bytes;
use crate::file::{Unreadable, field, text};
use std::collections::BTreeSet;
use std::ffi::CStr;
use std::ops::AddAssign;
use std::path::PathBuf;
use std::time::Duration;

/// A process id, in our own pid namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pid(pub i32);

impl Pid {
    /// This process.
    pub fn me() -> Pid {
        Pid(std::process::id() as i32)
    }

    /// Every process that `/proc` lists.
    pub fn all() -> Result<impl Iterator<Item = Pid>, Unreadable> {
        numbered("/proc".into())
    }

    /// The numbers of its threads.
    pub fn threads(self) -> Result<impl Iterator<Item = Pid>, Unreadable> {
        numbered(self.file("task"))
    }

    /// The path of its file `name` in `/proc`.
    pub fn file(self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{self}/{name}"))
    }

    /// Its `stat`; `None` if it has ended and was waited for.
    pub fn stat(self) -> Option<Stat> {
        Stat::parse(&std::fs::read(self.file("stat")).ok()?)
    }

    /// True if it exists and is no zombie.
    pub fn is_alive(self) -> bool {
        self.stat().is_some_and(|stat| !stat.is_zombie())
    }

    /// The children that any of its threads started. Empty on a kernel without `children` files.
    pub fn children(self) -> Vec<Pid> {
        let list = |thread| std::fs::read(self.file(&format!("task/{thread}/children"))).ok();
        let lists = self.threads().into_iter().flatten().filter_map(list);
        lists.flat_map(|list| child_pids(&list).collect::<Vec<_>>()).collect()
    }

    /// These processes and all that descend from them, at most `most`.
    pub fn descendants(of: impl Iterator<Item = Pid>, most: usize) -> BTreeSet<Pid> {
        let mut found = BTreeSet::new();
        let mut queue: Vec<Pid> = of.collect();
        while let Some(pid) = queue.pop() {
            if found.len() < most && found.insert(pid) {
                queue.extend(pid.children());
            }
        }
        found
    }

    /// Its environment: `NAME=value` and a zero byte for each variable. Empty while it executes another
    /// program.
    ///
    /// # Errors
    /// [`Unreadable`].
    pub fn environment(self) -> Result<Vec<u8>, Unreadable> {
        let path = self.file("environ");
        std::fs::read(&path).map_err(|source| Unreadable { path, source })
    }

    /// Numbers of its `io`, which count since it started: `syscw` or `rchar`, for example. `None` if this
    /// process may not read them.
    pub fn io<const N: usize>(self, names: [&str; N]) -> Option<[u64; N]> {
        let text = text(self.file("io")).ok()?;
        let mut numbers = [0; N];
        for (number, name) in numbers.iter_mut().zip(names) {
            *number = field(&text, name)?;
        }
        Some(numbers)
    }
}

impl std::fmt::Display for Pid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// The entries of a directory whose names are numbers.
fn numbered(path: PathBuf) -> Result<impl Iterator<Item = Pid>, Unreadable> {
    let entries = std::fs::read_dir(&path).map_err(|source| Unreadable { path, source })?;
    Ok(entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok().map(Pid)))
}

/// Resources used since a process started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Faults served without reading from a device.
    pub minor_faults: u64,
    /// Faults that had to read.
    pub major_faults: u64,
    /// User and system time, in steps of the clock tick (10 ms on most kernels).
    pub cpu: Duration,
    /// The user time in it.
    pub user: Duration,
}

impl AddAssign for Used {
    fn add_assign(&mut self, other: Used) {
        self.minor_faults += other.minor_faults;
        self.major_faults += other.major_faults;
        self.cpu += other.cpu;
        self.user += other.user;
    }
}

impl Used {
    /// The resources used since `before`.
    pub fn since(self, before: Used) -> Used {
        Used {
            minor_faults: self.minor_faults.saturating_sub(before.minor_faults),
            major_faults: self.major_faults.saturating_sub(before.major_faults),
            cpu: self.cpu.saturating_sub(before.cpu),
            user: self.user.saturating_sub(before.user),
        }
    }
}

/// The fields of `/proc/PID/stat` that are used here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// The command's name, as the kernel keeps it (15 bytes at most).
    pub comm: String,
    /// `R`, `S`, `D`, `T`, `Z`, ...
    pub state: u8,
    /// The parent.
    pub parent: Pid,
    /// The session's leader; 0 if the leader is outside of our pid namespace.
    pub session: Pid,
    /// Used by the process's own threads.
    pub own: Used,
    /// Used by the children it has waited for, and theirs.
    pub waited: Used,
    /// Threads.
    pub threads: u64,
    /// When the process started, in ticks since boot: pid and start together are unique.
    pub started_ticks: u64,
    /// Resident memory by this file's count (may be off by some pages a CPU).
    pub resident: Bytes,
    /// The start of the main thread's stack. It changes when the process executes another program. 0 if it
    /// may not be read.
    pub stack_start: u64,
}

impl Stat {
    /// True if the process has ended and waits to be waited for.
    pub fn is_zombie(&self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }

    /// Parses the contents of a `stat` file; `None` when they are not of the documented form.
    pub fn parse(text: &[u8]) -> Option<Stat> {
        let open = text.iter().position(|&b| b == b'(')?;
        let close = text.iter().rposition(|&b| b == b')')?;
        let comm = String::from_utf8_lossy(text.get(open + 1..close)?).into_owned();
        let rest = std::str::from_utf8(&text[close + 1..]).ok()?;
        // proc(5) numbers fields from 1; the one after the name is number 3.
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let field = |number: usize| fields.get(number - 3).copied();
        let count = |number: usize| field(number)?.parse::<u64>().ok();
        let used = |minor, major, user, system| {
            let (user, system) = (count(user)?, count(system)?);
            let time = |ticks: u64| {
                Duration::from_millis(ticks.saturating_mul(1000) / rustix::param::clock_ticks_per_second())
            };
            let (cpu, user) = (time(user.saturating_add(system)), time(user));
            Some(Used { minor_faults: count(minor)?, major_faults: count(major)?, cpu, user })
        };
        Some(Stat {
            comm,
            state: *field(3)?.as_bytes().first()?,
            parent: Pid(field(4)?.parse().ok()?),
            session: Pid(field(6)?.parse().ok()?),
            own: used(10, 12, 14, 15)?,
            waited: used(11, 13, 16, 17)?,
            threads: count(20)?,
            started_ticks: count(22)?,
            resident: Bytes::from_pages(count(24)?),
            stack_start: count(28).unwrap_or(0),
        })
    }
}

/// The resident memory in the contents of a `statm` file: all, and of that pages of files and shared memory.
pub fn statm_resident(text: &[u8]) -> Option<(Bytes, Bytes)> {
    let mut fields = std::str::from_utf8(text).ok()?.split_ascii_whitespace().skip(1);
    let mut next = || Some(Bytes::from_pages(fields.next()?.parse().ok()?));
    Some((next()?, next()?))
}

/// The pids in the contents of a `children` file.
pub fn child_pids(text: &[u8]) -> impl Iterator<Item = Pid> + '_ {
    text.split(|b| b.is_ascii_whitespace())
        .filter_map(|word| std::str::from_utf8(word).ok()?.parse().ok())
        .map(Pid)
}

/// [`Stat::started_ticks`] of a process, read without allocating: for a forked child of a process with
/// threads.
pub fn started_ticks(pid: i32) -> Option<u64> {
    let (mut path, mut text) = (vellum_sys::Line::new(), [0u8; 1024]);
    path.text("/proc/").decimal(u64::try_from(pid).ok()?).text("/stat\0");
    let text = vellum_sys::text::read(CStr::from_bytes_until_nul(path.bytes()).ok()?, &mut text)?;
    let close = text.iter().rposition(|byte| *byte == b')')?;
    vellum_sys::text::decimal(text.get(close + 2..)?.split(|byte| *byte == b' ').nth(19)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &[u8] =
        b"77 (a (b) c) S 12 77 12 34816 77 4194304 1000 200 3 4 50 6 7 8 20 0 5 0 9999 1 300 \
        18446744073709551615 1 1 140723 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n";

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let stat = Stat::parse(LINE).expect("a well-formed line");
        assert_eq!(stat.comm, "a (b) c");
        assert_eq!((stat.state, stat.parent, stat.session), (b'S', Pid(12), Pid(12)));
        assert_eq!((stat.own.minor_faults, stat.own.major_faults), (1000, 3));
        assert_eq!((stat.waited.minor_faults, stat.waited.major_faults), (200, 4));
        assert_eq!((stat.threads, stat.started_ticks), (5, 9999));
        let tick = |ticks: u64| Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second());
        assert_eq!((stat.own.cpu, stat.waited.cpu), (tick(56), tick(15)));
        assert_eq!((stat.own.user, stat.waited.user), (tick(50), tick(7)));
        assert_eq!((stat.resident, stat.stack_start), (Bytes::from_pages(300), 140_723));
    }

    #[test]
    fn a_cut_line_is_refused() {
        for end in 0..LINE.len() - 80 {
            if let Some(stat) = Stat::parse(&LINE[..end]) {
                assert_eq!(stat.started_ticks, 9999, "cut at {end} gave a different process");
            }
        }
        assert_eq!(Stat::parse(b""), None);
        assert_eq!(Stat::parse(b")("), None);
    }

    #[test]
    fn a_start_is_read_without_allocating() {
        assert_eq!(started_ticks(Pid::me().0), Some(Pid::me().stat().unwrap().started_ticks));
        assert_eq!(started_ticks(i32::MAX), None);
    }

    #[test]
    fn children_are_split_on_blanks() {
        let pids: Vec<Pid> = child_pids(b"12 345 6 ").collect();
        assert_eq!(pids, [Pid(12), Pid(345), Pid(6)]);
        assert_eq!(child_pids(b"").count(), 0);
    }
}
