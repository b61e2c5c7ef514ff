//! A memory cgroup of the experiment's own, version 1 or 2, removed when it is dropped.

use std::cell::Cell;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use vellum_process::Undoing;

const V1: &str = "/sys/fs/cgroup/memory";
const V2: &str = "/sys/fs/cgroup";
/// How long its last process may take to leave.
const TRIES: usize = 50;
const BETWEEN: Duration = Duration::from_millis(100);

/// For how long jobs get relief.
pub const BETWEEN_RELIEFS: Duration = Duration::from_millis(2);

/// There is no cgroup.
#[derive(Debug, thiserror::Error)]
#[error(
    "no memory cgroup: {what} failed ({source}); it needs root and a memory controller in /sys/fs/cgroup"
)]
pub struct GroupError {
    what: &'static str,
    source: io::Error,
}

/// The extra memory that jobs get for a moment when the kernel says that it can reclaim nothing: version 1
/// says so now and then although most of the device is free.
pub const RELIEF_BYTES: u64 = 2 << 20;

/// A memory cgroup with a limit.
#[derive(Debug)]
pub struct Group {
    path: PathBuf,
    v1: bool,
    limit: u64,
    /// How often jobs got relief.
    relieved: Cell<u32>,
    _undoing: Undoing,
}

impl Group {
    /// Makes one whose processes may hold `limit` bytes. It is set before there are any. Its name is `name`
    /// and our process id.
    ///
    /// # Errors
    /// [`GroupError`] naming what failed.
    pub fn new(name: &str, limit: u64) -> Result<Self, GroupError> {
        let failed = |what| move |source| GroupError { what, source };
        if !is_v1() {
            // Where it is on already, or cannot be, the limit below says so.
            let _ = fs::write(Path::new(V2).join("cgroup.subtree_control"), "+memory");
        }
        let v1 = is_v1();
        let path = Path::new(if v1 { V1 } else { V2 }).join(format!("{name}-{}", std::process::id()));
        fs::create_dir(&path).map_err(failed("making it"))?;
        let _undoing = Undoing::by("rmdir \"$1\"", &[path.as_os_str()]);
        let group = Self { path, v1, limit, relieved: Cell::new(0), _undoing };
        fs::write(group.limits(), limit.to_string()).map_err(failed("setting its limit"))?;
        if group.v1 {
            // As eager to swap as to drop files: there are none of the jobs' own.
            fs::write(group.path.join("memory.swappiness"), "100")
                .map_err(failed("setting its swappiness"))?;
            // A job that finds nothing to reclaim waits for relief instead of being killed.
            fs::write(group.path.join("memory.oom_control"), "1").map_err(failed("holding its killer"))?;
        }
        Ok(group)
    }

    fn limits(&self) -> PathBuf {
        self.path.join(if self.v1 { "memory.limit_in_bytes" } else { "memory.max" })
    }

    /// The file that a process enters by writing to it.
    #[must_use]
    pub fn members(&self) -> PathBuf {
        self.path.join("cgroup.procs")
    }

    /// The most bytes that its processes were charged, where the kernel keeps that.
    #[must_use]
    pub fn most_charged(&self) -> Option<u64> {
        let name = if self.v1 { "memory.max_usage_in_bytes" } else { "memory.peak" };
        fs::read_to_string(self.path.join(name)).ok()?.trim().parse().ok()
    }

    /// Moves a process into it.
    ///
    /// # Errors
    /// [`GroupError`] if the kernel refuses.
    pub fn take(&self, pid: u32) -> Result<(), GroupError> {
        let moved = fs::write(self.members(), pid.to_string());
        moved.map_err(|source| GroupError { what: "moving a job into it", source })
    }

    /// Where the kernel could reclaim nothing and jobs wait, gives them a little more for a moment. To be
    /// called now and then.
    pub fn relieve(&self) {
        if !self.v1 {
            return;
        }
        let control = fs::read_to_string(self.path.join("memory.oom_control")).unwrap_or_default();
        if control.lines().any(|line| line == "under_oom 1") {
            let limit = self.path.join("memory.limit_in_bytes");
            self.relieved.set(self.relieved.get() + 1);
            // Should the kernel refuse, jobs wait on and the next look tries again.
            let _ = fs::write(&limit, (self.limit + RELIEF_BYTES).to_string());
            std::thread::sleep(BETWEEN_RELIEFS);
            let _ = fs::write(&limit, self.limit.to_string());
        }
    }

    /// Has the kernel take about this number of bytes from its processes; it may find less. Its limit stays.
    pub fn reclaim(&self, bytes: u64) {
        // What the kernel refuses is taken at another time, or never: nobody counts on it.
        if !self.v1 {
            let _ = fs::write(self.path.join("memory.reclaim"), bytes.to_string());
            return;
        }
        let Some(held) = self.held() else { return };
        // A limit below what is held has the kernel reclaim down to it at once.
        let _ = fs::write(self.limits(), held.saturating_sub(bytes).to_string());
        let _ = fs::write(self.limits(), self.limit.to_string());
    }

    /// What its processes hold.
    #[must_use]
    pub fn held(&self) -> Option<u64> {
        fs::read_to_string(self.usage()).ok()?.trim().parse().ok()
    }

    /// The same without files' pages that were not used lately: what Kubernetes calls the working set.
    #[must_use]
    pub fn working_set(&self) -> Option<u64> {
        let name = if self.v1 { "total_inactive_file " } else { "inactive_file " };
        let stat = fs::read_to_string(self.path.join("memory.stat")).ok()?;
        let idle: u64 = stat.lines().find_map(|line| line.strip_prefix(name)?.parse().ok())?;
        Some(self.held()?.saturating_sub(idle))
    }

    /// Its directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Faults of its processes that had to read.
    #[must_use]
    pub fn major_faults(&self) -> Option<u64> {
        let stat = fs::read_to_string(self.path.join("memory.stat")).ok()?;
        stat.lines().find_map(|line| line.strip_prefix("pgmajfault ")?.parse().ok())
    }

    /// How often jobs got relief.
    #[must_use]
    pub fn relieved(&self) -> u32 {
        self.relieved.get()
    }

    /// The file that says how many bytes its processes hold.
    #[must_use]
    pub fn usage(&self) -> PathBuf {
        self.path.join(if self.v1 { "memory.usage_in_bytes" } else { "memory.current" })
    }
}

/// Whether memory is limited by version 1 here.
fn is_v1() -> bool {
    Path::new(V1).join("memory.limit_in_bytes").exists()
}

impl Drop for Group {
    fn drop(&mut self) {
        let gone = (0..TRIES).any(|attempt| {
            if attempt > 0 {
                std::thread::sleep(BETWEEN);
            }
            fs::remove_dir(&self.path).is_ok()
        });
        if !gone {
            eprintln!("vellum: the cgroup {} is still there; rmdir it", self.path.display());
        }
    }
}
