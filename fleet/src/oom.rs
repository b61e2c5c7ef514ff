//! Counts the processes of a group that the out-of-memory killer has killed.
//!
//! ```text
//! version 2   memory.events:       oom 2, oom_kill 1
//! version 1   memory.oom_control:  oom_kill 1       memory.failcnt: 17
//! ```
//!
//! A kill is attributed to the group's limit only if the group has reached that limit. When the whole machine
//! has no memory left, the kernel kills in any group.
//!
//! Source: the kernel's `Documentation/admin-guide/cgroup-v2.rst` and `cgroup-v1/memory.rst`.

use std::fs;
use std::path::Path;

/// The kernel's counts since the group was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kills {
    /// The number of killed processes.
    pub(crate) count: u64,
    /// True if the group has reached its limit.
    pub(crate) reached_limit: bool,
}

impl Kills {
    /// The counts of the group with this directory; `None` if the kernel has none.
    pub(crate) fn read(directory: &Path) -> Option<Kills> {
        let text = |name: &str| fs::read_to_string(directory.join(name)).ok();
        if let Some(events) = text("memory.events") {
            return Some(Kills {
                count: field(&events, "oom_kill")?,
                reached_limit: field(&events, "oom")? > 0,
            });
        }
        let count = field(&text("memory.oom_control")?, "oom_kill")?;
        let failures: u64 = text("memory.failcnt")?.trim().parse().ok()?;
        Some(Kills { count, reached_limit: failures > 0 })
    }
}

/// The number in the line that begins with this word.
fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kills_are_read_from_both_versions() {
        let group = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(group.path().join(name), text).unwrap();
        assert_eq!(Kills::read(group.path()), None);
        write("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n");
        assert_eq!(Kills::read(group.path()), None, "half an account is none");
        write("memory.failcnt", "0\n");
        assert_eq!(Kills::read(group.path()), Some(Kills { count: 3, reached_limit: false }));
        write("memory.failcnt", "12\n");
        assert_eq!(Kills::read(group.path()), Some(Kills { count: 3, reached_limit: true }));
        for (oom, reached_limit) in [(0, false), (2, true)] {
            write(
                "memory.events",
                &format!("low 0\nhigh 0\nmax 7\noom {oom}\noom_kill 1\noom_group_kill 0\n"),
            );
            assert_eq!(Kills::read(group.path()), Some(Kills { count: 1, reached_limit }));
        }
        write("memory.events", "oom x\n");
        assert_eq!(Kills::read(group.path()), None);
    }
}
