//! Tests of the governor in a container: a cgroup with a limit far below the machine's memory.
//!
//! The test starts its own program file again in a new cgroup, of version 2 or 1, whichever can be made. That
//! process governs two shells. The limit is less than the reserve (memory to leave free) of the whole
//! machine.

use crate::jobs::{FOREVER, set};
use std::io::Write;
use std::process::Command;
use vellum_skip::Group;

/// The limit of the group, and the pages of a file that are brought into it.
const LIMIT: u64 = 256 << 20;
const FILE: usize = 192 << 20;
/// Decisions that are looked at.
const DECISIONS: u32 = 8;
/// The file system without a disk, whose pages cannot be given up.
const TMPFS: rustix::fs::FsWord = 0x0102_1994;

/// Not a test: the governor in the group.
#[test]
#[ignore = "the governor in a group with a limit, started by the test"]
fn in_the_group() {
    let folder = tempfile::tempdir().unwrap();
    // Pages of files that the kernel would give up are no reason to stop anybody.
    let on_disk = rustix::fs::statfs(folder.path()).is_ok_and(|found| found.f_type != TMPFS);
    if on_disk {
        let mut file = std::fs::File::create(folder.path().join("file")).unwrap();
        let piece = vec![7; 1 << 20];
        (0..FILE >> 20).for_each(|_| file.write_all(&piece).unwrap());
        file.sync_all().unwrap();
    }
    let mut set = set("", &[("a", FOREVER, ""), ("b", FOREVER, "")]);
    let (mut seen, mut decisions) = (set.snapshot().at_seconds, 0);
    set.until("it decides", |set| {
        let now = set.snapshot();
        if now.at_seconds != seen {
            (seen, decisions) = (now.at_seconds, decisions + 1);
            assert_eq!(now.budget_bytes, (0.9 * LIMIT as f64) as u64, "a part of what the container has");
            assert!(now.effective_budget_bytes > LIMIT / 2, "{now:#?}");
        }
        decisions == DECISIONS
    });
    assert!(!set.suspended("a") && !set.suspended("b"), "{:#?}", set.events);
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
