//! A control group whose memory is reclaimed in small steps, and its counts of faults and stalls.
//!
//! | version | reclaims by | setting |
//! | --- | --- | --- |
//! | 2 | `memory.reclaim` | none |
//! | 2, before Linux 5.19 | `memory.high`, during the write | restored at once |
//! | 1 | `memory.limit_in_bytes`, during the write, with the OOM killer disabled | restored at once |
//!
//! Writing a limit below the current use makes the kernel reclaim down to it before the write returns, so
//! the limit is needed for a moment only. If this command is killed in that moment, a guardian restores the
//! limit and enables the killer (`memory.oom_control`; [`Keeper`]).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use vellum_governor::{GuardianError, Keeper};
use vellum_process::{Pid, Stalls, procfs};
use vellum_reference::{Target, Watcher};

const V1: &str = "/sys/fs/cgroup/memory";
const V2: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

/// The job cannot be squeezed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SqueezeError {
    #[error(
        "--prove: {0}: no memory control group; start the program in one (systemd-run --scope), and watch the group with --cgroup DIR"
    )]
    NoGroup(String),
    #[error("--prove: {}: cannot {what}: {source}; it needs the right to write there, as root has", .path.display())]
    File { path: PathBuf, what: &'static str, source: io::Error },
    #[error("--prove: {0}")]
    Guardian(#[from] GuardianError),
    #[error("--prove: the delay of a page fault is unknown here; set it with --delay, as in --delay 100us")]
    NoDelay,
}

/// The counters of a group.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counts {
    pub(super) usage: u64,
    pub(super) faults: u64,
    pub(super) refaults: u64,
    /// The time for which tasks stalled on memory; `None` if the kernel does not report it.
    pub(super) stalled: Option<Duration>,
}

/// The method of reclaiming memory.
#[derive(Debug)]
enum Means {
    Reclaim(PathBuf),
    /// A momentary limit; for version 1 with the file that disables the OOM killer.
    Moment {
        limit: PathBuf,
        killer: Option<PathBuf>,
        keeper: Keeper,
    },
}

/// A group that can be squeezed.
#[derive(Debug)]
pub(super) struct Squeeze {
    group: PathBuf,
    v1: bool,
    means: Means,
}

impl Squeeze {
    /// The group of the watched processes.
    pub(super) fn of(target: &Target, watcher: &Watcher) -> Result<Squeeze, SqueezeError> {
        let group = match target {
            Target::Cgroup(path) => path.clone(),
            _ => own_group(watcher).ok_or_else(|| SqueezeError::NoGroup("this job".to_owned()))?,
        };
        let v1 = group.join("memory.limit_in_bytes").exists();
        let file = |name: &str| Some(group.join(name)).filter(|file| file.exists());
        let means = if let Some(reclaim) = file("memory.reclaim") {
            Means::Reclaim(reclaim)
        } else if let Some(limit) = file("memory.limit_in_bytes").or_else(|| file("memory.high")) {
            Means::Moment { limit, killer: file("memory.oom_control"), keeper: Keeper::start()? }
        } else {
            return Err(SqueezeError::NoGroup(group.display().to_string()));
        };
        Ok(Squeeze { group, v1, means })
    }

    /// Reclaims about `bytes` bytes. The kernel may reclaim less.
    pub(super) fn take(&self, bytes: u64) -> Result<(), SqueezeError> {
        // The kernel reports EAGAIN or EBUSY if it reclaimed less.
        let tolerant = |path: &Path, done: io::Result<()>| match done {
            Err(error) if !matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EBUSY | libc::EINTR)) => {
                Err(SqueezeError::File { path: path.to_path_buf(), what: "take memory by it", source: error })
            }
            _ => Ok(()),
        };
        match &self.means {
            Means::Reclaim(file) => tolerant(file, fs::write(file, bytes.to_string())),
            Means::Moment { limit, killer, keeper } => {
                let size = self.counts()?.usage.saturating_sub(bytes).to_string();
                let squeeze = || keeper.while_set(limit, &size, || ());
                let held = killer.as_ref().map(|killer| (killer, killer_of(killer)));
                let done = match held {
                    // The killer is already disabled by somebody else.
                    Some((_, true)) | None => squeeze(),
                    // A job that gets no memory in this moment waits until the limit is lifted.
                    Some((killer, false)) => {
                        keeper.while_set_from(killer, "0", "1", squeeze).and_then(|done| done)
                    }
                };
                tolerant(limit, done)
            }
        }
    }

    /// The group's current counters.
    pub(super) fn counts(&self) -> Result<Counts, SqueezeError> {
        let usage = self.group.join(if self.v1 { "memory.usage_in_bytes" } else { "memory.current" });
        let failed = |path: &Path| {
            let path = path.to_path_buf();
            move |source| SqueezeError::File { path, what: "read it", source }
        };
        let text = fs::read_to_string(&usage).map_err(failed(&usage))?;
        let stat = self.group.join("memory.stat");
        let stat = fs::read_to_string(&stat).map_err(failed(&stat))?;
        // In version 1 the sums over subgroups have other names.
        let number = |name: &str| {
            let total = if self.v1 { format!("total_{name}") } else { name.to_owned() };
            let of = |name: &str| {
                stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse::<u64>().ok())
            };
            of(&total).or_else(|| of(name)).unwrap_or(0)
        };
        Ok(Counts {
            usage: text.trim().parse().unwrap_or(0),
            faults: number("pgmajfault"),
            refaults: number("workingset_refault_anon") + number("workingset_refault_file"),
            stalled: Stalls::read(&self.group.join("memory.pressure")).map(|stalls| stalls.some.total),
        })
    }
}

/// Returns whether the OOM killer of a group is disabled.
fn killer_of(file: &Path) -> bool {
    fs::read_to_string(file).is_ok_and(|text| text.contains("oom_kill_disable 1"))
}

/// The group that contains exactly the job's processes.
fn own_group(watcher: &Watcher) -> Option<PathBuf> {
    let job: Vec<Pid> = watcher.processes().map(|(pid, _)| pid).collect();
    let text = procfs::text(format!("/proc/{}/cgroup", job.first()?)).ok()?;
    let of = |line: &str| {
        let mut words = line.splitn(3, ':');
        let (number, controllers, path) = (words.next()?, words.next()?, words.next()?.strip_prefix('/')?);
        let tops: &[&str] = match (number, controllers) {
            ("0", _) => &V2,
            (_, controllers) if controllers.split(',').any(|name| name == "memory") => &[V1],
            _ => return None,
        };
        let memory = |group: &PathBuf| {
            ["memory.limit_in_bytes", "memory.high"].iter().any(|file| group.join(file).exists())
        };
        // The root group has all processes of the machine.
        (!path.is_empty()).then(|| tops.iter().map(|top| Path::new(top).join(path)).find(memory))?
    };
    let group = text.lines().find_map(of)?;
    let members = fs::read_to_string(group.join("cgroup.procs")).ok()?;
    let mut members = members.split_whitespace().filter_map(|pid| pid.parse().ok().map(Pid));
    members.all(|pid| job.contains(&pid)).then_some(group)
}
