//! Cgroups of both versions: the files that show their memory use, and those that control them.
//!
//! | | version 1 | version 2 |
//! | --- | --- | --- |
//! | memory in use, limit, peak | `memory.usage_in_bytes`, `.limit_in_bytes`, `.max_usage_in_bytes` | `memory.current`, `.max`, `.peak` |
//! | fields of `memory.stat` with descendants | `total_NAME` | `NAME` |
//! | OOM kills, and times at the limit | `memory.oom_control`, `.failcnt` | `memory.events` |
//! | stalls | none | `memory.pressure` |
//!
//! A cgroup is of version 1 if it has `memory.limit_in_bytes`.
//!
//! Source: the kernel's `Documentation/admin-guide/cgroup-v2.rst` and `cgroup-v1/memory.rst`.

use crate::file::{Unreadable, field, number, text};
use crate::{Bytes, Pid, Stalls};
use std::io;
use std::path::{Path, PathBuf};

/// The mount point of the memory hierarchy of version 1.
pub const V1: &str = "/sys/fs/cgroup/memory";
/// The mount points of version 2: alone, or beside version 1.
pub const V2: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
/// From here on a limit of version 1 is none: it writes the largest page-aligned `i64`.
const UNLIMITED: u64 = 1 << 60;

/// The version of a group's memory controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// `memory.limit_in_bytes` and its like.
    V1,
    /// `memory.max` and its like.
    V2,
}

/// A file by which a group is controlled or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// The list of its processes; a process enters when its id is written.
    Processes,
    /// The number of bytes that it is charged.
    Charged,
    /// Bytes written here are reclaimed at once. Version 2, from Linux 5.19.
    Reclaim,
    /// The hard limit.
    Limit,
    /// The limit above which processes are slowed down. Version 2.
    High,
    /// The limit that counts only when the machine is short of memory. Version 1.
    SoftLimit,
    /// 1 suspends all of its processes, 0 resumes them. Version 2.
    Freeze,
    /// 1 has processes wait instead of being killed where the limit is reached. Version 1.
    Killer,
    /// The preference for evicting anonymous memory, up to 100. Version 1.
    Swappiness,
}

/// A cgroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cgroup {
    path: PathBuf,
    version: Version,
}

/// No memory group can be made.
#[derive(Debug, thiserror::Error)]
#[error(
    "no memory cgroup: {what} failed ({source}); it needs root and a memory controller in /sys/fs/cgroup"
)]
pub struct GroupError {
    /// The step that failed.
    pub what: &'static str,
    /// The system's error.
    pub source: io::Error,
}

/// Processes of a group that the kernel has killed because memory was short, since the group was made.
///
/// A kill is the limit's doing only where the group has reached its limit: a machine without free memory has
/// processes of any group killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kills {
    /// Processes that were killed.
    pub count: u64,
    /// True if the group had no more memory within its limit.
    pub reached_limit: bool,
}

/// The text of a group's `memory.stat`.
#[derive(Debug, Clone)]
pub struct Statistics {
    text: String,
    version: Version,
}

impl Cgroup {
    /// The group with this directory.
    pub fn at(path: impl Into<PathBuf>) -> Cgroup {
        let path = path.into();
        let is_v1 = path.join("memory.limit_in_bytes").exists();
        Cgroup { path, version: if is_v1 { Version::V1 } else { Version::V2 } }
    }

    /// The root of the hierarchy in which this machine's groups have their memory: of version 2 where its
    /// memory controller is on.
    pub fn memory_root() -> Option<Cgroup> {
        let controllers = text(Path::new(V2[0]).join("cgroup.controllers")).unwrap_or_default();
        if controllers.split_whitespace().any(|controller| controller == "memory") {
            return Some(Cgroup::at(V2[0]));
        }
        let root = Cgroup::at(V1);
        root.control(Control::Processes).exists().then_some(root)
    }

    /// The group that a process's memory is charged to; `None` for a root group, which has no limits.
    pub fn of_memory(pid: Pid) -> Option<Cgroup> {
        let has_limits =
            |group: &Cgroup| group.version == Version::V1 || group.control(Control::High).exists();
        text(pid.file("cgroup")).ok()?.lines().find_map(|line| {
            let mut words = line.splitn(3, ':');
            let (number, controllers, path) =
                (words.next()?, words.next()?, words.next()?.strip_prefix('/')?);
            let roots: &[&str] = match (number, controllers) {
                ("0", _) => &V2,
                (_, controllers) if controllers.split(',').any(|name| name == "memory") => &[V1],
                _ => return None,
            };
            let mut groups = roots.iter().map(|root| Cgroup::at(Path::new(root).join(path)));
            (!path.is_empty()).then(|| groups.find(has_limits))?
        })
    }

    /// The path of a process's group of version 2, from the hierarchy's root on.
    pub fn unified_path(pid: Pid) -> Option<String> {
        text(pid.file("cgroup")).ok()?.lines().find_map(|line| line.strip_prefix("0::")).map(str::to_owned)
    }

