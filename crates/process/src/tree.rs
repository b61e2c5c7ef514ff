//! Reads the tree of a job's processes, which descend from this process.
//!
//! When the parent of a process ends, a process above this one adopts the orphan. It is the same process
//! as without us, because some daemons wait until it is their parent. These *strays* are found among the
//! children of the processes above, by the name of the job's board in their environment. The machine's
//! other processes are not searched.
//!
//! ```text
//! we ─ task/*/children ─▶ the program ─ task/*/children ─▶ ...      each: stat, statm
//! above us ─ children that have the board's name in environ ─▶ strays ─ task/*/children ─▶ ...
//! ```
//!
//! A stray that has ended counts with the usage of its last sample.
//!
//! Costs are kept down in two ways. The `/proc` files of the first [`FILES_HELD_MAX`] processes stay open
//! and are read again in place (a third of the cost of opening them). A process has a `children` file for
//! each thread, so a process with many threads is listed only every few samples. On kernels built without
//! `children` files, every process's parent is read instead.
//!
//! Invariant: reading an open file of a process that has ended is an error; the file never shows the pid's
//! next owner.

use crate::{BoardFile, Bytes, Pid};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use vellum_kernel::{Stat, Used, child_pids, statm_resident};
use vellum_wire::BOARD_ENV;

/// Processes whose files are kept open between samples.
pub const FILES_HELD_MAX: usize = 100;
/// Strays whose usage is remembered.
const STRAYS_MAX: usize = 1 << 16;
/// The largest `/proc` file that is read whole here.
const READ_MAX: usize = 64 << 10;
/// A process with many threads has its children listed once in (threads / this) looks.
const THREADS_A_LOOK: u64 = 4;
/// ... and at least once in this many.
const LOOKS_BETWEEN_MAX: u64 = 64;

/// A process in a sample.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Its id.
    pub pid: Pid,
    /// Its `stat`.
    pub stat: Stat,
    /// Its resident memory.
    pub resident: Bytes,
    /// The part of it that is pages of files and shared memory; 0 if the kernel has no such count.
    pub files: Bytes,
}

/// A sample of the tree.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// The processes alive, without zombies.
    pub alive: Vec<Seen>,
    /// Usage of the job so far: of the tree, of strays, and of children that we have waited for.
    pub used: Used,
    /// Processes whose parent ended before them, so far, and what they used.
    pub strays: (usize, Used),
}

impl Sample {
    /// Resident memory of all processes; shared pages count in each.
    pub fn resident(&self) -> Bytes {
        self.alive.iter().map(|seen| seen.resident).sum()
    }

    /// The part of it that is pages of files and shared memory.
    pub fn files(&self) -> Bytes {
        self.alive.iter().map(|seen| seen.files).sum()
    }
}

/// The tree, with the state kept between samples.
#[derive(Debug)]
pub struct Tree {
    root: Pid,
    before: Used,
    others: HashSet<Pid>,
    /// True if the last sample met a process whose environment was empty because it was executing a program.
    is_undecided: bool,
    known: HashMap<Pid, Known>,
    root_stat: File,
    /// The `children` of our main thread and of the thread that starts the job. Empty on kernels without such
    /// files.
    root_children: Vec<File>,
    /// The `children` of the processes above us, which may get strays.
    above: Vec<String>,
    /// The variable that every process of the job has in its environment.
    mark: Vec<u8>,
    strays: HashMap<(Pid, u64), Used>,
    looks: u64,
    text: Vec<u8>,
}

#[derive(Debug, Default)]
struct Known {
    looked: u64,
    started_ticks: u64,
    files: Option<Files>,
    children: Vec<Pid>,
}

#[derive(Debug)]
struct Files {
    stat: File,
    statm: File,
    children: Option<File>,
}

impl Tree {
    /// The tree below this process from now on; processes that already run below us are left out. To be
    /// called by the thread that will start the job. Strays that no sample has seen before are found by
    /// `board`. `None` when `/proc` cannot be read.
    pub fn below_us(board: Option<&BoardFile>) -> Option<Tree> {
        let root = Pid::me();
        let own = File::open(format!("/proc/{root}/task/{root}/children"));
        let this = File::open("/proc/thread-self/children");
        let mut tree = Tree {
            root,
            before: Used::default(),
            others: HashSet::new(),
            is_undecided: false,
            known: HashMap::new(),
            root_stat: File::open("/proc/self/stat").ok()?,
            root_children: own.into_iter().chain(this).collect(),
            above: Vec::new(),
            mark: Vec::new(),
            strays: HashMap::new(),
            looks: 0,
            text: Vec::with_capacity(4096),
        };
        let us = tree.root_stat()?;
        tree.before = us.waited;
        if let Some(board) = board {
            tree.mark = [BOARD_ENV.as_bytes(), b"=", board.path().as_os_str().as_bytes()].concat();
            let above = |pid: &Pid| Some(pid.stat()?.parent);
            let above = std::iter::successors(Some(us.parent), above).take_while(|pid| pid.0 > 0);
            tree.above.extend(above.map(|pid| format!("/proc/{pid}/task/{pid}/children")));
        }
        tree.others = tree.below_root().into_iter().chain(tree.listed_above()).collect();
        Some(tree)
    }

