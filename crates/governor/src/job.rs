//! A job: its processes, its watch, its worth (the memory that it needs to run well), and its state.
//!
//! ```text
//!             start/adopt                       no process left
//! Waiting ───────────────▶ Running ⇄ Suspended ─────────────▶ Ended, or Waiting for its next start
//! ```

mod learn;

use crate::config::{CommandConfig, JobConfig, Origin, Restart};
use crate::delay::{Delay, Use};
use crate::event::Event;
use crate::freeze::Freezer;
use crate::guardian::Guardian;
use crate::members::{Census, Members, Roots};
use crate::policy::{Claim, Decision, Limit};
use crate::snapshot::{JobSnapshot, State, Untouched};
use crate::start::{self, Given};
use crate::take::{Means, Which};
use std::collections::HashMap;
use std::path::PathBuf;
use std::process::Child;
use std::time::{Duration, Instant};
use vellum_kernel::{Bytes, Pid, Used};
use vellum_reference::Watcher;
use vellum_workset::Judged;

/// The first wait before a job is started again, and the longest. The delay doubles while the job keeps
/// ending soon.
const RESTART_WAITS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];
/// A job that ran for this long did not end soon.
const RAN_LONG: Duration = Duration::from_secs(60);
/// After this many decisions in a row that reclaimed nothing from it, a job counts as not reclaimable while
/// it runs.
const ASKED_MAX: u32 = 5;
/// Less than this counts as nothing: a process's size fluctuates by as much.
const GIVEN_MIN: Bytes = Bytes(1 << 20);
/// This long after a job was emptied, it holds the memory that it needs: pages not fetched back are not
/// used.
const REFILLED: Duration = Duration::from_secs(3);
/// A job counts as emptied if this part of its worth, or less, is left when it is resumed.
const EMPTIED: f64 = 0.25;

