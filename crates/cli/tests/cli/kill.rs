//! Kills `vellum govern` and its guardians by `kill -9` at random moments, and checks that no job stays
//! stopped and no cgroup is left.
//!
//! A guardian is a small process that continues stopped jobs if the governor dies. Each test starts a
//! governor whose jobs need more memory than there is, so they take turns; one job forks all the time. Some
//! milliseconds after the governor has suspended a job, a test kills one of these sets of processes:
//!
//! - the governor, a guardian, or both: the remaining processes must resume the jobs;
//! - the governor and both guardians: `vellum govern --recover`, or the next governor, must resume them.
//!
//! The seed is printed; VELLUM_KILLS sets the number of moments of each kind.

use crate::common::{exits, out, refused, said, text, until, vellum};
use crate::govern::{self, Governing};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;
use vellum_random::Rng;
use vellum_skip::Group;

/// The default number of moments of each kind.
const KILLS: usize = 4;
const KILLS_ENV: &str = "VELLUM_KILLS";
/// The latest kill after the first suspension, in microseconds: several periods and turns.
const LATEST_US: u64 = 900_000;
const JOBS: [(&str, &str); 3] = [
    ("still", "while :; do sleep 0.05; done"),
    ("forks", "while :; do sleep 0.01; sleep 0.1 & sleep 0.02 & done"),
    ("busy", "while :; do :; done"),
];

#[derive(Debug, Clone, Copy, PartialEq)]
enum Killed {
    Governor,
    Guardian,
    Both,
    AllRecovered,
    AllNext,
}

fn guardians(governor: i32) -> Vec<i32> {
    let of_it = |process: &Process| {
        process.name == "vellum-guardian" && process.parent == governor && process.state != 'Z'
    };
    processes().into_iter().filter(of_it).map(|process| process.pid).collect()
}

/// Ends all processes of the jobs' sessions: a job that forks may need more than one signal.
fn end(jobs: &[i32]) {
    until("the jobs end", || {
        let mut left = processes();
        left.retain(|process| jobs.contains(&process.session) && process.state != 'Z');
        left.iter().for_each(|process| kill(process.pid));
        left.is_empty()
    });
}

fn kill(pid: i32) {
    // SAFETY: `kill` accesses no memory; the process is a job of this test, or gone and refused.
    unsafe { libc::kill(pid, libc::SIGKILL) };
}

struct Process {
    pid: i32,
    name: String,
    state: char,
    parent: i32,
    session: i32,
}

fn processes() -> Vec<Process> {
    let of = |entry: std::fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let text = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        let (head, rest) = text.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse().ok();
        let name = head.split_once('(')?.1.to_owned();
        Some(Process { pid, name, state: fields[0].chars().next()?, parent: number(1)?, session: number(3)? })
    };
    std::fs::read_dir("/proc").unwrap().flatten().filter_map(of).collect()
}

/// Returns true if every job has a process and none that is stopped, and no group is frozen or limited.
fn all_run(jobs: &[i32], groups: &[PathBuf]) -> bool {
    let is_free = |group: &PathBuf| {
        let read = |file: &str| std::fs::read_to_string(group.join(file)).unwrap_or_default();
        let is_unlimited = |file: &str| ["", "max"].contains(&read(file).trim());
        let limits = ["memory.max", "memory.high"];
        !read("cgroup.events").contains("frozen 1") && limits.into_iter().all(is_unlimited)
    };
    let all = processes();
    let of = |job: &i32| all.iter().filter(|process| process.session == *job).collect::<Vec<_>>();
    let runs = |job: &i32| !of(job).is_empty() && of(job).iter().all(|process| process.state != 'T');
    jobs.iter().all(runs) && groups.iter().all(is_free)
}

fn table(folder: &Path, groups: Option<&Group>) -> PathBuf {
    let groups = groups.map_or(String::new(), |groups| format!("groups = {:?}", groups.path()));
    let head = format!("longest_suspension = \"500 ms\"\nbudget = \"1 MiB\"\n{groups}");
    govern::table(folder, &head, &JOBS)
}

fn recover(directory: &Path) -> Output {
    vellum(["govern", "--recover", "--sockets", text(directory)])
}

