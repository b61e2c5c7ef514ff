//! The watched job: tracks its current processes, those that have ended, and its virtual time.
//!
//! Virtual time is the *user* CPU time of all its processes. The kernel's CPU time of a process is exact, but
//! user and system time are in clock ticks, so system time is subtracted:
//!
//! ```text
//! user = CPU clock of the process (ns) − stime (ticks)          in total off by at most one tick
//! ```
//!
//! The CPU time between the last sample of a process and its end is known when its parent has waited for it
//! (`cutime`). Without a wait, that time is lost. A parent's `cutime` contains all time of the child and of
//! the child's children, and a part of it was sampled while they ran. That part is recorded under the
//! parent's pid and subtracted when the parent has waited. If the parent ends first, the part is recorded
//! under the grandparent's pid instead.
//!
//! Invariants: the clock never runs backwards; a process is identified by its pid *and* its time of birth.
//!
//! Source: Nishigaki 1981 (see `vellum_workset`) uses processor time. Departure: the time of faults is
//! excluded.

use crate::event::Event;
use crate::target::Target;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use vellum_kernel::{Bytes, Pid, Stat};
use vellum_sys::clock::process_cpu_ns;

/// The list of processes is renewed after this much CPU time of theirs, or this much time …
const LIST_EVERY: Duration = Duration::from_millis(250);
/// … which doubles up to this while the list stays the same …
const LIST_EVERY_MAX: Duration = Duration::from_secs(2);
/// … and less often if listing takes more than this part of the time between two lists: of a job that runs,
/// and of a job that hardly runs. The last is the longest time between two lists of the latter.
const LIST_SHARE: u32 = 200;
const IDLE_LIST_SHARE: u32 = 10_000;
const IDLE_LIST_MAX: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) name: String,
    started_ticks: u64,
    stack_start: u64,
    parent: Pid,
    user: Duration,
    waited: Duration,
    minor_faults: u64,
    pub(crate) resident: Bytes,
    /// False if it cannot be inspected.
    pub(crate) open: bool,
}

#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) target: Target,
    pub(crate) members: BTreeMap<Pid, Member>,
    /// By parents' numbers: time of children that are gone, which was counted and will come to light again.
    owed: BTreeMap<Pid, Duration>,
    /// When, and at what virtual time, the list was made.
    listed: Option<(Instant, Duration)>,
    list_every: Duration,
    /// The least time between two lists, by the cost of the last.
    list_least: Duration,
    pub(crate) clock: Duration,
    pub(crate) minor_faults: u64,
    /// The sum of all growth of resident memory, from look to look.
    pub(crate) grown: Bytes,
    pub(crate) resident: Bytes,
    first: bool,
}

impl Job {
    pub(crate) fn new(target: Target) -> Job {
        Job {
            target,
            members: BTreeMap::new(),
            owed: BTreeMap::new(),
            listed: None,
            list_every: LIST_EVERY,
            list_least: Duration::ZERO,
            clock: Duration::ZERO,
            minor_faults: 0,
            grown: Bytes(0),
            resident: Bytes(0),
            first: true,
        }
    }

    /// The process cannot be looked into: it is left out from now on.
    pub(crate) fn shut(&mut self, pid: Pid) {
        if let Some(member) = self.members.get_mut(&pid) {
            member.open = false;
        }
    }

