//! The governor and a step of its loop: watch jobs, decide, act, publish.
//!
//! ```text
//!      ┌── watch ── count each job's references, when that is due ───────────┐
//! step ┤                                                                     ├─▶ events
//!      └── each period: census ─ claims ─▶ Policy ─▶ obey ─ publish ─────────┘
//! ```
//!
//! *Census*: find each job's processes. *Claims*: the memory that each job needs. *Obey*: reclaim, suspend,
//! resume. The caller's loop is: `step`, then sleep for the returned time. Only `step` suspends jobs and
//! reclaims memory.
//!
//! Invariants: no job is touched before the job table is checked and the sockets and guardians exist. When a
//! governor is dropped, every job runs unlimited.

use crate::advice::{self, AdviceServer, JobAdvice};
use crate::config::{Config, Origin};
use crate::event::Event;
use crate::exposition::MetricsError;
use crate::guardian::{Guardian, GuardianError};
use crate::job::Job;
use crate::machine::Machine;
use crate::members::Census;
use crate::metrics::MetricsServer;
use crate::place::{Place, PlaceError};
use crate::policy::{Decided, Policy, Situation};
use crate::record::Recovered;
use crate::snapshot::{SCHEMA, Snapshot, State};
use crate::start::Given;
use crate::state_socket::StateServer;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use vellum_kernel::{Bytes, Pid};
use vellum_wire::advice::Urgency;

const WAIT_MAX: Duration = Duration::from_millis(500);

/// There is no governor, and no job was touched.
#[derive(Debug, thiserror::Error)]
pub enum GovernError {
    /// There is no guardian.
    #[error(transparent)]
    Guardian(#[from] GuardianError),
    /// There is no place for the sockets.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// Metrics cannot be served.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    /// A job is to run on Vellum's memory, and the library was not found.
    #[error(
        "job {0}: runtime: the library libvellum.so was not found; name it with --lib, or leave runtime out"
    )]
    NoLibrary(String),
    /// The governor would suspend itself.
    #[error("job {0}: the governor itself is part of it; start the governor from outside of it")]
    Itself(String),
}

/// The settings of a governor beside the table.
#[derive(Debug, Clone, Default)]
pub struct Setting {
    /// Vellum's library, for jobs that run on it.
    pub library: Option<PathBuf>,
    /// S of the paging device, if it was measured.
    pub device_delay: Option<Duration>,
}

/// The result of a step.
#[derive(Debug, Default)]
pub struct Step {
    /// The events, in order.
    pub events: Vec<Event>,
    /// For how long nothing needs to be done; `None` when every job is over.
    pub wait: Option<Duration>,
}

/// S of a device that was not measured: a page read from a fast disk.
pub const DEVICE_DELAY: Duration = Duration::from_micros(100);

/// The part of one processor that watching all jobs may cost, beside what they use.
const IDLE_BUDGET_OF_ALL: f64 = 0.01;

/// Jobs, governed.
#[derive(Debug)]
pub struct Governor {
    config: Config,
    setting: Setting,
    jobs: Vec<Job>,
    policy: Policy,
    machine: Machine,
    guardian: Guardian,
    began: Instant,
    decided_at: Option<Instant>,
    /// When the next suspended job has to be resumed.
    decide_by: Option<Instant>,
    /// Leftovers of an earlier governor, until they are reported.
    recovered: Recovered,
    braked: bool,
    guarded: bool,
    snapshot: Arc<Snapshot>,
    metrics: Option<MetricsServer>,
    advice: AdviceServer,
    states: StateServer,
    /// Removed last: the servers use its files.
    place: Place,
    stopped: bool,
}

