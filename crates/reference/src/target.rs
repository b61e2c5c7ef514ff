//! The job to watch: processes and their descendants, a cgroup, or all processes of one name.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use vellum_kernel::{Bytes, Cgroup, Pid};

const GROUPS_MAX: usize = 4096;
/// Processes watched as one job.
pub const MEMBERS_MAX: usize = 4096;

/// A job to watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// These processes and all that descends from them. A descendant stays one when its parent ends.
    Processes(Vec<Pid>),
    /// These processes only.
    Only(Vec<Pid>),
    /// The processes of a cgroup, given by its directory, and of those below it.
    Cgroup(PathBuf),
}

/// There is nothing to watch.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// No such process.
    #[error("there is no process {0}; `ps -e` lists those that run")]
    NoProcess(Pid),
    /// No process of this name.
    #[error("no process{} is called \"{name}\"; give a pid, or a name as `ps -o comm` shows it", if *.all { "" } else { " of yours" })]
    NoName {
        /// The name.
        name: String,
        /// True if the processes of all users were searched.
        all: bool,
    },
    /// The cgroup cannot be read.
    #[error(
        "{path}: cannot list the processes of this control group: {source}; give a directory that holds cgroup.procs"
    )]
    Cgroup {
        /// The directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// `/proc` cannot be read.
    #[error("/proc: {0}; watching needs it mounted")]
    Proc(#[source] io::Error),
}

impl Target {
    /// A process and its descendants.
    pub fn process(pid: Pid) -> Result<Target, TargetError> {
        if pid.is_alive() { Ok(Target::Processes(vec![pid])) } else { Err(TargetError::NoProcess(pid)) }
    }

    /// Its resident memory now; pages that several processes share count in each.
    pub(super) fn resident(&self) -> Bytes {
        let members = self.members(std::iter::empty());
        members.into_iter().filter_map(Pid::stat).map(|stat| stat.resident).sum()
    }

    /// All processes of a name, as one job, and their descendants. Root finds everybody's, another user only
    /// his own.
    pub fn named(name: &str) -> Result<Target, TargetError> {
        let user = rustix::process::geteuid();
        let mine = |pid: &Pid| {
            user.is_root() || std::fs::metadata(pid.file("")).is_ok_and(|meta| meta.uid() == user.as_raw())
        };
        let is_named = |pid: &Pid| pid.stat().is_some_and(|stat| stat.comm == name && !stat.is_zombie());
        let pids = Pid::all().map_err(|error| TargetError::Proc(error.source))?;
        let found: Vec<Pid> =
            pids.filter(|pid| *pid != Pid::me()).filter(is_named).filter(mine).take(MEMBERS_MAX).collect();
        if found.is_empty() {
            return Err(TargetError::NoName { name: name.to_owned(), all: user.is_root() });
        }
        Ok(Target::Processes(found))
    }

    /// A control group, by its directory.
    pub fn cgroup(path: &Path) -> Result<Target, TargetError> {
        let path = path.to_owned();
        match Cgroup::at(&path).processes() {
            Ok(_) => Ok(Target::Cgroup(path)),
            Err(error) => Err(TargetError::Cgroup { path, source: error.source }),
        }
    }

    /// The job's processes now, `known` being those seen before: at most [`MEMBERS_MAX`].
    pub(crate) fn members(&self, known: impl Iterator<Item = Pid>) -> BTreeSet<Pid> {
        match self {
            Target::Only(pids) => pids.iter().copied().collect(),
            Target::Processes(roots) => Pid::descendants(roots.iter().copied().chain(known), MEMBERS_MAX),
            Target::Cgroup(path) => {
                let all: BTreeSet<Pid> = Cgroup::at(path).all_processes(GROUPS_MAX).into_iter().collect();
                all.into_iter().take(MEMBERS_MAX).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descendants_are_found_and_only_means_only() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = Pid(child.id() as i32);
        let target = Target::process(Pid::me()).unwrap();
        assert!(target.members(std::iter::empty()).contains(&pid));
        assert_eq!(Target::Only(vec![Pid::me()]).members(std::iter::empty()).len(), 1);
        child.kill().unwrap();
        child.wait().unwrap();
        // A known process that is gone brings nobody with it, and is left to the caller to notice.
        assert!(target.members(std::iter::once(pid)).contains(&Pid::me()));
    }
}
