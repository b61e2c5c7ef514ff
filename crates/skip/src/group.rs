//! Memory cgroups for tests, of version 1 or 2. Each is removed when its value is dropped.
//!
//! Version 1 has `memory.limit_in_bytes` in a separate hierarchy, version 2 `memory.max` in the common one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

/// Attempts to remove a group while its last process is still exiting, and the time between attempts.
const REMOVALS: u32 = 1000;
const BETWEEN: Duration = Duration::from_millis(10);

/// A memory cgroup for a test, removed when dropped.
#[derive(Debug)]
pub struct Group(PathBuf);

impl Group {
    /// Makes a group that may use `bytes` bytes of memory and no swap, below the test's own group, whose
    /// limits also apply.
    ///
    /// # Errors
    /// The reason why no group can be made here, for a skipped test.
    pub fn limited(bytes: u64) -> Result<Group, String> {
        let (parent, limit) = parent().ok_or("no memory control group is mounted")?;
        let group = Group::made_in(&parent)?;
        let set = |file: &str, value: u64| fs::write(group.0.join(file), value.to_string());
        set(limit, bytes).map_err(|error| format!("{limit} cannot be written: {error}"))?;
        // A kernel without swap accounting lacks the first files; swappiness 0 at least discourages swapping.
        let _ = set("memory.swap.max", 0)
            .or_else(|_| set("memory.memsw.limit_in_bytes", bytes))
            .or_else(|_| set("memory.swappiness", 0));
        Ok(group)
    }

    /// Makes a group of version 2, to contain the groups of a governor's jobs.
    ///
    /// # Errors
    /// The reason why no group can be made here, for a skipped test.
    pub fn of_groups() -> Result<Group, String> {
        let made = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"].iter().filter_map(|top| {
            // A directory without this file belongs to another file system mounted there.
            Group::made_in(Path::new(top)).ok().filter(|group| group.0.join("cgroup.freeze").exists())
        });
        made.into_iter().next().ok_or_else(|| "no control group of version 2 can be made here".to_owned())
    }

    /// Like [`Group::of_groups`], with the memory controller for the groups in it.
    ///
    /// # Errors
    /// The reason why no group can be made here, for a skipped test.
    pub fn of_groups_with_memory() -> Result<Group, String> {
        let group = Group::of_groups()?;
        fs::write(group.0.join("cgroup.subtree_control"), "+memory")
            .map_err(|error| format!("no control group of version 2 has memory here: {error}"))?;
        Ok(group)
    }

    fn made_in(parent: &Path) -> Result<Group, String> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let path = parent.join(format!("vellum-test-{}-{}", std::process::id(), MADE.fetch_add(1, Relaxed)));
        fs::create_dir(&path)
            .map_err(|error| format!("no control group can be made in {}: {error}", parent.display()))?;
        Ok(Group(path))
    }

    /// The group's directory.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Makes `command` run in the group.
    pub fn confine(&self, command: &mut Command) {
        use std::os::unix::process::CommandExt;
        let members = self.0.join("cgroup.procs");
        // SAFETY: the closure only opens, writes and closes one file, which is allowed after fork; it has the
        // path.
        unsafe { command.pre_exec(move || fs::write(&members, "0")) };
    }

    /// The peak memory use, in bytes.
    pub fn peak_bytes(&self) -> Option<u64> {
        let read = |name: &str| fs::read_to_string(self.0.join(name)).ok();
        read("memory.max_usage_in_bytes").or_else(|| read("memory.peak"))?.trim().parse().ok()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for _ in 0..REMOVALS {
            for entry in fs::read_dir(&self.0).into_iter().flatten().flatten() {
                let _ = fs::write(entry.path().join("cgroup.kill"), "1");
                let _ = fs::remove_dir(entry.path());
            }
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(BETWEEN);
        }
        eprintln!("the control group {} is still there; rmdir it", self.0.display());
    }
}

/// The directory of this process's own memory group, and the name of the limit's file.
fn parent() -> Option<(PathBuf, &'static str)> {
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let below = |wanted: &str| {
        own.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let (controllers, path) = (fields.next()?, fields.next()?);
            controllers.split(',').any(|name| name == wanted).then(|| path.trim_start_matches('/').to_owned())
        })
    };
    let v1 = Path::new("/sys/fs/cgroup/memory");
    if let Some(path) = below("memory")
        && v1.join("memory.limit_in_bytes").exists()
    {
        return Some((existing(v1, &path), "memory.limit_in_bytes"));
    }
    let v2 = Path::new("/sys/fs/cgroup");
    let path = below("")?;
    let parent = existing(v2, &path);
    // Only a group that delegates the memory controller can have children with limits.
    let handed_on = fs::read_to_string(parent.join("cgroup.subtree_control")).ok()?;
    handed_on.split_whitespace().any(|name| name == "memory").then_some((parent, "memory.max"))
}

/// The existing directory for `path`. In a container `path` may be the host's: then the mount's root.
fn existing(mount: &Path, path: &str) -> PathBuf {
    let full = mount.join(path);
    if full.is_dir() { full } else { mount.to_path_buf() }
}