    /// Makes a group with a memory limit of its own, called `name` and the id of this process, below the
    /// root.
    ///
    /// # Errors
    /// [`GroupError`]. Version 2 may have its memory controller switched off.
    pub fn make(name: &str) -> Result<Cgroup, GroupError> {
        let failed = |what| move |source| GroupError { what, source };
        let root = if Cgroup::at(V1).version == Version::V1 { V1 } else { V2[0] };
        let path = Path::new(root).join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir(&path).map_err(failed("making it"))?;
        let group = Cgroup::at(path);
        match std::fs::metadata(group.control(Control::Limit)) {
            Ok(_) => Ok(group),
            Err(source) => {
                let _ = std::fs::remove_dir(&group.path);
                Err(failed("finding its limit")(source))
            }
        }
    }

    /// Has groups below the root of version 2 account for their memory. Where that is refused,
    /// [`make`](Self::make) fails and says so.
    pub fn switch_memory_on() {
        // Version 1 has no such file, and its root may be a directory in which one could be created.
        let file =
            std::fs::OpenOptions::new().write(true).open(Path::new(V2[0]).join("cgroup.subtree_control"));
        let _ = file.and_then(|mut file| std::io::Write::write_all(&mut file, b"+memory"));
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The version of its memory controller.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The path of a file of its. The file need not exist.
    pub fn control(&self, control: Control) -> PathBuf {
        self.path.join(match control {
            Control::Processes => "cgroup.procs",
            Control::Charged if self.version == Version::V1 => "memory.usage_in_bytes",
            Control::Charged => "memory.current",
            Control::Reclaim => "memory.reclaim",
            Control::Limit if self.version == Version::V1 => "memory.limit_in_bytes",
            Control::Limit => "memory.max",
            Control::High => "memory.high",
            Control::SoftLimit => "memory.soft_limit_in_bytes",
            Control::Freeze => "cgroup.freeze",
            Control::Killer => "memory.oom_control",
            Control::Swappiness => "memory.swappiness",
        })
    }

    /// Its own processes, without those of groups below it.
    pub fn processes(&self) -> Result<Vec<Pid>, Unreadable> {
        let list = text(self.control(Control::Processes))?;
        Ok(list.lines().filter_map(|line| line.parse().ok().map(Pid)).collect())
    }

    /// The processes of this group and of the groups below it, at most `groups` groups together. Groups that
    /// cannot be read count as empty.
    pub fn all_processes(&self, groups: usize) -> Vec<Pid> {
        let (mut found, mut queue) = (Vec::new(), vec![self.path.clone()]);
        for _ in 0..groups {
            let Some(path) = queue.pop() else { break };
            let group = Cgroup { path, version: self.version };
            found.extend(group.processes().unwrap_or_default());
            let below = std::fs::read_dir(&group.path).into_iter().flatten().flatten();
            let below = below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            queue.extend(below.map(|entry| entry.path()));
        }
        found
    }

    fn size(&self, v1: &str, v2: &str) -> Option<Bytes> {
        let name = if self.version == Version::V1 { v1 } else { v2 };
        number(self.path.join(name)).map(Bytes)
    }

    /// The memory that it is charged now.
    pub fn charged(&self) -> Result<Bytes, Unreadable> {
        let path = self.control(Control::Charged);
        let bytes = text(&path)?.trim().parse();
        let invalid = |error| Unreadable { path, source: io::Error::new(io::ErrorKind::InvalidData, error) };
        bytes.map(Bytes).map_err(invalid)
    }

    /// Its hard limit; `None` if unlimited.
    pub fn limit(&self) -> Option<Bytes> {
        self.size("memory.limit_in_bytes", "memory.max").filter(|limit| limit.0 < UNLIMITED)
    }

    /// The most that it was charged.
    pub fn peak(&self) -> Option<Bytes> {
        self.size("memory.max_usage_in_bytes", "memory.peak")
    }

    /// Its memory in swap. Version 2.
    pub fn swapped(&self) -> Option<Bytes> {
        number(self.path.join("memory.swap.current")).map(Bytes)
    }

    /// The kernel's own memory that it is charged.
    pub fn of_kernel(&self) -> Option<Bytes> {
        let v1 = number(self.path.join("memory.kmem.usage_in_bytes"));
        v1.or_else(|| self.statistics().ok()?.get("kernel")).map(Bytes)
    }

    /// Its statistics.
    pub fn statistics(&self) -> Result<Statistics, Unreadable> {
        Ok(Statistics { text: text(self.path.join("memory.stat"))?, version: self.version })
    }

    /// Processes that were killed; `None` where the kernel keeps no account.
    pub fn kills(&self) -> Option<Kills> {
        if self.version == Version::V2 {
            let events = text(self.path.join("memory.events")).ok()?;
            return Some(Kills {
                count: field(&events, "oom_kill")?,
                reached_limit: field(&events, "oom")? > 0,
            });
        }
        let count = field(&self.killer(), "oom_kill")?;
        Some(Kills { count, reached_limit: number(self.path.join("memory.failcnt"))? > 0 })
    }

    /// Time that its tasks stalled on memory; `None` where the kernel keeps no account.
    pub fn pressure(&self) -> Option<Stalls> {
        Stalls::read(self.path.join("memory.pressure"))
    }

    fn killer(&self) -> String {
        text(self.control(Control::Killer)).unwrap_or_default()
    }

    /// True if processes wait instead of being killed where its limit is reached. Version 1.
    pub fn holds_killer(&self) -> bool {
        field(&self.killer(), "oom_kill_disable") == Some(1)
    }

    /// True if processes wait at this moment because its limit is reached. Version 1.
    pub fn is_out_of_memory(&self) -> bool {
        field(&self.killer(), "under_oom") == Some(1)
    }
}

impl Statistics {
    /// The number called `name`, groups below included; `None` if the kernel has no such number.
    pub fn get(&self, name: &str) -> Option<u64> {
        let total =
            (self.version == Version::V1).then(|| field(&self.text, &format!("total_{name}"))).flatten();
        total.or_else(|| field(&self.text, name))
    }