impl Governor {
    /// Makes everything ready. No job is touched before the first [`step`](Self::step).
    pub fn new(config: Config, setting: Setting) -> Result<Governor, GovernError> {
        for job in &config.jobs {
            check(job, setting.library.as_deref())?;
        }
        // Descendants whose parent ends come to us, so that they are waited for. Refused only by filters;
        // then they go elsewhere.
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        let place = Place::make(config.directory.as_deref())?;
        let others = config
            .jobs
            .iter()
            .any(|job| matches!(&job.origin, Origin::Command(command) if command.user.is_some()));
        let advice = AdviceServer::start(&place, others || rustix::process::geteuid().is_root())?;
        let states = StateServer::start(&place)?;
        // Not before the sockets are ours: then no other governor uses the record.
        let (guardian, recovered) = Guardian::start(&place.path)?;
        let metrics = config.metrics.map(MetricsServer::start).transpose()?;
        let device = setting.device_delay.unwrap_or(DEVICE_DELAY);
        let idle = vellum_reference::IDLE_BUDGET.min(IDLE_BUDGET_OF_ALL / config.jobs.len().max(1) as f64);
        Ok(Governor {
            jobs: config.jobs.iter().map(|job| Job::new(job.clone(), device, idle)).collect(),
            policy: Policy::new(config.brake, config.turn, config.longest_suspension),
            machine: Machine::discover(),
            guardian,
            began: Instant::now(),
            decided_at: None,
            decide_by: None,
            recovered,
            braked: false,
            guarded: true,
            snapshot: Arc::default(),
            metrics,
            advice,
            states,
            place,
            stopped: false,
            config,
            setting,
        })
    }

    /// Does all due work.
    pub fn step(&mut self) -> Step {
        let mut events = Vec::new();
        let now = Instant::now();
        if self.recovered.processes + self.recovered.files + self.recovered.groups > 0 {
            let Recovered { processes, files, groups, .. } = std::mem::take(&mut self.recovered);
            events.push(Event::Recovered { processes, files, groups });
        }
        if self.guardian.beat() {
            events.push(Event::Guardian {
                what: "every job was resumed, since the governor was silent for too long",
            });
            self.jobs.iter_mut().for_each(|job| job.resume(&self.guardian, &mut events));
        }
        self.begin_jobs(now, &mut events);
        let watched: Vec<Instant> =
            self.jobs.iter_mut().filter_map(|job| job.watch(now, &mut events)).collect();
        let now = Instant::now();
        let due = self.decided_at.is_none_or(|at| now.duration_since(at) >= self.config.period);
        if due || self.decide_by.is_some_and(|by| by <= now) {
            self.decide(now, &mut events);
        }
        let over = self.jobs.iter().all(|job| job.state == State::Ended);
        let next = self.decided_at.map_or(now, |at| at + self.config.period);
        let starts = self.jobs.iter().filter_map(|job| job.restart_at);
        let next = starts.chain(watched).chain(self.decide_by).fold(next, Instant::min);
        let wait = next.saturating_duration_since(Instant::now()).min(WAIT_MAX);
        Step { events, wait: (!over).then_some(wait) }
    }

    /// The state after the last decision.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Time since the governor began.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// The directory of the sockets.
    pub fn place(&self) -> &Path {
        &self.place.path
    }

    /// The address of the metrics.
    pub fn metrics(&self) -> Option<std::net::SocketAddr> {
        self.metrics.as_ref().map(MetricsServer::address)
    }

    /// Leaves every job running, without any limit of ours.
    pub fn stop(mut self) -> Vec<Event> {
        self.leave()
    }

    fn leave(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        if !std::mem::replace(&mut self.stopped, true) {
            self.jobs.iter_mut().for_each(|job| job.leave(&self.guardian, &mut events));
            events.push(Event::Stopped { running: self.jobs.iter().filter(|job| job.is_there()).count() });
        }
        events
    }

    fn begin_jobs(&mut self, now: Instant, events: &mut Vec<Event>) {
        let first = self.decided_at.is_none();
        let advice = self.place.advice();
        let (library, group) = (self.setting.library.as_deref(), self.config.groups.as_deref());
        let given = Given { advice: Some(&advice), library, group };
        for job in &mut self.jobs {
            if first || job.restart_at.is_some_and(|at| at <= now) {
                events.push(job.begin(given, &self.guardian));
            }
        }
    }