    /// Samples the processes, and renews the list if that is due or `list` asks for it.
    pub(crate) fn update(&mut self, list: bool) -> Vec<Event> {
        let mut events = Vec::new();
        let mut gained = Duration::ZERO;
        let mut waited: Vec<(Pid, Duration)> = Vec::new();
        let due = self.listed.is_none_or(|(listed, clock)| {
            let passed = listed.elapsed();
            let busy = self.clock.saturating_sub(clock) >= LIST_EVERY;
            passed >= self.list_least && (busy || passed >= self.list_every)
        });
        let joined: Vec<Pid> = if list || due { self.list() } else { Vec::new() };
        let mut gone = Vec::new();
        for (&pid, member) in &mut self.members {
            match reading(pid).filter(|(stat, _)| stat.started_ticks == member.started_ticks) {
                None => gone.push(pid),
                Some((stat, user)) => {
                    gained += user.saturating_sub(member.user);
                    member.user = member.user.max(user);
                    waited.push((pid, stat.waited.user.saturating_sub(member.waited)));
                    member.waited = member.waited.max(stat.waited.user);
                    member.parent = stat.parent;
                    self.minor_faults += stat.own.minor_faults.saturating_sub(member.minor_faults);
                    member.minor_faults = stat.own.minor_faults;
                    member.resident = stat.resident;
                    if member.executed(&stat) {
                        events.push(Event::Executed { pid, name: stat.comm });
                    }
                }
            }
        }
        for pid in gone {
            if let Some(member) = self.members.remove(&pid) {
                let owed = member.user + member.waited + self.owed.remove(&pid).unwrap_or_default();
                *self.owed.entry(member.parent).or_default() += owed;
                // Where one went, others may come.
                self.list_every = LIST_EVERY;
                events.push(Event::Left { pid, name: member.name });
            }
        }
        for pid in joined {
            let Some((stat, user)) = reading(pid) else { continue };
            // Time before the watch is left out; a process that began during it counts from its birth.
            if !self.first {
                gained += user + stat.waited.user;
                self.minor_faults += stat.own.minor_faults;
            }
            events.push(Event::Joined { pid, name: stat.comm.clone() });
            self.members.insert(pid, Member::new(&stat, user));
        }
        let resident: Bytes = self.members.values().map(|member| member.resident).sum();
        if !self.first {
            self.grown += Bytes(resident.0.saturating_sub(self.resident.0));
        }
        self.resident = resident;
        self.first = false;
        for (pid, grown) in waited {
            let owed = self.owed.entry(pid).or_default();
            let paid = grown.min(*owed);
            *owed -= paid;
            gained += grown - paid;
        }
        // Nobody outside the job tells when it has waited.
        self.owed.retain(|pid, owed| self.members.contains_key(pid) && *owed > Duration::ZERO);
        self.clock += gained;
        events
    }

    fn list(&mut self) -> Vec<Pid> {
        let began = Instant::now();
        let listed = self.target.members(self.members.keys().copied());
        let cost = began.elapsed();
        self.listed = Some((began, self.clock));
        // The watcher is of no job: its references would be those of the watch.
        let new: Vec<Pid> =
            listed.into_iter().filter(|pid| *pid != Pid::me() && !self.members.contains_key(pid)).collect();
        self.list_least = cost * LIST_SHARE;
        self.list_every = spacing(self.list_every, new.is_empty(), cost);
        new
    }
}

/// The most time until the next list, after `before` until this one, which took `cost`.
fn spacing(before: Duration, is_same: bool, cost: Duration) -> Duration {
    let every = if is_same { (before * 2).min(LIST_EVERY_MAX) } else { LIST_EVERY };
    every.max((cost * IDLE_LIST_SHARE).min(IDLE_LIST_MAX))
}

impl Member {
    fn new(stat: &Stat, user: Duration) -> Member {
        Member {
            name: stat.comm.clone(),
            started_ticks: stat.started_ticks,
            stack_start: stat.stack_start,
            parent: stat.parent,
            user,
            waited: stat.waited.user,
            minor_faults: stat.own.minor_faults,
            resident: stat.resident,
            open: true,
        }
    }

    /// True if it runs another program than at the last look. An ending process reads 0 for a moment: that
    /// is no other program, and neither is a value after an unknown one.
    fn executed(&mut self, now: &Stat) -> bool {
        let before = match now.stack_start {
            0 => return false,
            known => std::mem::replace(&mut self.stack_start, known),
        };
        self.name.clone_from(&now.comm);
        before != 0 && before != now.stack_start
    }
}

