//! Finds the processes of all jobs, in one scan of `/proc`.
//!
//! A process belongs to a job if it is the job's first process, if its parent belongs to the job, or if it
//! belonged to the job at an earlier scan. An orphan belongs to the job in whose session it is. The members
//! of an adopted cgroup are those that the kernel lists.
//!
//! A process that leaves both parent and session (a daemon's double fork) between two scans is lost. A job
//! with its own cgroup loses none.
//!
//! - A process is identified by its pid and its time of birth.
//! - Neither the governor nor its guardians belong to any job.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use vellum_kernel::{Bytes, Cgroup, Pid, Stat};

/// The most processes of one job that are looked after.
pub(crate) const MEMBERS_MAX: usize = 4096;
/// The most control groups below an adopted group that are listed.
const GROUPS_MAX: usize = 1024;

pub(crate) type Members = BTreeMap<Pid, u64>;

#[derive(Debug)]
pub(crate) struct Census {
    all: HashMap<Pid, Stat>,
    children: HashMap<Pid, Vec<Pid>>,
    never: [Pid; 3],
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Roots<'a> {
    /// Descendants of the members at the last scan.
    Process,
    /// Descendants, and orphans in the session of this leader (`setsid`).
    Session(Pid),
    /// Processes of this control group and of groups below it.
    Group(&'a Path),
}

impl Census {
    /// Looks at every process. The guardians belong to nobody.
    pub(crate) fn take(guardians: [Pid; 2]) -> Census {
        let mut all = HashMap::new();
        let mut children: HashMap<Pid, Vec<Pid>> = HashMap::new();
        for pid in Pid::all().into_iter().flatten() {
            if let Some(stat) = pid.stat() {
                children.entry(stat.parent).or_default().push(pid);
                all.insert(pid, stat);
            }
        }
        Census { all, children, never: [Pid::me(), guardians[0], guardians[1]] }
    }

    pub(crate) fn stat(&self, pid: Pid) -> Option<&Stat> {
        self.all.get(&pid)
    }

    /// The members now, zombies included, of a job that had the members `known` at the last scan.
    pub(crate) fn members(&self, roots: Roots<'_>, known: &Members) -> Members {
        let same =
            |pid: &Pid, started: &u64| self.all.get(pid).is_some_and(|stat| stat.started_ticks == *started);
        let mut queue: Vec<Pid> =
            known.iter().filter(|(pid, started)| same(pid, started)).map(|(pid, _)| *pid).collect();
        match roots {
            Roots::Process => {}
            Roots::Session(session) => {
                let orphans =
                    [Pid(1), self.never[0]].into_iter().filter_map(|parent| self.children.get(&parent));
                let is_in_it = |pid: &&Pid| self.all.get(pid).is_some_and(|stat| stat.session == session);
                queue.extend(orphans.flatten().filter(is_in_it));
            }
            Roots::Group(path) => queue = in_group(path),
        }
        let mut members = Members::new();
        while let Some(pid) = queue.pop() {
            let Some(stat) = self.all.get(&pid) else { continue };
            if members.len() >= MEMBERS_MAX
                || self.never.contains(&pid)
                || members.insert(pid, stat.started_ticks).is_some()
            {
                continue;
            }
            if !matches!(roots, Roots::Group(_)) {
                queue.extend(self.children.get(&pid).into_iter().flatten());
            }
        }
        members
    }

    pub(crate) fn adopt(&self, pid: Pid) -> Members {
        self.all.get(&pid).map(|stat| (pid, stat.started_ticks)).into_iter().collect()
    }

    /// Resident memory of the living members; shared pages count in each.
    pub(crate) fn resident(&self, members: &Members) -> Bytes {
        let stats = members.keys().filter_map(|pid| self.all.get(pid));
        stats.filter(|stat| !stat.is_zombie()).map(|stat| stat.resident).sum()
    }
}

pub(crate) fn in_group(path: &Path) -> Vec<Pid> {
    Cgroup::at(path).all_processes(GROUPS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::process::{Command, Stdio};

    #[test]
    fn children_and_those_whose_parent_ended_are_members_and_strangers_are_not() {
        // The output ends when the inner shell has been waited for and nobody else has it open.
        let script = "sleep 100 >/dev/null & (sleep 100 >/dev/null & echo $!); exec >/dev/null; wait";
        let mut child = Command::new("sh").args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
        let root = Pid(child.id() as i32);
        let mut line = String::new();
        child.stdout.take().unwrap().read_to_string(&mut line).unwrap();
        let orphan = Pid(line.trim().parse().unwrap());
        let mut stranger = Command::new("sleep").arg("100").spawn().unwrap();
        let census = Census::take([Pid(0); 2]);
        let mut known = census.adopt(root);
        known.extend(census.adopt(orphan));
        let members = Census::take([Pid(0); 2]).members(Roots::Process, &known);
        assert!(members.contains_key(&root) && members.contains_key(&orphan), "{members:?}");
        assert_eq!(members.len(), 3, "{members:?}");
        assert!(!members.contains_key(&Pid(stranger.id() as i32)));
        assert!(census.resident(&members) > Bytes(0));
        // A pid born at another time is another process.
        let other: Members = members.keys().map(|pid| (*pid, 1)).collect();
        assert_eq!(census.members(Roots::Process, &other), Members::new());
        for pid in members.keys() {
            // SAFETY: signals to processes this test has started.
            unsafe { libc::kill(pid.0, libc::SIGKILL) };
        }
        stranger.kill().unwrap();
        stranger.wait().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn the_governor_belongs_to_nobody() {
        let census = Census::take([Pid(0); 2]);
        let known = census.adopt(Pid::me());
        assert_eq!(census.members(Roots::Process, &known), Members::new());
    }
}
