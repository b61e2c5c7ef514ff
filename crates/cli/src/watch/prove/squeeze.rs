//! Reclaims the memory of a cgroup in small steps, and reads its counts of faults and stalls.
//!
//! | cgroup version | reclaims by writing | afterwards |
//! | --- | --- | --- |
//! | 2 | `memory.reclaim` | nothing to restore |
//! | 2, before Linux 5.19 | `memory.high` | the limit is restored at once |
//! | 1 | `memory.limit_in_bytes`, with the OOM killer disabled | both are restored at once |
//!
//! Writing a limit below the current use makes the kernel reclaim down to it before the write returns, so the
//! limit is needed for a moment only. If this command is killed in that moment, a small process ([`Keeper`])
//! restores the limit and enables the OOM killer (`memory.oom_control`).

use crate::failure::Failure;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};
use vellum_governor::Keeper;
use vellum_kernel::{Cgroup, Control, Pid, Unreadable, Version};
use vellum_reference::{Target, Watcher};

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

#[derive(Debug)]
pub(super) struct Squeeze {
    group: Cgroup,
    means: Means,
}

impl Squeeze {
    pub(super) fn of(target: &Target, watcher: &Watcher) -> Result<Squeeze, Failure> {
        let group = match target {
            Target::Cgroup(path) => Cgroup::at(path),
            _ => own_group(watcher).ok_or_else(|| no_group("this job"))?,
        };
        let file = |control| Some(group.control(control)).filter(|file| file.exists());
        let limit = if group.version() == Version::V1 { Control::Limit } else { Control::High };
        let means = if let Some(reclaim) = file(Control::Reclaim) {
            Means::Reclaim(reclaim)
        } else if let Some(limit) = file(limit) {
            let keeper = Keeper::start().map_err(|error| Failure::because(format!("--prove: {error}")))?;
            Means::Moment { limit, killer: file(Control::Killer), keeper }
        } else {
            return Err(no_group(&group.path().display().to_string()));
        };
        Ok(Squeeze { group, means })
    }

    /// Reclaims about `bytes` bytes. The kernel may reclaim less.
    pub(super) fn take(&self, bytes: u64) -> Result<(), Failure> {
        // The kernel reports EAGAIN or EBUSY if it reclaimed less.
        let tolerant = |path: &Path, done: io::Result<()>| match done {
            Err(error) if !matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EBUSY | libc::EINTR)) => {
                Err(refused(path, "take memory by it", &error))
            }
            _ => Ok(()),
        };
        match &self.means {
            Means::Reclaim(file) => tolerant(file, fs::write(file, bytes.to_string())),
            Means::Moment { limit, killer, keeper } => {
                let size = self.counts()?.usage.saturating_sub(bytes).to_string();
                let squeeze = || keeper.while_set(limit, &size, || ());
                let held = killer.as_ref().map(|killer| (killer, self.group.holds_killer()));
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

    pub(super) fn counts(&self) -> Result<Counts, Failure> {
        let failed = |error: Unreadable| refused(&error.path, "read it", &error.source);
        let usage = self.group.charged().map_err(failed)?;
        let found = self.group.statistics().map_err(failed)?;
        let number = |name| found.get(name).unwrap_or(0);
        Ok(Counts {
            usage: usage.0,
            faults: number("pgmajfault"),
            refaults: number("workingset_refault_anon") + number("workingset_refault_file"),
            stalled: self.group.pressure().map(|stalls| stalls.some.total),
        })
    }
}

fn no_group(of: &str) -> Failure {
    Failure::because(format!(
        "--prove: {of}: no memory control group; start the program in one (systemd-run --scope, or a directory below /sys/fs/cgroup), and watch that with --cgroup DIR"
    ))
}

fn refused(path: &Path, what: &str, error: &io::Error) -> Failure {
    let path = path.display();
    Failure::because(format!(
        "--prove: {path}: cannot {what}: {error}; it needs the right to write there, as root has"
    ))
}

/// The group that the job has to itself: all of the job's processes are in it and no others.
fn own_group(watcher: &Watcher) -> Option<Cgroup> {
    let job: Vec<Pid> = watcher.processes().map(|(pid, _)| pid).collect();
    let group = Cgroup::of_memory(*job.first()?)?;
    group.processes().ok()?.iter().all(|pid| job.contains(pid)).then_some(group)
}