#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) config: JobConfig,
    pub(crate) state: State,
    /// Its first process, or the last one it had.
    root: Pid,
    child: Option<Child>,
    /// Its own control group: adopted, or made for it.
    group: Option<PathBuf>,
    made: bool,
    pub(crate) members: Members,
    means: Means,
    freezer: Freezer,
    watch: Option<Watcher>,
    watch_due: Instant,
    /// True if it was watched from its start: then first references are no faults.
    from_start: bool,
    judged: Option<(Judged, &'static str)>,
    /// The limit advised, and two thirds of it, with their slowdowns.
    advised: Option<[vellum_reference::Limit; 2]>,
    /// Samples in a row that did not fit the learnt worth.
    misfits: u32,
    told: Option<(f64, &'static str)>,
    delay: Delay,
    device: Duration,
    /// The part of one processor that watching it may cost.
    idle_budget: f64,
    pub(crate) resident: Bytes,
    processes: usize,
    seen: HashMap<Pid, Used>,
    used: Used,
    rates: [f64; 2],
    /// Memory to take when the next look shows which pages are idle.
    owed: Bytes,
    pub(crate) target: Bytes,
    taken: Bytes,
    /// The number of decisions in a row that reclaimed memory, and the total reclaimed at the first.
    asked: u32,
    taken_when_asked: Bytes,
    started: Instant,
    suspended: Option<Instant>,
    /// When it was resumed with little memory left.
    emptied: Option<Instant>,
    suspended_for: Duration,
    suspended_longest: Duration,
    suspensions: u64,
    refused: bool,
    restarts: u64,
    /// When it is to be started again.
    pub(crate) restart_at: Option<Instant>,
    restart_wait: Duration,
    ended_how: Option<String>,
}

impl Job {
    /// A job that has not begun yet. `device` is S of the device, `idle_budget` the part of one processor
    /// that watching it may cost.
    pub(crate) fn new(config: JobConfig, device: Duration, idle_budget: f64) -> Job {
        let now = Instant::now();
        Job {
            config,
            state: State::Waiting,
            root: Pid(0),
            child: None,
            group: None,
            made: false,
            members: Members::new(),
            means: Means::Nothing,
            freezer: Freezer::default(),
            watch: None,
            watch_due: now,
            from_start: false,
            judged: None,
            advised: None,
            misfits: 0,
            told: None,
            delay: Delay::new(device),
            device,
            idle_budget,
            resident: Bytes(0),
            processes: 0,
            seen: HashMap::new(),
            used: Used::default(),
            rates: [0.0; 2],
            owed: Bytes(0),
            target: Bytes(0),
            taken: Bytes(0),
            asked: 0,
            taken_when_asked: Bytes(0),
            started: now,
            suspended: None,
            emptied: None,
            suspended_for: Duration::ZERO,
            suspended_longest: Duration::ZERO,
            suspensions: 0,
            refused: false,
            restarts: 0,
            restart_at: None,
            restart_wait: RESTART_WAITS[0],
            ended_how: None,
        }
    }

    /// Starts or adopts it. `given` has the group below which it gets one of its own, if it does.
    pub(crate) fn begin(&mut self, given: Given<'_>, guardian: &Guardian) -> Event {
        let job = self.config.name.clone();
        self.started = Instant::now();
        self.restarts += u64::from(self.restart_at.take().is_some());
        let origin = self.config.origin.clone();
        match &origin {
            Origin::Command(command) => self.launch(command, given, guardian),
            Origin::Pid(pid) => {
                self.root = *pid;
                self.members = Census::take(guardian.pids()).adopt(*pid);
                self.adopted(job)
            }
            Origin::Group(path) => {
                self.group = Some(path.clone());
                self.members = Census::take(guardian.pids()).members(Roots::Group(path), &Members::new());
                self.adopted(job)
            }
        }
    }

    fn adopted(&mut self, job: String) -> Event {
        if self.members.is_empty() {
            self.state = State::Ended;
            return Event::NotStarted { job, why: "there is no process to adopt any more".into() };
        }
        self.state = State::Running;
        self.means = Means::choose(self.group.as_deref());
        Event::Adopted { job, processes: self.members.len(), means: self.means.words() }
    }

    fn launch(&mut self, command: &CommandConfig, given: Given<'_>, guardian: &Guardian) -> Event {
        let job = self.config.name.clone();
        if let Some(parent) = given.group {
            let path = parent.join(format!("vellum-{job}"));
            let recorded = guardian.table().will_make(&path);
            self.made = recorded && (path.is_dir() || std::fs::create_dir(&path).is_ok());
            self.group = self.made.then_some(path);
        }
        match start::start(command, Given { group: self.group.as_deref(), ..given }) {
            Ok(child) => {
                self.root = Pid(child.id() as i32);
                self.members =
                    self.root.stat().map(|stat| (self.root, stat.started_ticks)).into_iter().collect();
                self.child = Some(child);
                (self.state, self.from_start) = (State::Running, true);
                self.means = Means::choose(self.group.as_deref());
                Event::Started { job, pid: self.root.0, means: self.means.words() }
            }
            Err(error) => {
                self.ended_how = Some(error.to_string());
                self.plan_restart(true);
                self.remove_group();
                Event::NotStarted { job, why: error.to_string() }
            }
        }
    }

    fn roots(&self) -> Roots<'_> {
        match (&self.config.origin, &self.group) {
            (_, Some(group)) => Roots::Group(group),
            (Origin::Command(_), None) => Roots::Session(self.root),
            _ => Roots::Process,
        }
    }

    pub(crate) fn is_there(&self) -> bool {
        matches!(self.state, State::Running | State::Suspended)
    }

    pub(crate) fn survey(&mut self, census: &Census, period: Duration, events: &mut Vec<Event>) {
        if !self.is_there() {
            return;
        }
        self.members = census.members(self.roots(), &self.members);
        let reaped = self.reap(census);
        self.resident = census.resident(&self.members);
        let living = |pid: &&Pid| census.stat(**pid).is_some_and(|stat| !stat.is_zombie());
        self.processes = self.members.keys().filter(living).count();
        self.account(census, period);
        // A process that ended just now may have left a child that was born after the census passed its
        // number.
        if self.processes == 0 && !reaped {
            self.end(events);
        }
    }

    /// Waits for those of its processes that have ended and are our children; whether there were any.
    fn reap(&mut self, census: &Census) -> bool {
        let (had_child, before) = (self.child.is_some(), self.members.len());
        if let Some(child) = &mut self.child
            && let Ok(Some(status)) = child.try_wait()
        {
            self.ended_how = Some(status.to_string());
            self.child = None;
            self.members.remove(&self.root);
        }
        let root = self.root;
        let ours =
            |pid: &Pid| census.stat(*pid).is_some_and(|stat| stat.is_zombie() && stat.parent == Pid::me());
        self.members.retain(|pid, _| {
            if *pid == root || !ours(pid) {
                return true;
            }
            // SAFETY: waits for a child of ours that has ended, without blocking; no memory is handed over.
            unsafe { libc::waitpid(pid.0, std::ptr::null_mut(), libc::WNOHANG) == 0 }
        });
        had_child != self.child.is_some() || before != self.members.len()
    }

    fn account(&mut self, census: &Census, period: Duration) {
        let mut gained = Used::default();
        let mut now = HashMap::with_capacity(self.members.len());
        for pid in self.members.keys() {
            let Some(stat) = census.stat(*pid) else { continue };
            // What a process used before it was first seen was used since it is governed, unless it was
            // adopted.
            let first = if self.from_start { Used::default() } else { stat.own };
            let before = self.seen.get(pid).copied().unwrap_or(first);
            gained += stat.own.since(before);
            now.insert(*pid, stat.own);
        }
        self.seen = now;
        self.used += gained;
        let seconds = period.as_secs_f64();
        if seconds > 0.0 {
            self.rates = [gained.major_faults as f64 / seconds, gained.minor_faults as f64 / seconds];
        }
        self.delay.observe(Use {
            user: gained.user,
            system: gained.cpu.saturating_sub(gained.user),
            major_faults: gained.major_faults,
        });
    }

    fn end(&mut self, events: &mut Vec<Event>) {
        let how = self.ended_how.take().unwrap_or_else(|| "its last process is gone".into());
        let failed = how != "exit status: 0";
        events.push(Event::Ended { job: self.config.name.clone(), how });
        if let Some(since) = self.suspended.take() {
            self.suspended_for += since.elapsed();
        }
        self.freezer = Freezer::default();
        (self.watch, self.judged, self.told, self.advised) = (None, None, None, None);
        self.members.clear();
        self.seen.clear();
        self.emptied = None;
        (self.resident, self.owed, self.target) = (Bytes(0), Bytes(0), Bytes(0));
        self.delay = Delay::new(self.device);
        self.remove_group();
        self.plan_restart(failed);
        if let Some(at) = self.restart_at {
            let seconds = at.saturating_duration_since(Instant::now()).as_secs_f64();
            events.push(Event::WillRestart { job: self.config.name.clone(), seconds });
        }
    }

    fn plan_restart(&mut self, failed: bool) {
        self.state = State::Ended;
        let Origin::Command(CommandConfig { restart, .. }) = &self.config.origin else { return };
        if !(*restart == Restart::Always || (*restart == Restart::OnFailure && failed)) {
            return;
        }
        self.restart_wait = match self.started.elapsed() >= RAN_LONG || self.restarts == 0 {
            true => RESTART_WAITS[0],
            false => (self.restart_wait * 2).min(RESTART_WAITS[1]),
        };
        self.restart_at = Some(Instant::now() + self.restart_wait);
        self.state = State::Waiting;
    }

    fn remove_group(&mut self) {
        if self.made
            && let Some(path) = &self.group
        {
            let _ = std::fs::remove_dir(path);
        }
    }

    pub(crate) fn claim(&self, swap: Bytes) -> Option<Claim> {
        let refilled = self.emptied.is_some_and(|at| at.elapsed() >= REFILLED);
        let worth = self.judged.map(|(judged, _)| bytes(judged.point.pages));
        let worth = worth.map(|worth| if refilled { worth.min(self.resident) } else { worth });
        self.is_there().then(|| Claim {
            priority: self.config.priority,
            resident: self.resident,
            worth,
            reclaimable: self.means.can_reclaim(swap),
            reclaimable_running: self.asked < ASKED_MAX,
        })
    }

    /// The part of the last period that it waited for faults, by their number and S.
    pub(crate) fn waits(&self) -> f64 {
        self.rates[0] * self.delay.seconds()
    }

    pub(crate) fn obey(
        &mut self,
        decision: Decision,
        limit: Limit,
        squeezed: bool,
        guardian: &Guardian,
        events: &mut Vec<Event>,
    ) {
        self.target = decision.target;
        match decision.runs {
            true => self.resume(guardian, events),
            false => self.suspend(limit, guardian, events),
        }
        match squeezed && decision.runs {
            true => self.means.soften(decision.target, guardian),
            false => self.means.harden(guardian),
        }
        if self.taken.0 - self.taken_when_asked.0 >= GIVEN_MIN.0 {
            (self.asked, self.taken_when_asked) = (0, self.taken);
        }
        self.owed = decision.take;
        let idle = self.idle();
        let due = decision.take > Bytes(0) && self.state == State::Running;
        // Where idle pages are not known yet, getting nothing does not count as an answer.
        // Only between cycles of its watch may others take the same accessed bits.
        let may_age = self.watch.as_ref().is_some_and(|watch| !watch.in_cycle());
        let known = !due || self.means.age(may_age.then_some(idle / 2), idle);
        if decision.take > Bytes(0) && known {
            self.asked += 1;
        }
        match self.means {
            _ if self.state == State::Suspended => self.reclaim(Which::All, events),
            Means::Evict(..) if !known => {}
            Means::Evict(..) | Means::Reclaim(_) => self.reclaim(Which::Idle(idle), events),
            _ => {}
        }
    }

    /// The window that it is worth, in wall-clock time at the rate at which it runs.
    fn idle(&self) -> Duration {
        let (Some(watch), Some((judged, _))) = (&self.watch, self.judged) else { return Duration::MAX };
        Duration::from_nanos((judged.point.window / watch.rate()) as u64)
    }

    /// Takes pages just after a look has shown which have been idle for at least the window at its knee.
    fn settle(&mut self, looked: Option<Duration>, events: &mut Vec<Event>) {
        let window = self.judged.map(|(judged, _)| judged.point.window);
        if let (Some(looked), Some(window)) = (looked, window)
            && looked.as_nanos() as f64 >= window
            && !matches!(self.means, Means::Evict(..))
        {
            self.reclaim(Which::Idle(looked), events);
        }
    }

    fn reclaim(&mut self, which: Which, events: &mut Vec<Event>) {
        let wanted = std::mem::take(&mut self.owed);
        if wanted == Bytes(0) {
            return;
        }
        let got = self.means.reclaim(wanted, &self.members, which);
        self.taken += got;
        self.resident = Bytes(self.resident.0.saturating_sub(got.0));
        if got > Bytes(0) {
            let (job, means) = (self.config.name.clone(), self.means.words());
            events.push(Event::Took { job, bytes: got.0, means });
        }
    }

    fn suspend(&mut self, because: Limit, guardian: &Guardian, events: &mut Vec<Event>) {
        let job = self.config.name.clone();
        let mut known = std::mem::take(&mut self.members);
        let mut freezer = std::mem::take(&mut self.freezer);
        let done = freezer.suspend(self.roots(), &mut known, guardian);
        (self.members, self.freezer) = (known, freezer);
        match done {
            Ok(_) if self.state == State::Suspended => {}
            Ok(_) => {
                (self.state, self.suspended) = (State::Suspended, Some(Instant::now()));
                (self.suspensions, self.refused) = (self.suspensions + 1, false);
                events.push(Event::Suspended { job, because });
            }
            Err(error) => {
                self.resumed();
                if !std::mem::replace(&mut self.refused, true) {
                    events.push(Event::NotSuspended { job, why: error.to_string() });
                }
            }
        }
    }

    pub(crate) fn resume(&mut self, guardian: &Guardian, events: &mut Vec<Event>) {
        self.freezer.resume(guardian);
        if let Some(after) = self.resumed() {
            events.push(Event::Resumed { job: self.config.name.clone(), after_seconds: after.as_secs_f64() });
        }
    }

    fn resumed(&mut self) -> Option<Duration> {
        if self.state == State::Suspended {
            (self.state, self.asked) = (State::Running, 0);
            let worth = self.judged.map_or(0.0, |(judged, _)| bytes(judged.point.pages).0 as f64);
            self.emptied = (self.resident.0 as f64 <= EMPTIED * worth).then(Instant::now);
        }
        let after = self.suspended.take()?.elapsed();
        self.suspended_for += after;
        self.suspended_longest = self.suspended_longest.max(after);
        Some(after)
    }

    /// Leaves it running and without any limit of ours.
    pub(crate) fn leave(&mut self, guardian: &Guardian, events: &mut Vec<Event>) {
        self.resume(guardian, events);
        self.means.harden(guardian);
        self.remove_group();
    }

    pub(crate) fn snapshot(&self, clients: usize) -> JobSnapshot {
        let suspended = self.suspended_for + self.suspended.map_or(Duration::ZERO, |since| since.elapsed());
        let latest = self.watch.as_ref().map(Watcher::latest);
        JobSnapshot {
            name: self.config.name.clone(),
            state: self.state,
            priority: self.config.priority,
            processes: if self.is_there() { self.processes } else { 0 },
            resident_bytes: self.resident.0,
            swapped_bytes: latest.map_or(0, |latest| latest.swapped.0),
            referenced_bytes: latest.map_or(0, |latest| latest.referenced.0),
            answer: self.told.filter(|(_, words)| !words.is_empty()).map(|(_, words)| words.to_owned()),
            window_seconds: self.judged.map(|(judged, _)| judged.point.window / 1e9),
            worth_bytes: self.judged.map(|(judged, _)| bytes(judged.point.pages).0),
            waiting: self.judged.map(|(judged, _)| judged.waiting),
            advised_bytes: self.advised.map(|[give, _]| give.bytes),
            slowdown_two_thirds: self.advised.map(|[_, less]| less.slowdown),
            untouched: self.watch.as_ref().map_or_else(Vec::new, untouched),
            delay_seconds: self.delay.seconds(),
            delay_measured: self.delay.is_measured(),
            target_bytes: self.target.0,
            major_faults_per_second: self.rates[0],
            minor_faults_per_second: self.rates[1],
            cpu_seconds: self.used.cpu.as_secs_f64(),
            taken_bytes: self.taken.0,
            suspensions: self.suspensions,
            suspended_seconds: suspended.as_secs_f64(),
            suspended_longest_seconds: self.suspended_longest.as_secs_f64(),
            restarts: self.restarts,
            means: self.means.words().to_owned(),
            source: self.watch.as_ref().map(|watch| watch.source().name().to_owned()),
            watch_share: self.watch.as_ref().map_or(0.0, |watch| watch.cost().share),
            clients,
        }
    }
}

fn untouched(watch: &Watcher) -> Vec<Untouched> {
    let one = |(age, bytes): (Duration, Bytes)| Untouched { seconds: age.as_secs(), bytes: bytes.0 };
    watch.untouched().map(one).collect()
}

fn bytes(pages: f64) -> Bytes {
    Bytes((pages * vellum_reference::PAGE_BYTES as f64) as u64)
}
