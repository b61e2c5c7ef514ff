//! Tests of the governor with cgroups of version 2 that control memory: eviction by age, `memory.reclaim`,
//! `cgroup.freeze`, stalls.
//!
//! Without such cgroups, as on many machines, the tests are skipped; `.ci/vm` boots a kernel that has them.

use crate::jobs::{PATIENCE, Set, soon};
use std::path::Path;
use std::time::Instant;
use vellum_governor::{Event, State};
use vellum_kernel::generations;
use vellum_skip::Group;

const MIB: usize = 1 << 20;
/// What the program that is governed uses all the time, what it has used once, and what all may have.
const HOT: usize = 24 * MIB;
const COLD: usize = 96 * MIB;
const BUDGET: &str = "budget = \"72 MiB\"";
const FOREVER: &str = "while :; do :; done";

/// Not a test: the program that is governed.
#[test]
#[ignore = "the program that is governed, started by the tests"]
fn hot_and_cold() {
    let cold = std::hint::black_box(vec![1u8; COLD]);
    let mut hot = std::hint::black_box(vec![1u8; HOT]);
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        for page in hot.chunks_mut(4096) {
            page[0] = page[0].wrapping_add(1);
        }
    }
    drop(cold);
}

/// A control group for the groups of jobs, removed with all that is in it.
fn groups() -> Option<Group> {
    Group::of_groups_with_memory().map_err(vellum_skip::skip).ok()
}

/// A file of a job's group.
fn read(groups: &Group, job: &str, file: &str) -> String {
    std::fs::read_to_string(groups.path().join(format!("vellum-{job}/{file}"))).unwrap_or_default()
}

fn set(groups: &Group, head: &str, jobs: &[(&str, &[&str])]) -> Set {
    let mut table = format!("period = \"200 ms\"\ngroups = {:?}\n{head}\n", groups.path());
    for (name, command) in jobs {
        table += &format!("\n[[job]]\nname = \"{name}\"\ncommand = {command:?}\noutput = \"out\"\n");
    }
    Set::of(&table)
}

#[test]
fn pages_idle_beyond_the_window_are_evicted_and_those_in_use_stay() {
    if let Err(why) = generations::available() {
        return vellum_skip::skip(format_args!("no generations here: {why}"));
    }
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap();
    let free = memory.lines().find_map(|line| line.strip_prefix("SwapFree:"));
    if free.is_none_or(|free| free.trim().trim_end_matches(" kB").parse().unwrap_or(0) <= (2 * COLD) >> 10) {
        return vellum_skip::skip("there is no swap to evict to");
    }
    let Some(groups) = groups() else { return };
    let program = std::env::current_exe().unwrap();
    let command = [program.to_str().unwrap(), "--exact", "groups::hot_and_cold", "--ignored", "--nocapture"];
    let mut set = set(&groups, BUDGET, &[("program", &command)]);
    let budget = |set: &Set| set.snapshot().budget_bytes;
    set.until("it holds more than all may have", |set| set.snapshot().resident_bytes as usize > COLD);
    set.until("it is taken from", |set| set.snapshot().resident_bytes < budget(set));
    let by_age =
        |event: &Event| matches!(event, Event::Took { means, .. } if *means == "evicting old generations");
    assert!(set.events.iter().any(by_age), "{:#?}", set.events);
    assert!(!set.suspended("program"), "{:#?}", set.events);
    let job = set.snapshot().jobs[0].clone();
    assert_eq!((job.state, job.source.as_deref()), (State::Running, Some("generations")));
    assert!(job.resident_bytes as usize >= HOT, "{job:#?}");
    // No limit was set on the way, and none is left.
    set.stop();
    for (file, none) in [("memory.max", "max"), ("memory.high", "max"), ("cgroup.freeze", "0")] {
        assert_eq!(read(&groups, "program", file).trim(), none, "{file}");
    }
    assert!(!read(&groups, "program", "cgroup.procs").is_empty(), "it runs on");
}

#[test]
fn groups_that_do_not_fit_are_frozen_in_turns_emptied_and_thawed() {
    let Some(groups) = groups() else { return };
    let shell = ["sh", "-c", FOREVER];
    let mut set = set(&groups, "budget = \"1 MiB\"", &[("a", &shell), ("b", &shell)]);
    let frozen = |job: &str| read(&groups, job, "cgroup.events").contains("frozen 1");
    set.until("one is frozen", |_| frozen("a") || frozen("b"));
    set.until("both had turns", |set| set.suspended("a") && set.suspended("b"));
    let means = &set.snapshot().jobs[0].means;
    assert!(["evicting old generations", "memory.reclaim"].contains(&means.as_str()), "{means}");
    if Path::new("/proc/pressure/memory").exists() {
        set.until("stalls are reported", |set| set.snapshot().stalled.is_some());
    }
    set.stop();
    soon("a job stays frozen", || !frozen("a") && !frozen("b"));
}
