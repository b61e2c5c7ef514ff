//! A memory control group of one's own, where the system lets us make one.
//!
//! Version 1 has `memory.limit_in_bytes` in a hierarchy of its own, version 2 `memory.max` in the common one.
//! The group is made below the test's own, so that what holds for the test holds for it, and removed when
//! dropped.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Attempts to remove a group whose last process is still being taken away.
const REMOVALS: u32 = 200;

/// A control group; see the module.
#[derive(Debug)]
pub struct Group {
    directory: PathBuf,
    limit: &'static str,
}

impl Group {
    /// Makes a group that may use `bytes` bytes of memory and no swap.
    ///
    /// # Errors
    /// Why none can be made here, in words for a skipped test.
    pub fn limited(bytes: u64) -> Result<Group, String> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let name = format!("vellum-test-{}-{}", std::process::id(), MADE.fetch_add(1, Relaxed));
        let (parent, limit) = parent().ok_or("no memory control group is mounted")?;
        let directory = parent.join(name);
        fs::create_dir(&directory)
            .map_err(|error| format!("no control group can be made in {}: {error}", parent.display()))?;
        let group = Group { directory, limit };
        fs::write(group.directory.join(limit), bytes.to_string())
            .map_err(|error| format!("{limit} cannot be written: {error}"))?;
        for swap in ["memory.memsw.limit_in_bytes", "memory.swap.max"] {
            let value = if swap == "memory.swap.max" { 0 } else { bytes };
            // A kernel that does not account swap has no such file, and then there is none to limit.
            let _ = fs::write(group.directory.join(swap), value.to_string());
        }
        Ok(group)
    }

    /// The file a process writes `0` to, to enter the group.
    pub fn entrance(&self) -> PathBuf {
        self.directory.join("cgroup.procs")
    }

    /// The limit as the kernel has it.
    pub fn limit_bytes(&self) -> Option<u64> {
        fs::read_to_string(self.directory.join(self.limit)).ok()?.trim().parse().ok()
    }

    /// The most memory that was in use at a time, in bytes.
    pub fn peak_bytes(&self) -> Option<u64> {
        let read = |name: &str| fs::read_to_string(self.directory.join(name)).ok();
        read("memory.max_usage_in_bytes").or_else(|| read("memory.peak"))?.trim().parse().ok()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for _ in 0..REMOVALS {
            match fs::remove_dir(&self.directory) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
                _ => return,
            }
        }
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
    // Only a group that hands the memory controller on can have limited children.
    let handed_on = fs::read_to_string(parent.join("cgroup.subtree_control")).ok()?;
    handed_on.split_whitespace().any(|name| name == "memory").then_some((parent, "memory.max"))
}

/// In a container the path may be one of the host's, of which only the mount's root is there.
fn existing(mount: &Path, path: &str) -> PathBuf {
    let full = mount.join(path);
    if full.is_dir() { full } else { mount.to_path_buf() }
}
