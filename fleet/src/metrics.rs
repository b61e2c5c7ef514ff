//! Renders the agent's page as metrics. A metric with the same name as one of `vellum-governor` has the same
//! meaning ([`vellum_governor::families`]).
//!
//! Every series of a cgroup has the label `name`, which is unique, and labels of its owner: `namespace`,
//! `pod`, `container`; `unit`; `slurm_job`, `slurm_step`. Only `vellum_job_info` has the path and the kind as
//! labels: a path is long, and would be repeated in fifty series for each cgroup.

use crate::group::Identity;
use crate::view::{Page, State, View};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use vellum_governor::families::Quantity::{Bytes, Number, Ratio, Seconds};
use vellum_governor::families::{self, Family, NAME, SECONDS};
use vellum_kernel::{Kills, Stalled, Stalls};
use vellum_reference::Window;

const OWN_CPU: Family = Family::counter("agent_cpu", Seconds, "The agent's own CPU time");
const IMPOSED: Family =
    Family::counter("agent_imposed", Seconds, "CPU time that jobs lost by being watched, by count of pages");
const SHARE: Family = Family::gauge("agent_share", Ratio, "What both may be together, of one processor");
const GROUPS: Family = Family::gauge("agent_groups", Number, "Groups that hold a job, by kind");
const TURNS: Family = Family::counter("agent_turns", Number, "Cycles begun");
const RUNNING: Family = Family::gauge("agent_running", Number, "Groups that have a cycle under way");
const DUE: Family = Family::gauge("agent_due", Number, "Groups that are due and wait for a turn");
const NAMES: Family =
    Family::gauge("agent_names_known", Number, "Whether the list of pods is up to date, where there is one");
const PRESSURE: Family = Family::counter(
    "pressure",
    Seconds,
    "Time that some task, or every task, of the machine stalled on memory",
);
const INFO: Family = Family::gauge("job_info", Number, "1, with the kind and the path of the job's group");
pub(crate) const BY_AGE: Family = Family::gauge(
    "job_advised_by_age",
    Bytes,
    "Recommended memory limit by age: the bytes touched in the longest watched age, at least a minute",
);
pub(crate) const CURVE: Family =
    Family::gauge("job_curve", Bytes, "Its working set at this window, in user CPU time");
pub(crate) const CURVE_FAULTS: Family = Family::gauge(
    "job_curve_fault_rate",
    Number,
    "Pages that it would lack for each second of user CPU time with no more than that",
);
pub(crate) const CLOCK: Family =
    Family::counter("job_watched_cpu", Seconds, "Its user CPU time since it is watched");
const FIRST_CURVE: Family =
    Family::gauge("job_first_curve", Seconds, "Time from its discovery to its first curve");
const WATCH_STATE: Family = Family::gauge("job_watch_state", Number, "1 for the state that its watch is in");
const CHARGED: Family = Family::gauge("job_charged", Bytes, "What the kernel charges its group");
pub(crate) const LIMIT: Family =
    Family::gauge("job_limit", Bytes, "The hard limit of its group, where there is one");
const OOM_KILLS: Family = Family::counter(
    "job_oom_kills",
    Number,
    "Processes of its group that the kernel killed because memory was short",
);
pub(crate) const OOM_LIMIT: Family = Family::gauge(
    "job_oom_limit",
    Bytes,
    "Its hard limit, where it, or the container before it, was killed because that was too little",
);
pub(crate) const JOB_PRESSURE: Family = Family::counter(
    "job_pressure",
    Seconds,
    "Time that some task, or every task, of the job stalled on memory",
);

/// The page in Prometheus' older text format. The older format treats everything new in OpenMetrics as a
/// comment, except for the type `info`.
pub(crate) fn text_file(page: &str) -> String {
    let of_info = |line: &str| line.starts_with("# TYPE ") && line.ends_with(" info");
    page.split_inclusive('\n').filter(|line| !of_info(line.trim_end())).collect()
}

type Text = Cow<'static, str>;
type Labels = Vec<(&'static str, Text)>;

impl Collector for Page {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let to = &mut encoder;
        families::build_info(to)?;
        OWN_CPU.one(to, self.cpu_seconds)?;
        IMPOSED.one(to, self.imposed_seconds)?;
        SHARE.one(to, self.share)?;
        let of_kind = |kind| self.groups.iter().filter(|view| view.kind == kind).count();
        GROUPS.rows(to, Identity::KINDS.map(|kind| ([("kind", kind)], of_kind(kind) as f64)))?;
        TURNS.one(to, self.turns as f64)?;
        RUNNING.one(to, self.at_once[0] as f64)?;
        DUE.one(to, self.at_once[1] as f64)?;
        if let Some(known) = self.names_known {
            NAMES.one(to, f64::from(u8::from(known)))?;
        }
        PRESSURE
            .rows(to, stalls(Stalls::read(Stalls::MEMORY)).map(|(kind, time)| ([("stall", kind)], time)))?;
        self.of_watches(to)?;
        self.of_account(to)
    }
}

