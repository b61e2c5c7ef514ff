//! Tests of the governor with real processes that fork, end, refuse to end, or grow; also of the
//! governor's end.
//!
//! Jobs are shells. No test depends on how long something takes: deadlines only turn a hang into a failure.

use std::path::Path;
use std::time::{Duration, Instant};
use vellum_governor::{Config, Event, Governor, Setting, Snapshot, State};

/// A hang is one after this; the machine may be an emulated one.
pub(crate) const PATIENCE: Duration = Duration::from_secs(240);

/// A governor and what it has said; its jobs end with it.
pub(crate) struct Set {
    governor: Option<Governor>,
    folder: tempfile::TempDir,
    pub(crate) events: Vec<Event>,
}

/// A governor of `jobs`, with `head` in its table.
pub(crate) fn set(head: &str, jobs: &[(&str, &str, &str)]) -> Set {
    let mut table = format!("period = \"100 ms\"\n{head}\n");
    for (name, script, more) in jobs {
        table += &format!("[[job]]\nname = \"{name}\"\ncommand = [\"sh\", \"-c\", {script:?}]\n{more}\n");
    }
    Set::of(&table)
}

impl Set {
    /// A governor of this table, behind its first lines.
    pub(crate) fn of(table: &str) -> Set {
        let folder = tempfile::tempdir().unwrap();
        let table = format!("[governor]\nsockets = \"s\"\nturn = \"1 s\"\n{table}");
        let config = Config::parse(&table, Path::new("test.toml"), folder.path()).expect("a good table");
        let governor = Governor::new(config, Setting::default()).expect("a governor");
        Set { governor: Some(governor), folder, events: Vec::new() }
    }

    pub(crate) fn governor(&mut self) -> &mut Governor {
        self.governor.as_mut().unwrap()
    }

    pub(crate) fn snapshot(&self) -> &Snapshot {
        self.governor.as_ref().unwrap().snapshot()
    }

    /// Steps until `done`.
    pub(crate) fn until(&mut self, what: &str, mut done: impl FnMut(&Set) -> bool) {
        let began = Instant::now();
        while !done(self) {
            assert!(began.elapsed() < PATIENCE, "{what}: it does not happen; events: {:#?}", self.events);
            let step = self.governor().step();
            step.events.iter().for_each(|event| eprintln!("{event}"));
            self.events.extend(step.events);
            std::thread::sleep(step.wait.unwrap_or(Duration::from_millis(20)));
        }
    }

    fn states(&self) -> Vec<State> {
        self.snapshot().jobs.iter().map(|job| job.state).collect()
    }

    fn pid(&self, name: &str) -> i32 {
        let started = self.events.iter().rev().find_map(|event| match event {
            Event::Started { job, pid, .. } if job == name => Some(*pid),
            _ => None,
        });
        started.expect("it was started")
    }

    fn count(&self, is: impl Fn(&Event) -> bool) -> usize {
        self.events.iter().filter(|event| is(event)).count()
    }

    /// True if the job was suspended.
    pub(crate) fn suspended(&self, name: &str) -> bool {
        self.count(|event| matches!(event, Event::Suspended { job, .. } if job == name)) > 0
    }

    /// True if the job was resumed.
    fn resumed(&self, name: &str) -> bool {
        self.count(|event| matches!(event, Event::Resumed { job, .. } if job == name)) > 0
    }

    /// Stops the governor; the jobs go on.
    pub(crate) fn stop(&mut self) {
        self.events.extend(self.governor.take().unwrap().stop());
    }
}

impl Drop for Set {
    fn drop(&mut self) {
        // Each job has a process group of its own, led by its first process.
        let started = self.events.iter().filter_map(|event| match event {
            Event::Started { pid, .. } => Some(*pid),
            _ => None,
        });
        for pid in started {
            // SAFETY: a signal to a group that this test has made; one that is gone is refused.
            unsafe { libc::kill(-pid, libc::SIGKILL) };
        }
    }
}

/// Waits until `done`, without the governor.
#[track_caller]
pub(crate) fn soon(hang: &str, done: impl Fn() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < PATIENCE, "{hang}");
    }
}

