//! The agent: finds the cgroups of this node's jobs, watches their memory in turns, and publishes a page of
//! metrics.
//!
//! The agent has one thread. Each [`step`](Agent::step) updates the list of cgroups, runs the watches that
//! are due, and publishes the page. The HTTP server reads the page by a separate handle ([`Agent::page`]).

use crate::Error;
use crate::discover::{Change, Discovery};
use crate::group::Identity;
use crate::http::Access;
use crate::metrics;
use crate::pods::{Pods, PodsFrom};
use crate::turns::{Key, Turns};
use crate::view::{Page, State};
use crate::watched::Watched;
use rustix::time::{ClockId, clock_gettime};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use vellum_governor::families;
use vellum_reference::{Delay, Options};

const GROUPS_MAX: usize = 4096;
/// The time between two pages.
const PUBLISH: Duration = Duration::from_secs(2);
/// The longest step, so that signals and new groups are noticed in time.
const STEP_MAX: Duration = Duration::from_millis(200);

/// The settings of an agent.
#[derive(Debug, Clone)]
pub struct Setting {
    /// The hierarchy's root.
    pub root: PathBuf,
    /// True if groups of unknown shape are watched.
    pub others: bool,
    /// The source of the list of pods.
    pub pods: Option<PodsFrom>,
    /// Credentials for the list of pods.
    pub access: Access,
    /// Options of each watch.
    pub watch: Options,
    /// The share of one processor that all watches may cost together.
    pub share: f64,
    /// S, the delay of a page fault.
    pub delay: Delay,
}

/// An event, reported to the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The event, in one line.
    pub text: String,
    /// True if the notice reports a problem.
    pub is_trouble: bool,
}

/// The served page.
#[derive(Debug, Clone, Default)]
pub struct Published(Arc<Mutex<Page>>);

impl Published {
    /// The page as text in the OpenMetrics format. The kernel's counters of groups are read at each call.
    #[must_use]
    pub fn text(&self) -> String {
        let page = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        families::page(page)
    }

    /// The page for collectors of text files: Prometheus' older format has no type `info`.
    #[must_use]
    pub fn text_file(&self) -> String {
        metrics::text_file(&self.text())
    }
}

/// The agent: cgroups with jobs, their watches, and the page of metrics.
#[derive(Debug)]
pub struct Agent {
    setting: Setting,
    discovery: Discovery,
    pods: Option<Pods>,
    groups: BTreeMap<Key, Watched>,
    keys: HashMap<String, Key>,
    last: Key,
    turns: Turns,
    began: Instant,
    cpu_before: Duration,
    imposed: Duration,
    published: Option<Instant>,
    page: Published,
    /// True if the list of pods was available at the last attempt.
    named: bool,
    /// The notices already given: inotify has no more watches, and there are too many groups.
    told: (bool, bool),
    notices: Vec<Notice>,
}

impl Agent {
    /// An agent without groups.
    ///
    /// # Errors
    /// If the hierarchy or a file cannot be used, or the share is out of range.
    pub fn new(setting: Setting) -> Result<Agent, Error> {
        if !(setting.share > 0.0 && setting.share <= 1.0) {
            let wrong = "it is a part of one processor, above 0% and at most 100%";
            return Err(Error(format!("--total {}: {wrong}", setting.share)));
        }
        Ok(Agent {
            discovery: Discovery::new(&setting.root, setting.others)?,
            pods: setting.pods.clone().map(|from| Pods::new(from, &setting.access)).transpose()?,
            groups: BTreeMap::new(),
            keys: HashMap::new(),
            last: 0,
            turns: Turns::new(setting.share),
            began: Instant::now(),
            cpu_before: own_cpu(),
            imposed: Duration::ZERO,
            published: None,
            page: Published::default(),
            named: false,
            told: (false, false),
            notices: Vec::new(),
            setting,
        })
    }

    /// The served page.
    #[must_use]
    pub fn page(&self) -> Published {
        self.page.clone()
    }

