//! A source that counts a cgroup's references by the generations of the kernel's own page replacement.
//!
//! The kernel sorts a cgroup's pages into generations ([`vellum_kernel::generations`]). A clearing begins a
//! generation, and each look begins another. The pages referenced since the clearing are then in the
//! clearing's generation or a younger one:
//!
//! ```text
//! clear: begins g      look: begins g + 1        look: begins g + 2       no third: g would join g − 1
//!        │  referenced: into g   │  referenced: into g + 1  │
//! ───────┴───────────────────────┴──────────────────────────┴─▶          referenced = pages of g and younger
//! ```
//!
//! The kernel has four generations, so a third look would merge g and g − 1. A clearing thus allows two
//! looks, and a cycle of twelve looks needs six clearings. Counts are as exact as with accessed bits.
//!
//! Advantages over accessed bits: the kernel locks no mappings when it begins a generation, so there is no
//! stall. Shared memory is counted once, in the cgroup that is charged for it. The kernel's page replacement
//! loses no hint, since it clears the bits itself. The disadvantage: each look clears the bits, and so costs
//! the job as much as a clearing.
//!
//! Memory charged to other cgroups (libraries that were loaded before) and locked pages are not counted.
//! There are no counts for single processes. If the kernel needs memory and itself begins a generation
//! before a look, the look is lost ([`SourceError::Spoiled`]).

use super::accessed::thread_cpu;
use super::stale::LEFT_BY_OTHERS;
use crate::source::{Count, Done, Source, SourceError, SourceKind, Spent};
use crate::target::Target;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use vellum_kernel::generations::{self, GroupGenerations, List};
use vellum_kernel::{Bytes, Cgroup, Pid, V2};

/// The generations of a job's control group.
#[derive(Debug)]
pub(super) struct Generations {
    group: GroupGenerations,
    directory: PathBuf,
    /// In each list (of group and node) the generation that the last clearing began.
    from: HashMap<(u64, u32), u64>,
}

impl Generations {
    /// The generations of the target's control group, or of the group that its processes have to themselves.
    pub(super) fn of(target: &Target) -> Result<Generations, String> {
        generations::available()?;
        let directory = match target {
            Target::Cgroup(path) => path.clone(),
            _ => own_group(target)?,
        };
        Ok(Generations { group: GroupGenerations::of(&directory)?, directory, from: HashMap::new() })
    }

    fn done(&self, lists: &[List], since: impl Fn(&List) -> u64, cpu: Duration) -> Done {
        let bytes = Bytes::from_pages;
        let resident = lists.iter().map(|list| bytes(list.pages_since(0))).sum();
        let group = Cgroup::at(&self.directory);
        let count = Count {
            referenced: lists.iter().map(|list| bytes(list.pages_since(since(list)))).sum(),
            resident,
            huge: group.statistics().map_or(Bytes(0), |found| found.huge()).min(resident),
            swapped: group.swapped().unwrap_or_default(),
            shared: Bytes(0),
            twice: Bytes(0),
        };
        let spent = Spent { cpu: thread_cpu().saturating_sub(cpu), ..Spent::default() };
        Done { count, spent, reached: 1, lost: Vec::new() }
    }

    fn failed(&self, why: &std::io::Error) -> SourceError {
        match why.kind() {
            std::io::ErrorKind::WouldBlock => {
                SourceError::Spoiled("others age the control group all the time")
            }
            _ => SourceError::Whole(format!("{}: its generations: {why}", self.directory.display())),
        }
    }
}

impl Source for Generations {
    fn kind(&self) -> SourceKind {
        SourceKind::Generations
    }

    fn clear(&mut self, _: &[Pid]) -> Result<Done, SourceError> {
        let cpu = thread_cpu();
        let lists = self.group.age().map_err(|why| self.failed(&why))?;
        self.from = lists.iter().map(|list| ((list.group, list.node), list.youngest())).collect();
        Ok(self.done(&lists, List::youngest, cpu))
    }

    fn count(&mut self, _: &[Pid]) -> Result<Done, SourceError> {
        let cpu = thread_cpu();
        let lists = self.group.age().map_err(|why| self.failed(&why))?;
        // A group that was not there at the clearing has had all of its pages since.
        let since = |list: &List| self.from.get(&(list.group, list.node)).copied().unwrap_or(0);
        let known = |list: &List| {
            since(list) == 0 || list.youngest() <= since(list).saturating_add(u64::from(self.kind().looks()))
        };
        if !lists.iter().all(known) {
            return Err(SourceError::Spoiled("the kernel aged the control group at the same time"));
        }
        Ok(self.done(&lists, since, cpu))
    }

    fn size(&mut self, _: &[Pid]) -> Result<Done, SourceError> {
        let cpu = thread_cpu();
        let lists = self.group.lists().map_err(|why| self.failed(&why))?;
        Ok(self.done(&lists, List::youngest, cpu))
    }

    fn discard(&mut self, _: Pid) {}

    fn caveat(&self) -> Option<&'static str> {
        // The kernel flushes no translations when it ages, and nobody else can without the process's
        // soft-dirty bits.
        Some(LEFT_BY_OTHERS)
    }
}

fn own_group(target: &Target) -> Result<PathBuf, String> {
    let members = target.members(std::iter::empty());
    let cure = "give the job a group of its own (`systemd-run --scope -p MemoryAccounting=yes PROGRAM`), or watch the group with --cgroup";
    let group = |pid: &Pid| Cgroup::unified_path(*pid);
    let path = members.iter().find_map(group);
    let path = path.ok_or_else(|| format!("the job is in no control group of version 2; {cure}"))?;
    let directory = Path::new(V2[0]).join(path.trim_start_matches('/'));
    let others = Target::Cgroup(directory.clone()).members(std::iter::empty());
    if path == "/" || !others.is_subset(&members) {
        return Err(format!(
            "generations are of a control group, and that of this job, {path}, holds other processes too; {cure}"
        ));
    }
    // A process that ended between the two lists is in neither group.
    if members.iter().any(|pid| !others.contains(pid) && group(pid).is_some()) {
        return Err(format!(
            "generations are of a control group, and processes of this job are in several, {path} among them; {cure}"
        ));
    }
    Ok(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_among_others_is_refused_with_a_cure() {
        // This process and its parent share a group, unless somebody gave each its own.
        let target = Target::Only(vec![Pid::me()]);
        if let Err(why) = own_group(&target) {
            assert!(why.contains("--cgroup"), "{why}");
        }
        if generations::available().is_err() {
            assert!(Generations::of(&target).is_err());
        }
    }
}
