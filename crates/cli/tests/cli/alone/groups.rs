//! Checks that `kill -9` of `vellum` leaves nothing set up in the kernel.
//!
//! Tests are skipped without the kernel feature or the privilege; `.ci/vm` boots a kernel with all features.

use crate::common::{Running, VELLUM, until};
use crate::govern::table;
use std::process::{Command, Stdio};
use vellum_skip::Group;

const FOREVER: &str = "while :; do :; done";

#[test]
fn killed_governor_leaves_no_group_frozen_or_limited() {
    let groups = match Group::of_groups_with_memory() {
        Ok(groups) => groups,
        Err(why) => return vellum_skip::skip(why),
    };
    let folder = tempfile::tempdir().unwrap();
    let head = format!("budget = \"1 MiB\"\ngroups = {:?}", groups.path());
    let table = table(folder.path(), &head, &[("a", FOREVER), ("b", FOREVER)]);
    let governor = Running::start(Command::new(VELLUM).arg("govern").arg(&table).stdout(Stdio::null()));
    let read = |job: &str, file: &str| {
        std::fs::read_to_string(groups.path().join(format!("vellum-{job}/{file}"))).unwrap_or_default()
    };
    let frozen = || ["a", "b"].iter().any(|job| read(job, "cgroup.events").contains("frozen 1"));
    until("one is frozen", frozen);
    drop(governor);
    until("all run again", || !frozen());
    for job in ["a", "b"] {
        for (file, none) in [("memory.max", "max"), ("memory.high", "max"), ("cgroup.freeze", "0")] {
            assert_eq!(read(job, file).trim(), none, "{job}: {file}");
        }
        assert!(!read(job, "cgroup.procs").is_empty(), "{job} runs on");
    }
}