    /// Becomes readable when groups may have come or gone.
    #[must_use]
    pub fn wake(&self) -> Option<BorrowedFd<'_>> {
        self.discovery.wake()
    }

    /// True if each group has a curve, or cannot have one for now.
    #[must_use]
    pub fn is_answered(&self) -> bool {
        self.groups.values().all(Watched::is_answered)
    }

    /// Does the work that is due. Returns the notices, and the time until the next work.
    pub fn step(&mut self) -> (Vec<Notice>, Duration) {
        self.discover();
        self.name();
        let wait = self.watch();
        if self.published.is_none_or(|at| at.elapsed() >= PUBLISH) {
            self.publish();
        }
        (std::mem::take(&mut self.notices), wait.min(PUBLISH))
    }

    fn discover(&mut self) {
        for change in self.discovery.poll() {
            match change {
                Change::Came(path, identity) => self.came(path, identity),
                Change::Went(path) => {
                    let Some(key) = self.keys.remove(&path) else { continue };
                    self.turns.leave(key);
                    if let Some(group) = self.groups.remove(&key) {
                        self.tell(format!("{}: gone", group.view().name));
                    }
                    self.published = None;
                }
            }
        }
        if self.discovery.is_blind() && !std::mem::replace(&mut self.told.0, true) {
            let why = "inotify has no more watches (fs.inotify.max_user_watches)";
            self.warn(format!("{why}: groups are looked for every 5 s"));
        }
    }

    fn came(&mut self, path: String, identity: Identity) {
        if self.groups.len() >= GROUPS_MAX {
            if !std::mem::replace(&mut self.told.1, true) {
                self.warn(format!("there are more than {GROUPS_MAX} groups: the rest is not watched"));
            }
            return;
        }
        self.last += 1;
        let directory = self.setting.root.join(&path);
        let named = self.pods.as_ref().and_then(|pods| match &identity {
            Identity::Kubernetes { pod, id } => pods.names.of(pod, id),
            _ => None,
        });
        let group = Watched::new(&path, directory, identity, named);
        self.tell(format!("{}: found at /{path}", group.view().name));
        self.turns.join(self.last, group.estimate());
        self.groups.insert(self.last, group);
        self.keys.insert(path, self.last);
        self.published = None;
    }

    /// Reads the list of pods, if that is due.
    fn name(&mut self) {
        let Some(pods) = &mut self.pods else { return };
        let ids = self.groups.values().filter_map(|group| match group.identity() {
            Identity::Kubernetes { id, .. } => Some(id.as_str()),
            _ => None,
        });
        if !pods.refresh(ids) {
            return;
        }
        let had = std::mem::replace(&mut self.named, pods.trouble().is_none());
        let told = match pods.trouble() {
            Some(why) => Some(format!(
                "no names of pods: {why}; containers are named by their groups' paths until it is"
            )),
            None => (!had).then(|| "the list of pods can be had".to_owned()),
        };
        let is_trouble = !self.named;
        self.notices.extend(told.map(|text| Notice { text, is_trouble }));
        for group in self.groups.values_mut() {
            if let Identity::Kubernetes { pod, id } = group.identity() {
                let named = pods.names.of(pod, id).cloned();
                group.identify(named.as_ref());
            }
        }
        self.published = None;
    }

    /// Makes the steps that are due and within budget.
    fn watch(&mut self) -> Duration {
        let began = Instant::now();
        loop {
            self.account();
            if began.elapsed() >= STEP_MAX {
                return Duration::ZERO;
            }
            let Some(key) = self.turns.next() else { return self.turns.idle_for().unwrap_or(PUBLISH) };
            let Some(group) = self.groups.get_mut(&key) else {
                self.turns.leave(key);
                continue;
            };
            let before = own_cpu();
            let (was_answered, was) = (group.is_answered(), group.view().state.clone());
            let (mut stepped, imposed) = group.step(&self.setting.watch);
            let name = &group.view().name;
            let told = match &group.view().state {
                State::Blind(why) if group.view().state != was => Some((format!("not watched: {why}"), true)),
                State::Watched if !was_answered && group.is_answered() => {
                    Some(("its first curve is there".to_owned(), false))
                }
                _ => None,
            };
            let notice = |(what, is_trouble)| Notice { text: format!("{name}: {what}"), is_trouble };
            self.notices.extend(told.map(notice));
            self.imposed += imposed;
            stepped.cost = own_cpu().saturating_sub(before) + imposed;
            self.account();
            self.turns.stepped(key, stepped);
        }
    }

    fn tell(&mut self, text: String) {
        self.notices.push(Notice { text, is_trouble: false });
    }

    fn warn(&mut self, text: String) {
        self.notices.push(Notice { text, is_trouble: true });
    }

    fn account(&mut self) {
        let spent = own_cpu().saturating_sub(self.cpu_before) + self.imposed;
        self.turns.account(self.began.elapsed(), spent);
    }

    /// Makes a new page.
    pub fn publish(&mut self) {
        self.published = Some(Instant::now());
        for group in self.groups.values_mut() {
            group.refresh(&self.setting.delay);
        }
        let mut views: Vec<_> = self.groups.values().map(|group| Arc::clone(group.view())).collect();
        views.sort_by(|a, b| a.path.cmp(&b.path));
        // Prometheus rejects a page with two series of the same labels.
        let mut names = HashSet::new();
        for view in &mut views {
            if !names.insert(view.name.clone()) {
                let name = format!("{} at /{}", view.name, view.path);
                names.insert(name.clone());
                Arc::make_mut(view).name = name;
            }
        }
        let page = Page {
            groups: views,
            cpu_seconds: own_cpu().as_secs_f64(),
            imposed_seconds: self.imposed.as_secs_f64(),
            share: self.setting.share,
            turns: self.turns.begun,
            at_once: self.turns.at_once(),
            names_known: self.pods.as_ref().map(|pods| pods.trouble().is_none()),
        };
        *self.page.0.lock().unwrap_or_else(PoisonError::into_inner) = page;
    }
}

/// The CPU time of this process, including the serving threads.
fn own_cpu() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec.try_into().unwrap_or_default(), now.tv_nsec.try_into().unwrap_or_default())
}
