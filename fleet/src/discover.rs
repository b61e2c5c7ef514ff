//! Finds the cgroups that hold jobs, and reports each that appears or disappears.
//!
//! ```text
//! root ─▶ levels (cgroups above jobs), each watched by inotify ─▶ jobs
//!            │ a directory is made or removed
//!            └─▶ that level alone is listed again ─▶ `Change::Came`, `Change::Went`
//! ```
//!
//! Inotify drops events when there are too many, and reports nothing when a job becomes a level. All levels
//! are therefore listed again every [`RESCAN`], and a cgroup without an event is found a minute late at most.
//! If inotify has no more watches, all levels are listed every [`RESCAN_BLIND`].
//!
//! Invariants: a cgroup may disappear at any moment, with all cgroups below it. A level is watched before
//! it is listed, so no change is missed in between. The number of cgroups is bounded ([`NODES_MAX`]).

use crate::Error;
use crate::group::{Identity, Place, place};
use rustix::fs::inotify;
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use vellum_kernel::{Cgroup, V1, V2};

/// The maximum number of groups and levels.
const NODES_MAX: usize = 1 << 16;
/// The maximum number of levels above a job.
const DEPTH_MAX: usize = 16;
/// The time between two full listings.
const RESCAN: Duration = Duration::from_secs(60);
const RESCAN_BLIND: Duration = Duration::from_secs(5);
/// The size of the buffer for events, in bytes.
const EVENTS: usize = 16 << 10;

/// The hierarchy of this machine that has the memory controller.
///
/// # Errors
/// If there is no such hierarchy.
pub fn usual_root() -> Result<PathBuf, Error> {
    let way_out = "give the hierarchy's root with --root";
    let none = || Error(format!("no control groups are mounted in {} or {V1}; {way_out}", V2[0]));
    Cgroup::memory_root().map(|root| root.path().to_path_buf()).ok_or_else(none)
}

