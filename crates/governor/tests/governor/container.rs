//! Tests of the governor in a container: a cgroup with a limit far below the machine's memory.
//!
//! The test starts this program again in a new cgroup of version 2 or 1, whichever can be made; the program
//! governs two shells there. The limit is less than the reserve (memory to leave free) of the whole machine.

use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use vellum_governor::{Config, Event, Governor, Setting};
use vellum_skip::Group;

const PATIENCE: Duration = Duration::from_secs(25);
/// The limit of the group, and the pages of a file that are brought into it.
const LIMIT: u64 = 256 << 20;
const FILE: usize = 192 << 20;
/// Decisions that are looked at.
const DECISIONS: u32 = 8;
const FOREVER: &str = "while :; do sleep 0.05; done";
/// The file system without a disk, whose pages cannot be given up.
const TMPFS: rustix::fs::FsWord = 0x0102_1994;

/// Not a test: the governor in the group.
#[test]
#[ignore = "the governor in a group with a limit, started by the test"]
fn in_the_group() {
    let folder = tempfile::tempdir().unwrap();
    let mut table = "[governor]\nsockets = \"s\"\nperiod = \"100 ms\"\n".to_owned();
    for name in ["a", "b"] {
        table += &format!("[[job]]\nname = \"{name}\"\ncommand = [\"sh\", \"-c\", {FOREVER:?}]\n");
    }
    // Pages of files that the kernel would give up are no reason to stop anybody.
    let on_disk = rustix::fs::statfs(folder.path()).is_ok_and(|found| found.f_type != TMPFS);
    if on_disk {
        let mut file = std::fs::File::create(folder.path().join("file")).unwrap();
        let piece = vec![7; 1 << 20];
        (0..FILE >> 20).for_each(|_| file.write_all(&piece).unwrap());
        file.sync_all().unwrap();
    }
    let config = Config::parse(&table, Path::new("test.toml"), folder.path()).expect("a good table");
    let mut governor = Governor::new(config, Setting::default()).expect("a governor");
    let (began, mut seen, mut decisions) = (Instant::now(), -1.0, 0);
    let mut events: Vec<Event> = Vec::new();
    while decisions < DECISIONS {
        assert!(began.elapsed() < PATIENCE, "no decision");
        let step = governor.step();
        events.extend(step.events);
        let now = governor.snapshot();
        if now.at_seconds != seen {
            (seen, decisions) = (now.at_seconds, decisions + 1);
            assert_eq!(now.budget_bytes, (0.9 * LIMIT as f64) as u64, "a part of what the container has");
            assert!(now.effective_budget_bytes > LIMIT / 2, "{now:#?}");
        }
        std::thread::sleep(step.wait.unwrap_or(Duration::from_millis(20)));
    }
    let stopped = events.iter().any(|event| matches!(event, Event::Suspended { .. }));
    let started = events.iter().filter_map(|event| match event {
        Event::Started { pid, .. } => Some(*pid),
        _ => None,
    });
    // Each job has a session of its own, led by its first process.
    // SAFETY: a signal to a group of processes that this test has made.
    started.for_each(|pid| unsafe {
        libc::kill(-pid, libc::SIGKILL);
    });
    assert!(!stopped, "{events:#?}");
}

#[test]
fn in_a_container_the_budget_and_the_reserve_are_parts_of_its_limit() {
    let group = match Group::limited(LIMIT) {
        Ok(group) => group,
        Err(why) => return vellum_skip::skip(why),
    };
    let mut command = Command::new(std::env::current_exe().unwrap());
    group.confine(&mut command);
    let ended =
        command.args(["--exact", "container::in_the_group", "--ignored", "--nocapture"]).output().unwrap();
    let said = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
    assert!(ended.status.success(), "{}{}", said(&ended.stdout), said(&ended.stderr));
    assert!(said(&ended.stdout).contains("1 passed"), "{}", said(&ended.stdout));
}