    /// Takes samples until no process is undecided, at most 20.
    pub fn last_sample(&mut self) -> Sample {
        const LOOKS: u32 = 20;
        let mut sample = self.sample();
        for _ in 1..LOOKS {
            if !self.is_undecided {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
            sample = self.sample();
        }
        sample
    }

    /// Looks at every process of the tree.
    pub fn sample(&mut self) -> Sample {
        self.looks += 1;
        let mut sample = Sample::default();
        if let Some(us) = self.root_stat() {
            sample.used = us.waited.since(self.before);
        }
        let parents = self.root_children.is_empty().then(parents);
        let mut queue = match &parents {
            Some(parents) => below(parents, self.root).collect(),
            None => self.below_root(),
        };
        queue.retain(|pid| !self.others.contains(pid));
        self.walk(queue, parents.as_deref(), &mut sample);
        let strays = self.unvisited();
        self.walk(strays, parents.as_deref(), &mut sample);
        let now = self.looks;
        self.known.retain(|_, known| known.looked == now);
        sample.strays.0 = self.strays.len();
        self.strays.values().for_each(|used| sample.strays.1 += *used);
        sample.used += sample.strays.1;
        sample
    }

    fn walk(&mut self, mut queue: Vec<Pid>, parents: Option<&[(Pid, Pid)]>, sample: &mut Sample) {
        while let Some(pid) = queue.pop() {
            let mut known = self.known.remove(&pid).unwrap_or_default();
            if known.looked == self.looks {
                self.known.insert(pid, known);
                continue;
            }
            let held = known.files.as_ref().map(|files| &files.stat);
            let Some(stat) = self.text(pid, held, "stat").and_then(Stat::parse) else { continue };
            if known.started_ticks != stat.started_ticks {
                known = Known { started_ticks: stat.started_ticks, ..Known::default() };
                known.files = (self.known.len() < FILES_HELD_MAX).then(|| Files::open(pid)).flatten();
            }
            let mut used = stat.own;
            used += stat.waited;
            if stat.parent == self.root || self.known.contains_key(&stat.parent) {
                sample.used += used;
            } else if self.strays.len() < STRAYS_MAX {
                self.strays.insert((pid, stat.started_ticks), used);
            }
            if !stat.is_zombie() {
                match parents {
                    Some(parents) => queue.extend(below(parents, pid)),
                    None => {
                        self.refresh_children(pid, stat.threads, &mut known);
                        queue.extend_from_slice(&known.children);
                    }
                }
                let held = known.files.as_ref().map(|files| &files.statm);
                let read = self.text(pid, held, "statm").and_then(statm_resident);
                let (resident, files) = read.unwrap_or((stat.resident, Bytes(0)));
                sample.alive.push(Seen { pid, stat, resident, files });
            }
            known.looked = self.looks;
            self.known.insert(pid, known);
        }
    }

    fn unvisited(&mut self) -> Vec<Pid> {
        let mut found = Vec::new();
        self.is_undecided = false;
        for (&pid, known) in &self.known {
            // Another process may have got the number.
            let is_it = |stat: Stat| stat.started_ticks == known.started_ticks;
            if known.looked != self.looks && pid.stat().is_some_and(is_it) {
                found.push(pid);
            }
        }
        let listed = self.listed_above();
        let ours = self.below_root();
        self.others.retain(|pid| listed.contains(pid) || ours.contains(pid));
        for pid in listed {
            if pid == self.root || self.known.contains_key(&pid) || self.others.contains(&pid) {
                continue;
            }
            // Empty while the process executes another program.
            let environment = pid.environment().unwrap_or_else(|_| vec![0]);
            if environment.split(|&byte| byte == 0).any(|entry| entry == self.mark) {
                found.push(pid);
            } else if environment.is_empty() {
                self.is_undecided = true;
            } else {
                self.others.insert(pid);
            }
        }
        found
    }

    fn listed_above(&mut self) -> HashSet<Pid> {
        let mut pids = HashSet::new();
        for path in std::mem::take(&mut self.above) {
            pids.extend(self.read(&path).into_iter().flat_map(child_pids));
            self.above.push(path);
        }
        pids
    }

    /// Write calls made by `sample`'s processes since each started; `None` when not even one may be read.
    pub fn writes(&self, sample: &Sample) -> Option<u64> {
        let writes = sample.alive.iter().filter_map(|seen| seen.pid.io(["syscw"]));
        writes.fold(None, |sum, [count]| Some(sum.unwrap_or(0) + count))
    }

    fn root_stat(&mut self) -> Option<Stat> {
        Stat::parse(read_again(&mut self.text, &self.root_stat)?)
    }

    fn below_root(&mut self) -> Vec<Pid> {
        let mut pids = Vec::new();
        for file in &self.root_children {
            pids.extend(read_again(&mut self.text, file).into_iter().flat_map(child_pids));
        }
        // Both files are the same when the main thread starts the job.
        pids.sort_unstable();
        pids.dedup();
        pids
    }

    fn refresh_children(&mut self, pid: Pid, threads: u64, known: &mut Known) {
        let every = (threads / THREADS_A_LOOK).clamp(1, LOOKS_BETWEEN_MAX);
        if known.looked == 0 || self.looks.is_multiple_of(every) {
            let mut children = std::mem::take(&mut known.children);
            children.clear();
            let held = known.files.as_ref().and_then(|files| files.children.as_ref());
            self.list_children(pid, threads, held, &mut children);
            known.children = children;
        }
    }

    fn list_children(&mut self, pid: Pid, threads: u64, held: Option<&File>, into: &mut Vec<Pid>) {
        if threads > 1 {
            into.extend(pid.children());
        } else if let Some(text) = self.text(pid, held, &format!("task/{pid}/children")) {
            into.extend(child_pids(text));
        }
    }

    /// The text of a file of a process, which may be held open.
    fn text(&mut self, pid: Pid, held: Option<&File>, name: &str) -> Option<&[u8]> {
        match held {
            Some(file) => read_again(&mut self.text, file),
            None => self.read(&format!("/proc/{pid}/{name}")),
        }
    }

    fn read(&mut self, path: &str) -> Option<&[u8]> {
        read_again(&mut self.text, &File::open(path).ok()?)
    }
}

fn read_again<'a>(text: &'a mut Vec<u8>, file: &File) -> Option<&'a [u8]> {
    let mut filled = 0;
    text.resize(text.capacity(), 0);
    loop {
        let read = file.read_at(&mut text[filled..], filled as u64).ok()?;
        filled += read;
        // A read that does not fill the buffer has reached the end of the file: `/proc` gives whole lines.
        if read == 0 || filled < text.len() || filled == READ_MAX {
            return Some(&text[..filled]);
        }
        text.resize((filled * 2).min(READ_MAX), 0);
    }
}