    fn decide(&mut self, now: Instant, events: &mut Vec<Event>) {
        let period = self.decided_at.map_or(Duration::ZERO, |at| now.duration_since(at));
        self.decided_at = Some(now);
        self.mind_guardian(events);
        let census = Census::take(self.guardian.pids());
        self.jobs.iter_mut().for_each(|job| job.survey(&census, period, events));
        let memory = self.machine.memory();
        let swap = memory.swap_free;
        let claims: Vec<_> = self.jobs.iter().map(|job| job.claim(swap)).collect();
        let stalled = self.machine.stalled();
        let situation = Situation {
            now: now.duration_since(self.began),
            budget: self.config.budget.of(memory.total),
            available: memory.available,
            reserve: memory.reserve(),
            stalled: stalled.unwrap_or(0.0),
            waited: self.jobs.iter().map(Job::waits).sum(),
        };
        let decided = self.policy.decide(&situation, &claims);
        self.tell_brake(&decided, &situation, events);
        self.decide_by = decided.within.map(|within| now + within);
        // Those that have waited for as long as any may, which taking memory would delay. Then those that are
        // to stop: the others wait for their memory.
        for turn in [(true, true), (false, false), (true, false)] {
            for (job, decision) in self.jobs.iter_mut().zip(&decided.jobs) {
                if let Some(decision) = decision.filter(|decision| (decision.runs, decision.due) == turn) {
                    job.obey(decision, decided.limit, decided.squeezed, &self.guardian, events);
                }
            }
        }
        self.publish(&decided, &situation, stalled, swap);
    }

    /// Without a guardian nothing may be suspended: everything is resumed, and another one started.
    fn mind_guardian(&mut self, events: &mut Vec<Event>) {
        if self.guardian.is_alive() {
            return;
        }
        self.jobs.iter_mut().for_each(|job| job.leave(&self.guardian, events));
        let what = match self.guardian.start_again() {
            Ok(()) => "it had ended; every job was resumed, and there is another one",
            Err(_) => "it has ended, and another cannot be started; nothing is suspended",
        };
        let guarded = self.guardian.is_alive();
        if guarded || std::mem::replace(&mut self.guarded, false) {
            events.push(Event::Guardian { what });
        }
        self.guarded = guarded;
    }

    fn tell_brake(&mut self, decided: &Decided, situation: &Situation, events: &mut Vec<Event>) {
        if decided.braked != self.braked {
            events.push(if decided.braked {
                Event::Brake { stalled: situation.stalled }
            } else {
                Event::Calm
            });
        }
        self.braked = decided.braked;
    }

    fn publish(&mut self, decided: &Decided, situation: &Situation, stalled: Option<f64>, swap: Bytes) {
        let heard = self.advice.publish(self.jobs.iter().map(|job| JobAdvice {
            members: job.members.keys().copied().collect(),
            target: job.target,
            resident: job.resident,
            urgency: match job.state {
                State::Suspended => Urgency::Now,
                _ if decided.squeezed => Urgency::Soon,
                _ => Urgency::None,
            },
            valid: self.config.period * advice::VALID_PERIODS,
        }));
        let heard = heard.into_iter().chain(std::iter::repeat(0));
        let jobs: Vec<_> = self.jobs.iter().zip(heard).map(|(job, heard)| job.snapshot(heard)).collect();
        let own = Pid::me().stat();
        self.snapshot = Arc::new(Snapshot {
            schema: SCHEMA.to_owned(),
            at_seconds: situation.now.as_secs_f64(),
            budget_bytes: situation.budget.0,
            effective_budget_bytes: decided.budget.0,
            resident_bytes: jobs.iter().map(|job| job.resident_bytes).sum(),
            available_bytes: situation.available.0,
            swap_free_bytes: swap.0,
            squeezed: decided.squeezed,
            braked: decided.braked,
            limit: decided.limit,
            stalled,
            cpu_seconds: own.map_or(0.0, |stat| stat.own.cpu.as_secs_f64()),
            jobs,
        });
        self.states.publish(&self.snapshot);
        if let Some(metrics) = &self.metrics {
            metrics.publish(&self.snapshot);
        }
    }
}

impl Drop for Governor {
    fn drop(&mut self) {
        self.leave();
    }
}

fn check(job: &crate::config::JobConfig, library: Option<&Path>) -> Result<(), GovernError> {
    let itself = match &job.origin {
        Origin::Command(command) if command.runtime && library.is_none() => {
            return Err(GovernError::NoLibrary(job.name.clone()));
        }
        Origin::Command(_) => false,
        Origin::Pid(pid) => *pid == Pid::me(),
        Origin::Group(path) => crate::members::in_group(path).contains(&Pid::me()),
    };
    if itself { Err(GovernError::Itself(job.name.clone())) } else { Ok(()) }
}