impl Page {
    fn of_watches(&self, to: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let info = |view: &Arc<View>| {
            let mut labels = with(view, "kind", view.kind.into());
            labels.push(("cgroup", format!("/{}", view.path).into()));
            (labels, 1.0)
        };
        INFO.rows(to, self.groups.iter().map(info))?;
        self.each_of(to, WATCH_STATE, "state", |view| {
            State::WORDS.map(|word| (word.into(), f64::from(u8::from(view.state.word() == word))))
        })?;
        let size = |bytes: Option<u64>| bytes.map(|bytes| bytes as f64);
        self.each(to, families::RESIDENT, |view| watched(view, view.resident_bytes as f64))?;
        self.each(to, families::SWAPPED, |view| watched(view, view.swapped_bytes as f64))?;
        self.each(to, families::WORTH, |view| size(view.worth_bytes))?;
        self.each(to, families::ADVISED, |view| size(view.advised_bytes))?;
        self.each(to, BY_AGE, |view| size(view.advised_by_age_bytes))?;
        self.each(to, families::SLOWDOWN_TWO_THIRDS, |view| view.slowdown_two_thirds)?;
        self.each_of(to, families::UNTOUCHED, SECONDS, |view| {
            view.untouched.iter().map(|(age, bytes)| (age.to_string().into(), *bytes as f64))
        })?;
        // In seconds, with as few digits as are exact: "0.1", "204.8".
        let window = |point: &Window| ((point.window_ns as f64 / 1e6).round() / 1e3).to_string().into();
        self.each_of(to, CURVE, "window", |view| {
            view.curve.iter().map(|point| (window(point), point.bytes as f64))
        })?;
        self.each_of(to, CURVE_FAULTS, "window", |view| {
            view.curve.iter().map(|point| (window(point), point.faults_per_second))
        })?;
        self.each(to, families::WINDOW, |view| view.window_seconds)?;
        self.each(to, families::WAITING, |view| view.waiting)?;
        self.each(to, families::WATCH_COST, |view| watched(view, view.watch_share))?;
        self.each(to, CLOCK, |view| watched(view, view.clock_seconds))?;
        self.each(to, families::PROCESSES, |view| watched(view, view.processes as f64))?;
        self.each(to, FIRST_CURVE, |view| view.first_curve_seconds)
    }

    /// The kernel's counters of each group.
    fn of_account(&self, to: &mut DescriptorEncoder<'_>) -> fmt::Result {
        self.each(to, CHARGED, |view| Some(view.group().charged().ok()?.0 as f64))?;
        self.each(to, LIMIT, |view| view.group().limit().map(|bytes| bytes.0 as f64))?;
        self.each(to, OOM_KILLS, |view| view.group().kills().map(|kills| kills.count as f64))?;
        self.each(to, OOM_LIMIT, oom_limit)?;
        self.each_of(to, JOB_PRESSURE, "stall", |view| {
            stalls(view.group().pressure()).map(|(kind, time)| (kind.into(), time))
        })
    }

    /// Writes a row for each group with a value.
    fn each(
        &self,
        to: &mut DescriptorEncoder<'_>,
        family: Family,
        value: impl Fn(&View) -> Option<f64>,
    ) -> fmt::Result {
        let row = |view: &Arc<View>| value(view).map(|value| (labels(view), value));
        family.rows(to, self.groups.iter().filter_map(row))
    }

    /// Writes a row for each value of each group, with this label.
    fn each_of<'a, V: IntoIterator<Item = (Text, f64)>>(
        &'a self,
        to: &mut DescriptorEncoder<'_>,
        family: Family,
        key: &'static str,
        values: impl Fn(&'a View) -> V,
    ) -> fmt::Result {
        let of = |view: &'a Arc<View>| {
            values(view).into_iter().map(|(text, value)| (with(view, key, text), value))
        };
        family.rows(to, self.groups.iter().flat_map(of))
    }
}

/// A value that exists only while the group is watched.
fn watched(view: &View, value: f64) -> Option<f64> {
    (view.state == State::Watched).then_some(value)
}

fn labels(view: &View) -> Labels {
    let own = view.labels.iter().map(|(key, value)| (*key, value.clone().into()));
    std::iter::once((NAME, view.name.clone().into())).chain(own).collect()
}

fn with(view: &View, key: &'static str, value: Text) -> Labels {
    let mut labels = labels(view);
    labels.push((key, value));
    labels
}

/// The hard limit, if that was too little.
fn oom_limit(view: &View) -> Option<f64> {
    let by_limit = |kills: Kills| kills.count > 0 && kills.reached_limit;
    let group = view.group();
    let was_short = view.was_oom_killed || group.kills().is_some_and(by_limit);
    group.limit().filter(|_| was_short).map(|limit| limit.0 as f64)
}

/// The sums of an account of stalls: of some task, and of all.
fn stalls(account: Option<Stalls>) -> impl Iterator<Item = (&'static str, f64)> {
    let of = |kind, stalled: Stalled| (kind, stalled.total.as_secs_f64());
    let some = account.map(|account| of("some", account.some));
    some.into_iter().chain(account.and_then(|account| account.full).map(|full| of("full", full)))
}

#[cfg(test)]
mod tests;