/// The state letter of a process.
fn letter(pid: i32) -> char {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    text.rsplit(") ").next().and_then(|rest| rest.chars().next()).unwrap_or('-')
}

/// Whether a process makes no step any more. A process that is stopped before a child of its `vfork` calls
/// `execve` waits for that child, which is stopped.
fn is_stopped(pid: i32) -> bool {
    let children = || {
        let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        text.split_whitespace().map(|child| child.parse().unwrap()).collect::<Vec<i32>>()
    };
    match letter(pid) {
        'T' => true,
        'D' => children().iter().any(|child| letter(*child) == 'T'),
        _ => false,
    }
}

/// More than a shell holds, and less than two do: where nothing can be taken, one of two must wait.
const TIGHT: &str = "budget = \"1 MiB\"";
pub(crate) const FOREVER: &str = "while :; do sleep 0.05; done";

#[test]
fn jobs_that_do_not_fit_take_turns_and_all_go_on_when_the_governor_stops() {
    let mut set = set(TIGHT, &[("a", FOREVER, ""), ("b", FOREVER, "")]);
    set.until("both have been suspended and resumed", |set| {
        ["a", "b"].iter().all(|name| set.suspended(name) && set.resumed(name))
    });
    set.until("one is suspended", |set| set.states().contains(&State::Suspended));
    let pids = [set.pid("a"), set.pid("b")];
    set.until("it is stopped indeed", |_| pids.iter().any(|pid| is_stopped(*pid)));
    set.stop();
    assert!(matches!(set.events.last(), Some(Event::Stopped { running: 2 })), "{:?}", set.events.last());
    soon("a job stays stopped", || !pids.iter().any(|pid| is_stopped(*pid)));
    assert!(pids.iter().all(|pid| "RSD".contains(letter(*pid))), "{:?}", pids.map(letter));
    assert!(!set.folder.path().join("s").exists(), "the sockets are removed");
}

#[test]
fn ends_are_told_and_failures_started_again() {
    let jobs = [
        ("good", "exit 0", "restart = \"on-failure\""),
        ("bad", "exit 7", ""),
        ("again", "exit 1", "restart = \"on-failure\""),
        ("killed", "kill -9 $$", ""),
    ];
    let mut set = set("", &jobs);
    set.until("one is started a second time", |set| {
        set.count(|event| matches!(event, Event::Started { job, .. } if job == "again")) > 1
    });
    let how = |name: &str| {
        let ended = set.events.iter().find_map(|event| match event {
            Event::Ended { job, how } if job == name => Some(how.clone()),
            _ => None,
        });
        ended.unwrap_or_default()
    };
    assert_eq!((how("good").as_str(), how("bad").as_str()), ("exit status: 0", "exit status: 7"));
    assert!(how("killed").contains("signal: 9"), "{}", how("killed"));
    assert_eq!(set.states()[..2], [State::Ended, State::Ended]);
    assert_eq!(set.count(|event| matches!(event, Event::Started { job, .. } if job == "good")), 1);
}

#[test]
fn the_governor_is_done_when_all_jobs_are() {
    let mut set = set("", &[("a", "exit 0", ""), ("b", "sleep 0.2", "")]);
    let began = Instant::now();
    while let Some(wait) = set.governor().step().wait {
        assert!(began.elapsed() < PATIENCE, "it never is");
        std::thread::sleep(wait);
    }
    assert_eq!(set.states(), [State::Ended; 2]);
}

#[test]
fn processes_whose_parent_is_gone_stay_in_the_job_and_are_suspended_with_it() {
    // The first process ends and leaves one behind.
    let orphan = "sleep 300 & echo $! > orphan; exit 0";
    let mut set = set(
        TIGHT,
        &[("keeper", FOREVER, "priority = 9"), ("orphans", orphan, "directory = \".\"\npriority = 0")],
    );
    let file = set.folder.path().join("orphan");
    set.until("it is suspended", |set| set.suspended("orphans") && file.exists());
    let pid: i32 = std::fs::read_to_string(&file).unwrap().trim().parse().unwrap();
    set.until("it is stopped", |_| is_stopped(pid));
    set.stop();
    // On its way to sleep again it may be seen running.
    soon("it stays stopped", || letter(pid) == 'S');
    // SAFETY: a signal to a process that this test has made.
    unsafe { libc::kill(pid, libc::SIGKILL) };
}