impl Files {
    fn open(pid: Pid) -> Option<Files> {
        let open = |name: String| File::open(format!("/proc/{pid}/{name}")).ok();
        Some(Files {
            stat: open("stat".into())?,
            statm: open("statm".into())?,
            children: open(format!("task/{pid}/children")),
        })
    }
}

fn parents() -> Vec<(Pid, Pid)> {
    let all = Pid::all().into_iter().flatten();
    all.filter_map(|pid| Some((pid, pid.stat()?.parent))).collect()
}

fn below(parents: &[(Pid, Pid)], parent: Pid) -> impl Iterator<Item = Pid> + '_ {
    parents.iter().filter(move |(_, of)| *of == parent).map(|(pid, _)| *pid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    /// A shell with a child that has written a line, both gone when their input closes.
    fn family() -> std::process::Child {
        let mut shell = Command::new("sh");
        shell.args(["-c", "exec 3<&0; sh -c 'echo up; read end' <&3 & read end; wait"]);
        let mut shell = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("sh starts");
        let mut line = String::new();
        BufReader::new(shell.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "up\n");
        shell
    }

    #[test]
    fn sees_children_and_grandchildren_by_both_ways() {
        let mut tree = Tree::below_us(None).expect("/proc");
        let mut shell = family();
        let pid = Pid(shell.id() as i32);
        for with_files in [true, false] {
            if !with_files {
                tree.root_children.clear();
            }
            for _ in 0..2 {
                let sample = tree.sample();
                let ours = sample.alive.iter().find(|seen| seen.pid == pid).expect("the shell is seen");
                assert!(ours.resident > Bytes(0) && ours.stat.own.minor_faults > 0);
                assert!(sample.alive.iter().any(|seen| seen.stat.parent == pid), "its child is seen");
                assert!(
                    sample.resident() > ours.resident
                        && sample.used.minor_faults > ours.stat.own.minor_faults
                );
            }
        }
        let sample = tree.sample();
        assert!(tree.writes(&sample).is_none_or(|writes| writes >= 1), "echo wrote");
        // A second tree leaves out the processes that are there already.
        let mut later = Tree::below_us(None).expect("/proc");
        assert!(!later.sample().alive.iter().any(|seen| seen.pid == pid));
        drop(shell.stdin.take());
        shell.wait().unwrap();
        assert!(!tree.sample().alive.iter().any(|seen| seen.pid == pid));
    }
}