/// A change of a group. Paths are relative to the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// A job's group was found.
    Came(String, Identity),
    /// A job's group has gone.
    Went(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Node {
    /// A level, with its inotify watch if it has one.
    Above(Option<i32>),
    Job(Identity),
    Helper,
}

/// The cgroups below a root.
#[derive(Debug)]
pub(crate) struct Discovery {
    root: PathBuf,
    /// True if groups of unknown shape are included.
    others: bool,
    nodes: BTreeMap<String, Node>,
    watched: HashMap<i32, String>,
    watch: Option<OwnedFd>,
    blind: bool,
    scanned: Option<Instant>,
}

impl Discovery {
    /// The groups below `root`; with `others`, including groups of unknown shape.
    pub(crate) fn new(root: &Path, others: bool) -> Result<Discovery, Error> {
        let way_out = format!("give the root of a hierarchy of control groups, as {} or {V1}", V2[0]);
        let processes = Cgroup::at(root).processes();
        processes.map_err(|error| Error::option("--root", root, error.source, &way_out))?;
        let watch = inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC).ok();
        Ok(Discovery {
            root: root.to_owned(),
            others,
            nodes: BTreeMap::new(),
            watched: HashMap::new(),
            blind: watch.is_none(),
            watch,
            scanned: None,
        })
    }

    /// Becomes readable when something may have changed.
    pub(crate) fn wake(&self) -> Option<BorrowedFd<'_>> {
        self.watch.as_ref().map(AsFd::as_fd)
    }

    /// True if some levels are only listed at intervals, because inotify has no more watches.
    pub(crate) fn is_blind(&self) -> bool {
        self.blind
    }

    /// The changes since the last call.
    pub(crate) fn poll(&mut self) -> Vec<Change> {
        let mut changes = Vec::new();
        let (mut levels, lost) = self.events();
        let every = if self.blind { RESCAN_BLIND } else { RESCAN };
        if lost || self.scanned.is_none_or(|at| at.elapsed() >= every) {
            self.blind = self.watch.is_none();
            self.scanned = Some(Instant::now());
            let listed = self.nodes.iter().filter(|(_, node)| !matches!(node, Node::Helper));
            levels = listed.map(|(path, _)| path.clone()).chain([String::new()]).collect();
        }
        for level in levels {
            self.list(&level, &mut changes);
        }
        changes
    }

    /// The levels with events, and whether events were lost.
    fn events(&mut self) -> (BTreeSet<String>, bool) {
        let (mut levels, mut lost) = (BTreeSet::new(), false);
        let Some(watch) = &self.watch else { return (levels, lost) };
        let mut buffer = [MaybeUninit::uninit(); EVENTS];
        let mut reader = inotify::Reader::new(watch, &mut buffer);
        loop {
            match reader.next() {
                Ok(event) if event.events().contains(inotify::ReadFlags::QUEUE_OVERFLOW) => lost = true,
                Ok(event) if event.events().contains(inotify::ReadFlags::IGNORED) => {
                    self.watched.remove(&event.wd());
                }
                Ok(event) => levels.extend(self.watched.get(&event.wd()).cloned()),
                Err(Errno::INTR) => {}
                Err(_) => return (levels, lost),
            }
        }
    }

    /// Lists one level and the new levels below it.
    fn list(&mut self, level: &str, changes: &mut Vec<Change>) {
        let mut queue = vec![level.to_owned()];
        while let Some(level) = queue.pop() {
            if !level.is_empty() && !self.nodes.contains_key(&level) {
                continue;
            }
            let is_job = matches!(self.nodes.get(&level), Some(Node::Job(_)));
            if !is_job {
                self.watch_level(&level);
            }
            let Some(below) = subdirectories(&self.root.join(&level)) else {
                self.forget(&level, changes);
                continue;
            };
            if is_job {
                self.look_into(&level, &below, changes, &mut queue);
                continue;
            }
            for gone in self.children(&level).into_iter().filter(|child| !below.contains(name(child))) {
                self.forget(&gone, changes);
            }
            let has_processes =
                || Cgroup::at(self.root.join(&level)).processes().is_ok_and(|list| !list.is_empty());
            if below.is_empty() && self.others && has_processes() {
                self.unwatch(&level);
                self.enter(&level, Node::Job(Identity::Other), changes);
                continue;
            }
            for child in below.iter().map(|name| join(&level, name)) {
                if self.nodes.contains_key(&child) || self.nodes.len() >= NODES_MAX {
                    continue;
                }
                let node = match place(&child) {
                    Place::Job(identity) => Node::Job(identity),
                    Place::Helper => Node::Helper,
                    Place::Above if child.split('/').count() > DEPTH_MAX => Node::Helper,
                    Place::Above => Node::Above(None),
                };
                if !matches!(node, Node::Helper) {
                    queue.push(child.clone());
                }
                self.enter(&child, node, changes);
            }
        }
    }

    /// A job's group with groups below it remains a job, with two exceptions. A unit that contains containers
    /// becomes a level, and so does a group that was a job only because it had no groups below.
    fn look_into(
        &mut self,
        path: &str,
        below: &BTreeSet<String>,
        changes: &mut Vec<Change>,
        queue: &mut Vec<String>,
    ) {
        let is_level = match self.nodes.get(path) {
            Some(Node::Job(Identity::Other)) => !below.is_empty(),
            Some(Node::Job(Identity::Unit { .. })) => below.iter().any(|name| {
                let below = place(&join(path, name));
                matches!(below, Place::Job(Identity::Kubernetes { .. } | Identity::Container { .. }))
            }),
            _ => false,
        };
        if is_level {
            self.forget(path, changes);
            self.enter(path, Node::Above(None), changes);
            queue.push(path.to_owned());
        }
    }

    fn enter(&mut self, path: &str, node: Node, changes: &mut Vec<Change>) {
        if path.is_empty() {
            return;
        }
        if let Node::Job(identity) = &node {
            changes.push(Change::Came(path.to_owned(), identity.clone()));
        }
        self.nodes.insert(path.to_owned(), node);
    }

    /// Removes a node and all nodes below it.
    fn forget(&mut self, path: &str, changes: &mut Vec<Change>) {
        let below = format!("{path}/");
        let after = self.nodes.range(below.clone()..).map(|(path, _)| path);
        let gone: Vec<String> = after.take_while(|path| path.starts_with(&below)).cloned().collect();
        for path in std::iter::once(path.to_owned()).chain(gone) {
            self.unwatch(&path);
            if let Some(Node::Job(_)) = self.nodes.remove(&path) {
                changes.push(Change::Went(path));
            }
        }
    }

    /// The recorded nodes directly below a level.
    fn children(&self, level: &str) -> Vec<String> {
        let front = if level.is_empty() { String::new() } else { format!("{level}/") };
        let below = self.nodes.range(front.clone()..).map(|(path, _)| path);
        below
            .take_while(|path| path.starts_with(&front))
            .filter(|path| !path[front.len()..].contains('/'))
            .cloned()
            .collect()
    }

    fn watch_level(&mut self, level: &str) {
        if matches!(self.nodes.get(level), Some(Node::Above(Some(_)))) {
            return;
        }
        let Some(watch) = &self.watch else { return };
        let flags = inotify::WatchFlags::CREATE | inotify::WatchFlags::DELETE | inotify::WatchFlags::ONLYDIR;
        match inotify::add_watch(watch, self.root.join(level), flags) {
            Ok(number) => {
                self.watched.insert(number, level.to_owned());
                if let Some(node) = self.nodes.get_mut(level) {
                    *node = Node::Above(Some(number));
                }
            }
            // Already gone, which its listing will show.
            Err(Errno::NOENT) => {}
            Err(_) => self.blind = true,
        }
    }

    fn unwatch(&mut self, path: &str) {
        if let (Some(watch), Some(Node::Above(Some(number)))) = (&self.watch, self.nodes.get(path)) {
            self.watched.remove(number);
            // A directory that has gone has already lost its watch.
            let _ = inotify::remove_watch(watch, *number);
        }
    }
}

