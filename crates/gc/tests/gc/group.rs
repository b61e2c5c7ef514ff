//! A control group of a test's own, version 1 or 2, whose processes may hold so much memory and page nothing
//! out. Removed when dropped.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

const V1: &str = "/sys/fs/cgroup/memory";
const V2: &str = "/sys/fs/cgroup";
/// How often a group that is still in use is asked to go, and how long between.
const TRIES: usize = 100;
const BETWEEN: Duration = Duration::from_millis(50);

/// See the head of this file.
pub(crate) struct Group(PathBuf);

impl Group {
    /// Makes one, named `name` and by our process id.
    pub(crate) fn without_swap(name: &str, bytes: usize) -> io::Result<Group> {
        let is_v1 = Path::new(V1).join("memory.limit_in_bytes").exists();
        let top = if is_v1 { V1 } else { V2 };
        let path = Path::new(top).join(format!("{name}-{}", std::process::id()));
        fs::create_dir(&path)?;
        // From here on it is removed, whatever comes.
        let group = Group(path);
        if is_v1 {
            group.set("memory.limit_in_bytes", bytes)?;
            // Where swap is not accounted for, at least nothing is moved there on its own.
            group.set("memory.memsw.limit_in_bytes", bytes).or_else(|_| group.set("memory.swappiness", 0))?;
        } else {
            group.set("memory.max", bytes)?;
            group.set("memory.swap.max", 0)?;
        }
        Ok(group)
    }

    fn set(&self, file: &str, value: usize) -> io::Result<()> {
        fs::write(self.0.join(file), value.to_string())
    }

    /// The file that a process enters it by.
    pub(crate) fn members(&self) -> PathBuf {
        self.0.join("cgroup.procs")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let gone = (0..TRIES).any(|attempt| {
            if attempt > 0 {
                std::thread::sleep(BETWEEN);
            }
            fs::remove_dir(&self.0).is_ok()
        });
        if !gone {
            eprintln!("the control group {} is still there; rmdir it", self.0.display());
        }
    }
}