fn moment(killed: Killed, after: Duration, groups: Option<&Group>, order: bool) {
    let folder = tempfile::tempdir().unwrap();
    let table = table(folder.path(), groups);
    let mut governing = Governing::start(&table);
    governing.event("suspended");
    std::thread::sleep(after);
    let governor = governing.child.id() as i32;
    until("there are two guardians", || guardians(governor).len() == 2);
    let pair = guardians(governor);
    let mut dead = match killed {
        Killed::Governor => vec![governor],
        Killed::Guardian => vec![pair[0]],
        Killed::Both => vec![governor, pair[1]],
        Killed::AllRecovered | Killed::AllNext => vec![governor, pair[0], pair[1]],
    };
    if order {
        dead.reverse();
    }
    dead.iter().for_each(|pid| kill(*pid));
    if killed == Killed::Guardian {
        // All jobs are resumed, and there is a new pair of guardians, under which jobs take turns again.
        governing.event("guardian");
        governing.event("suspended");
        until("there are two guardians", || guardians(governor).len() == 2);
        governing.signal(libc::SIGTERM);
    }
    governing.child.wait().unwrap();
    let mut next = None;
    match killed {
        Killed::AllRecovered => {
            // The killed guardians may still be exiting, but have no effect.
            let done = exits(0, recover(&folder.path().join("s")));
            assert!(out(&done).contains("processes resumed"), "{done:?}");
        }
        Killed::AllNext => {
            let path = folder.path().join("next.toml");
            let text =
                "[governor]\nsockets = \"s\"\n[[job]]\nname = \"other\"\ncommand = [\"sleep\", \"300\"]\n";
            std::fs::write(&path, text).unwrap();
            let mut following = Governing::start(&path);
            following.event("state");
            next = Some(following);
        }
        _ => {}
    }
    let of = |groups: &Group| JOBS.map(|(name, _)| groups.path().join(format!("vellum-{name}")));
    let paths: Vec<PathBuf> = groups.into_iter().flat_map(of).collect();
    until("all run again", || all_run(&governing.jobs, &paths));
    // No process is left that could stop the jobs again.
    std::thread::sleep(Duration::from_millis(20));
    assert!(all_run(&governing.jobs, &paths));
    end(&governing.jobs);
    // The next governor removes the groups when it ends.
    if let Some(mut next) = next {
        next.signal(libc::SIGTERM);
        next.child.wait().unwrap();
    } else if killed == Killed::AllRecovered {
        exits(0, recover(&folder.path().join("s")));
    }
    until("no group is left", || !paths.iter().any(|path| path.exists()));
}

/// Kills at random moments, and checks that no process stays stopped and no group is left.
fn at_any_moment(killed: Killed) {
    let mut random = Rng::new(vellum_random::test_seed(None));
    let asked = std::env::var(KILLS_ENV).ok().map(|text| text.parse().expect("VELLUM_KILLS is a number"));
    let kills: usize = asked.unwrap_or(KILLS);
    let groups = Group::of_groups_with_memory().or_else(|_| Group::of_groups()).ok();
    if groups.is_none() {
        println!("without groups: no control group of version 2 can be made here");
    }
    for at in 0..kills {
        let after = Duration::from_micros(random.below(LATEST_US));
        // Alternately with and without groups, if there are groups.
        let with_groups = groups.as_ref().filter(|_| at % 2 == 0);
        let order = random.below(2) == 0;
        println!("{at}: {killed:?} after {after:?}, groups {}, reversed {order}", with_groups.is_some());
        moment(killed, after, with_groups, order);
    }
}

#[test]
fn governor_killed_at_any_moment() {
    at_any_moment(Killed::Governor);
}

#[test]
fn guardian_killed_at_any_moment() {
    at_any_moment(Killed::Guardian);
}

#[test]
fn governor_and_guardian_killed_at_any_moment() {
    at_any_moment(Killed::Both);
}

#[test]
fn all_killed_at_any_moment_then_recovered() {
    at_any_moment(Killed::AllRecovered);
}

#[test]
fn all_killed_at_any_moment_then_a_next_governor() {
    at_any_moment(Killed::AllNext);
}

#[test]
fn recover_reports_its_actions() {
    let folder = tempfile::tempdir().unwrap();
    let nothing = exits(0, recover(&folder.path().join("none")));
    assert!(out(&nothing).contains("nothing to undo"), "{nothing:?}");
    let mut governing = Governing::start(&table(folder.path(), None));
    governing.event("suspended");
    refused(&recover(&folder.path().join("s")), "another governor answers there");
    let both = vellum(["govern", "--recover", "jobs.toml"]);
    assert!(!both.status.success() && said(&both).contains("--recover"), "{}", said(&both));
}