/// The names of the cgroups directly below one; `None` if that one has gone.
fn subdirectories(path: &Path) -> Option<BTreeSet<String>> {
    let entries = fs::read_dir(path).ok()?.flatten();
    let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    Some(directories.filter_map(|entry| entry.file_name().into_string().ok()).collect())
}

fn join(level: &str, name: &str) -> String {
    if level.is_empty() { name.to_owned() } else { format!("{level}/{name}") }
}

fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Directories that look like a cgroup hierarchy.
    struct Tree(tempfile::TempDir);

    impl Tree {
        fn new() -> Tree {
            let tree = Tree(tempfile::tempdir().unwrap());
            fs::write(tree.0.path().join("cgroup.procs"), "").unwrap();
            tree
        }

        fn make(&self, path: &str) {
            fs::create_dir_all(self.0.path().join(path)).unwrap();
        }

        fn remove(&self, path: &str) {
            fs::remove_dir_all(self.0.path().join(path)).unwrap();
        }

        fn discovery(&self, others: bool) -> Discovery {
            Discovery::new(self.0.path(), others).unwrap()
        }
    }

    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    const POD: &str = "kubepods/burstable/pod1f3a9c1e-7d54-4c88-9a51-3b2f4d5e6f70";

    /// The sorted changes, `+PATH` and `-PATH`.
    fn poll(discovery: &mut Discovery) -> Vec<String> {
        let told = discovery.poll().into_iter().map(|change| match change {
            Change::Came(path, _) => format!("+{path}"),
            Change::Went(path) => format!("-{path}"),
        });
        told.collect::<BTreeSet<String>>().into_iter().collect()
    }

    /// The same by a full listing.
    fn rescan(discovery: &mut Discovery) -> Vec<String> {
        discovery.scanned = None;
        poll(discovery)
    }

    #[test]
    fn discovery_reports_new_and_removed_groups() {
        let tree = Tree::new();
        let mut discovery = tree.discovery(false);
        assert_eq!(discovery.poll(), []);
        tree.make(&format!("{POD}/{ID}/below"));
        tree.make("system.slice/nginx.service");
        tree.make("machine.slice/libpod-conmon-x.scope");
        let job = format!("+{POD}/{ID}");
        assert_eq!(poll(&mut discovery), [&job, "+system.slice/nginx.service"], "by inotify");
        assert_eq!(discovery.poll(), []);
        tree.make(&format!("system.slice/docker-{ID}.scope"));
        assert_eq!(poll(&mut discovery), [format!("+system.slice/docker-{ID}.scope")]);
        tree.remove("kubepods");
        tree.remove("system.slice/nginx.service");
        assert_eq!(poll(&mut discovery), [&format!("-{POD}/{ID}"), "-system.slice/nginx.service"]);
        // A new group at the same place is another group.
        tree.make(&format!("{POD}/{ID}"));
        assert_eq!(poll(&mut discovery), [job]);
        assert!(!discovery.is_blind());
    }

    #[test]
    fn discovery_rescans_without_inotify() {
        let tree = Tree::new();
        let mut discovery = tree.discovery(false);
        (discovery.watch, discovery.blind) = (None, true);
        assert_eq!(discovery.poll(), []);
        tree.make(&format!("docker/{ID}"));
        assert_eq!(discovery.poll(), [], "not yet");
        assert_eq!(rescan(&mut discovery), [format!("+docker/{ID}")]);
        tree.remove("docker");
        assert_eq!(rescan(&mut discovery), [format!("-docker/{ID}")]);
        assert!(discovery.is_blind());
    }

    #[test]
    fn unit_with_containers_becomes_a_level() {
        let tree = Tree::new();
        let mut discovery = tree.discovery(false);
        let unit = "system.slice/containerd.service";
        tree.make(unit);
        assert_eq!(poll(&mut discovery), [format!("+{unit}")]);
        tree.make(&format!("{unit}/x:cri-containerd:{ID}"));
        let both = [format!("+{unit}/x:cri-containerd:{ID}"), format!("-{unit}")];
        assert_eq!(rescan(&mut discovery), both);
    }

    #[test]
    fn groups_of_unknown_shape_are_found_on_request() {
        let tree = Tree::new();
        tree.make("batch/a");
        tree.make("batch/empty");
        fs::write(tree.0.path().join("batch/a/cgroup.procs"), "1\n").unwrap();
        assert_eq!(tree.discovery(false).poll(), []);
        let mut discovery = tree.discovery(true);
        assert_eq!(poll(&mut discovery), ["+batch/a"]);
        tree.make("batch/a/b");
        assert_eq!(rescan(&mut discovery), ["-batch/a"], "it has become a level");
        tree.remove("batch/a");
        discovery.poll();
        assert!(discovery.nodes.contains_key("batch") && !discovery.nodes.contains_key("batch/a"));
    }

    #[test]
    fn discovery_rejects_a_root_without_control_groups() {
        let folder = tempfile::tempdir().unwrap();
        let error = Discovery::new(folder.path(), false).unwrap_err().to_string();
        assert!(error.contains("--root") && error.contains("/sys/fs/cgroup"), "{error}");
    }
}
