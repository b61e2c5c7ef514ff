//! A memory cgroup for an experiment, version 1 or 2, removed when it is dropped.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use vellum_kernel::{Cgroup, Control, GroupError, Version};
use vellum_process::Undoing;

/// Tries to remove the group while its last process exits, and the pause between tries.
const TRIES: usize = 50;
const BETWEEN: Duration = Duration::from_millis(100);

/// The time for which the limit is raised.
pub const BETWEEN_RELIEFS: Duration = Duration::from_millis(2);

/// The bytes by which the limit is raised for a moment when the kernel can reclaim nothing. Version 1
/// sometimes reports this although most of the device is free.
pub const RELIEF_BYTES: u64 = 2 << 20;

/// A memory cgroup with a limit.
#[derive(Debug)]
pub struct Group {
    group: Cgroup,
    limit: u64,
    /// Number of times the limit was raised.
    relieved: Cell<u32>,
    _undoing: Undoing,
}

impl Group {
    /// Makes a group with a limit of `limit` bytes, which is set before a process enters. Its name is `name`
    /// and our process id.
    ///
    /// # Errors
    /// [`GroupError`] with the step that failed.
    pub fn new(name: &str, limit: u64) -> Result<Self, GroupError> {
        let failed = |what| move |source| GroupError { what, source };
        Cgroup::switch_memory_on();
        let group = Cgroup::make(name)?;
        let _undoing = Undoing::by("rmdir \"$1\"", &[group.path().as_os_str()]);
        let group = Self { group, limit, relieved: Cell::new(0), _undoing };
        fs::write(group.limits(), limit.to_string()).map_err(failed("setting its limit"))?;
        if group.is_v1() {
            // As eager to swap as to drop files: there are none of the jobs' own.
            fs::write(group.group.control(Control::Swappiness), "100")
                .map_err(failed("setting its swappiness"))?;
            // A job that finds nothing to reclaim waits for relief instead of being killed.
            fs::write(group.group.control(Control::Killer), "1").map_err(failed("holding its killer"))?;
        }
        Ok(group)
    }

    fn is_v1(&self) -> bool {
        self.group.version() == Version::V1
    }

    fn limits(&self) -> PathBuf {
        self.group.control(Control::Limit)
    }

    /// The file that a process enters by writing to it.
    #[must_use]
    pub fn members(&self) -> PathBuf {
        self.group.control(Control::Processes)
    }

    /// The peak of the bytes charged to the group, if the kernel records it.
    #[must_use]
    pub fn most_charged(&self) -> Option<u64> {
        self.group.peak().map(|bytes| bytes.0)
    }

    /// Moves a process into the group.
    ///
    /// # Errors
    /// [`GroupError`] if the kernel refuses.
    pub fn take(&self, pid: u32) -> Result<(), GroupError> {
        let moved = fs::write(self.members(), pid.to_string());
        moved.map_err(|source| GroupError { what: "moving a job into it", source })
    }

    /// Raises the limit for a moment if the kernel can reclaim nothing and jobs wait. Must be called
    /// regularly.
    pub fn relieve(&self) {
        if self.is_v1() && self.group.is_out_of_memory() {
            let limit = self.limits();
            self.relieved.set(self.relieved.get() + 1);
            // If the kernel refuses, the jobs wait until the next call.
            let _ = fs::write(&limit, (self.limit + RELIEF_BYTES).to_string());
            std::thread::sleep(BETWEEN_RELIEFS);
            let _ = fs::write(&limit, self.limit.to_string());
        }
    }

    /// Requests that the kernel reclaim about this number of bytes from the group; it may reclaim less. The
    /// limit stays.
    pub fn reclaim(&self, bytes: u64) {
        // What the kernel refuses is taken at another time, or never: nobody counts on it.
        if !self.is_v1() {
            let _ = fs::write(self.group.control(Control::Reclaim), bytes.to_string());
            return;
        }
        let Some(held) = self.held() else { return };
        // A limit below the current usage makes the kernel reclaim at once.
        let _ = fs::write(self.limits(), held.saturating_sub(bytes).to_string());
        let _ = fs::write(self.limits(), self.limit.to_string());
    }

    /// The bytes that the group uses.
    #[must_use]
    pub fn held(&self) -> Option<u64> {
        self.group.charged().ok().map(|bytes| bytes.0)
    }

    /// The bytes that the group uses without inactive file pages: the working set in Kubernetes' terms.
    #[must_use]
    pub fn working_set(&self) -> Option<u64> {
        let idle = self.group.statistics().ok()?.get("inactive_file")?;
        Some(self.held()?.saturating_sub(idle))
    }

    /// Its directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.group.path()
    }

    /// Major faults of its processes.
    #[must_use]
    pub fn major_faults(&self) -> Option<u64> {
        self.group.statistics().ok()?.get("pgmajfault")
    }

    /// Number of times the limit was raised.
    #[must_use]
    pub fn relieved(&self) -> u32 {
        self.relieved.get()
    }

    /// The file with the bytes that the group uses.
    #[must_use]
    pub fn usage(&self) -> PathBuf {
        self.group.control(Control::Charged)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let gone = (0..TRIES).any(|attempt| {
            if attempt > 0 {
                std::thread::sleep(BETWEEN);
            }
            fs::remove_dir(self.path()).is_ok()
        });
        if !gone {
            eprintln!("vellum: the cgroup {} is still there; rmdir it", self.path().display());
        }
    }
}