#[test]
fn a_job_that_heeds_no_signal_is_suspended_and_resumed_like_any_other() {
    let deaf = "trap '' TERM INT HUP TSTP CONT; while :; do sleep 0.05; done";
    let mut set = set(TIGHT, &[("deaf", deaf, "priority = 0"), ("other", FOREVER, "priority = 1")]);
    set.until("it was suspended and runs again", |set| set.resumed("deaf"));
}

#[test]
fn what_grows_without_bound_is_stopped_and_the_urgent_job_runs_on() {
    // Each round holds a quarter of a MiB more, and never less than before: one text that grew would be
    // copied, and the job be worth more than it holds between two copies.
    let grower = "x=$(head -c 262144 /dev/zero | tr '\\0' a); i=0; \
                  while :; do i=$((i+1)); eval \"y$i=\\$x\"; sleep 0.02; done";
    let mut set = set(
        "budget = \"40 MiB\"",
        &[("grower", grower, "priority = 1"), ("urgent", FOREVER, "priority = 8")],
    );
    set.until("it is suspended", |set| set.suspended("grower"));
    let job = &set.snapshot().jobs[0];
    // With swap it is emptied when it is suspended.
    let grown = job.resident_bytes + job.taken_bytes;
    assert!(grown > 30 << 20, "{grown} bytes were within the budget");
    assert!(!set.suspended("urgent"));
    let pid = set.pid("grower");
    set.until("it is stopped", |_| is_stopped(pid));
}

#[test]
fn jobs_find_the_advice_socket_and_heed_signals_as_programs_do() {
    let script = "echo $VELLUM_ADVICE > where; grep SigBlk /proc/self/status > mask; exec sleep 300";
    let mut set = set("", &[("a", script, "directory = \".\"")]);
    let folder = set.folder.path().to_path_buf();
    set.until("it has said", |_| {
        std::fs::read_to_string(folder.join("mask")).is_ok_and(|text| text.ends_with('\n'))
    });
    let socket = std::fs::read_to_string(folder.join("where")).unwrap();
    assert_eq!(Path::new(socket.trim()), folder.join("s/advice.sock"));
    assert!(Path::new(socket.trim()).exists());
    let mask = std::fs::read_to_string(folder.join("mask")).unwrap();
    assert_eq!(mask.split_whitespace().nth(1), Some("0000000000000000"));
}

#[test]
fn a_process_that_runs_is_adopted_and_left_as_it_was() {
    let mut child = std::process::Command::new("sleep").arg("300").spawn().unwrap();
    let mut set = Set::of(&format!("period = \"100 ms\"\n[[job]]\nname = \"it\"\npid = {}\n", child.id()));
    let adopted = |event: &Event| matches!(event, Event::Adopted { processes: 1, .. });
    set.until("it is adopted", |set| set.count(adopted) > 0);
    set.until("it is seen", |set| set.snapshot().jobs[0].resident_bytes > 0);
    child.kill().unwrap();
    child.wait().unwrap();
    set.until("its end is noticed", |set| set.states() == [State::Ended]);
}

#[test]
fn two_governors_do_not_share_a_place() {
    let first = set("", &[("a", "exit 0", "")]);
    let table = "[governor]\nsockets = \"s\"\n[[job]]\nname = \"b\"\ncommand = [\"sh\"]\n";
    let config = Config::parse(table, Path::new("test.toml"), first.folder.path()).unwrap();
    let refused = Governor::new(config, Setting::default()).unwrap_err().to_string();
    assert!(refused.contains("another governor answers there"), "{refused}");
    assert!(first.folder.path().join("s/state.sock").exists(), "the first one's socket is untouched");
}