    /// Memory in huge pages.
    pub fn huge(&self) -> Bytes {
        ["anon_thp", "file_thp", "shmem_thp"].iter().filter_map(|name| self.get(name).map(Bytes)).sum()
    }

    pub(crate) fn of(text: &str, version: Version) -> Statistics {
        Statistics { text: text.to_owned(), version }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group() -> (tempfile::TempDir, impl Fn(&str, &str) -> Cgroup) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_path_buf();
        (folder, move |name, text| {
            std::fs::write(path.join(name), text).unwrap();
            Cgroup::at(&path)
        })
    }

    #[test]
    fn both_versions_count_kills_and_whether_the_limit_was_reached() {
        let (_folder, write) = group();
        assert_eq!(write("memory.limit_in_bytes", "4096\n").kills(), None);
        let half = write("memory.oom_control", "oom_kill_disable 0\nunder_oom 1\noom_kill 3\n");
        assert_eq!((half.kills(), half.holds_killer(), half.is_out_of_memory()), (None, false, true));
        for (failures, reached_limit) in [("0\n", false), ("12\n", true)] {
            assert_eq!(write("memory.failcnt", failures).kills(), Some(Kills { count: 3, reached_limit }));
        }
        let (_folder, write) = group();
        for (oom, reached_limit) in [(0, false), (2, true)] {
            let events = format!("low 0\nhigh 0\nmax 7\noom {oom}\noom_kill 1\noom_group_kill 0\n");
            assert_eq!(write("memory.events", &events).kills(), Some(Kills { count: 1, reached_limit }));
        }
        assert_eq!(write("memory.events", "oom x\n").kills(), None);
    }

    #[test]
    fn sizes_are_read_by_the_names_of_each_version() {
        let (_folder, write) = group();
        let none = write("memory.max", "max\n");
        assert_eq!((none.version(), none.limit(), none.charged().is_err()), (Version::V2, None, true));
        assert_eq!(write("memory.max", "4096\n").limit(), Some(Bytes(4096)));
        assert_eq!(write("memory.current", "100\n").charged().unwrap(), Bytes(100));
        let stat = "anon 999\nanon_thp 4194304\nfile_thp 0\nshmem_thp 2097152\npgfault 7\nkernel 5\n";
        let found = write("memory.stat", stat);
        assert_eq!((found.statistics().unwrap().huge(), found.of_kernel()), (Bytes(6 << 20), Some(Bytes(5))));

        let none = write("memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!((none.version(), none.limit()), (Version::V1, None));
        assert_eq!(write("memory.usage_in_bytes", "7\n").charged().unwrap(), Bytes(7));
        let sums = write("memory.stat", "pgmajfault 1\ntotal_pgmajfault 3\ncache 2\n").statistics().unwrap();
        assert_eq!((sums.get("pgmajfault"), sums.get("cache"), sums.get("x")), (Some(3), Some(2), None));
        assert!(
            Cgroup::at("/no/such")
                .statistics()
                .unwrap_err()
                .to_string()
                .starts_with("/no/such/memory.stat: ")
        );
    }

    #[test]
    fn processes_of_groups_below_are_found_within_a_limit() {
        let (folder, write) = group();
        std::fs::create_dir(folder.path().join("below")).unwrap();
        write("below/cgroup.procs", "7\n");
        let group = write("cgroup.procs", "3\n4\n");
        assert_eq!(group.processes().unwrap(), [Pid(3), Pid(4)]);
        assert_eq!((group.all_processes(9), group.all_processes(1).len()), (vec![Pid(3), Pid(4), Pid(7)], 2));
    }
}