fn reading(pid: Pid) -> Option<(Stat, Duration)> {
    let stat = pid.stat().filter(|stat| !stat.is_zombie())?;
    let system = stat.own.cpu.saturating_sub(stat.own.user);
    let user =
        process_cpu_ns(pid.0).map_or(stat.own.user, |cpu| Duration::from_nanos(cpu).saturating_sub(system));
    Some((stat, user))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::process::{Child, Command, Stdio};

    #[test]
    fn the_end_of_a_process_is_no_other_program() {
        let mut stat = Pid::me().stat().unwrap();
        stat.stack_start = 0x7ffd_0000;
        let mut member = Member::new(&stat, Duration::ZERO);
        assert!(!member.executed(&stat));
        let ending = Stat { stack_start: 0, ..stat.clone() };
        assert!(!member.executed(&ending), "its memory is gone, and no other has come");
        assert!(!member.executed(&stat), "nor is the same one another");
        assert!(member.executed(&Stat { stack_start: 0x7ffd_1000, comm: "b".into(), ..stat.clone() }));
        assert_eq!(member.name, "b");
        let mut unknown = Member::new(&ending, Duration::ZERO);
        assert!(!unknown.executed(&stat), "it was unknown before");
        assert!(unknown.executed(&Stat { stack_start: 0x7ffd_2000, ..stat }));
    }

    #[test]
    fn the_list_of_a_job_that_stays_the_same_is_made_less_often() {
        let ms = Duration::from_millis;
        let same = |before, cost| spacing(before, true, cost);
        assert_eq!(same(LIST_EVERY, Duration::ZERO), LIST_EVERY * 2);
        assert_eq!(same(ms(1500), Duration::ZERO), LIST_EVERY_MAX);
        assert_eq!(spacing(LIST_EVERY_MAX, false, Duration::ZERO), LIST_EVERY);
        // What takes long is seldom listed, and never more seldom than that.
        assert_eq!((same(LIST_EVERY, ms(1) / 2), same(LIST_EVERY, ms(40))), (ms(5000), IDLE_LIST_MAX));
        assert_eq!(spacing(LIST_EVERY, false, ms(1) / 2), ms(5000));

        let mut child = shell("echo here; read go; sleep 300 & echo up; wait");
        // A process has the name of its program a moment after it was started.
        wait_for(&mut child, "here\n");
        let mut job = Job::new(Target::process(Pid(child.id() as i32)).unwrap());
        assert_eq!(job.update(true).len(), 1);
        (0..4).for_each(|_| assert_eq!(job.update(true), []));
        assert!(job.list_every >= LIST_EVERY_MAX, "{:?}", job.list_every);
        child.stdin.take().unwrap().write_all(b"go\n").unwrap();
        wait_for(&mut child, "up\n");
        let joined = job.update(true);
        let Some(Event::Joined { pid, .. }) = joined.first() else { panic!("{joined:?}") };
        let sleeping = rustix::process::Pid::from_raw(pid.0).unwrap();
        rustix::process::kill_process(sleeping, rustix::process::Signal::KILL).unwrap();
        child.wait().unwrap();
    }

    fn shell(script: &str) -> Child {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
    }

    fn wait_for(child: &mut Child, word: &str) {
        let out = child.stdout.as_mut().unwrap();
        let mut seen = String::new();
        let mut byte = [0];
        while !seen.ends_with(word) {
            assert_eq!(out.read(&mut byte).unwrap(), 1, "ended after {seen:?}");
            seen.push(byte[0] as char);
        }
    }

    #[test]
    fn time_that_comes_to_light_again_counts_once() {
        // The innermost works and is seen to; then each level in turn has waited for the one below.
        let script = "sh -c 'sh -c \"i=0; while [ \\$i -lt 400000 ]; do i=\\$((i+1)); done; echo inner; read go\"; \
            echo middle; read go'; echo outer; read go";
        let mut child = shell(script);
        let mut input = child.stdin.take().unwrap();
        let mut job = Job::new(Target::process(Pid(child.id() as i32)).unwrap());
        job.update(true);
        wait_for(&mut child, "inner\n");
        job.update(true);
        let worked = job.clock;
        for word in ["middle\n", "outer\n"] {
            input.write_all(b"go\n").unwrap();
            wait_for(&mut child, word);
            job.update(true);
        }
        let counted = job.clock;
        drop(input);
        child.wait().unwrap();
        // Starting the shells takes some milliseconds; work that counts again takes as long as it did.
        assert!(worked > Duration::from_millis(40), "400,000 rounds took {worked:?}");
        assert!(counted < worked + worked / 2, "{worked:?} of work came to {counted:?}");
    }

    #[test]
    fn joins_execs_and_ends_are_events_and_time_runs_forwards() {
        let script = "echo up; read go; i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo did; read go; \
            exec sh -c 'echo other; read go'";
        let mut child = shell(script);
        let pid = Pid(child.id() as i32);
        wait_for(&mut child, "up\n");
        let mut job = Job::new(Target::process(pid).unwrap());
        let events = job.update(true);
        assert_eq!(events, [Event::Joined { pid, name: "sh".into() }]);
        assert_eq!(job.clock, Duration::ZERO, "what was before the watch does not count");
        let mut input = child.stdin.take().unwrap();
        input.write_all(b"go\n").unwrap();
        wait_for(&mut child, "did\n");
        assert_eq!(job.update(true), []);
        let counted = job.clock;
        assert!(counted > Duration::from_millis(10), "200,000 rounds took {counted:?}");
        input.write_all(b"go\n").unwrap();
        wait_for(&mut child, "other\n");
        assert!(job.update(true).iter().any(|event| matches!(event, Event::Executed { .. })));
        drop(input);
        child.wait().unwrap();
        assert_eq!(job.update(false), [Event::Left { pid, name: "sh".into() }]);
        assert!(job.members.is_empty() && job.clock >= counted);
    }
}
