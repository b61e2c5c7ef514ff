//! A test of a heap in a cgroup that is too small for it: the process collects more often and lives on. The
//! cgroup also holds file pages and memory from malloc, and has no swap. Making the cgroup needs root.

use crate::heap::begin_with;
use crate::nodes::{NODE, check, layout, list, push};
use std::io::{Read, Write};
use std::process::Command;
use vellum_gc as gc;
use vellum_skip::Group;

const MIB: usize = 1 << 20;
/// The cgroup's limit, in bytes.
const LIMIT: usize = 64 * MIB;
/// Live bytes: without a limit the heap would take a little more than twice as much.
const LIVE: usize = 28 * MIB;
/// Bytes of a file in the page cache, which the kernel can drop.
const FILE: usize = 48 * MIB;
/// Taken by the process beside the heap.
const BESIDE: usize = 18 * MIB;
/// Nodes made beside the live ones: twenty times as many.
const CHURN: usize = 20 * LIVE / NODE;

/// The process that is to survive in the group.
fn inside(plan: gc::Plan) {
    let path = std::env::temp_dir().join(format!("vellum-confined-{}", std::process::id()));
    let mut file = std::fs::File::create(&path).expect("a file");
    let mut piece = vec![1; MIB];
    for _ in 0..FILE / MIB {
        file.write_all(&piece).expect("room for a file");
    }
    file.sync_all().expect("written");
    let mut file = std::fs::File::open(&path).expect("the file again");
    std::fs::remove_file(&path).expect("the file removed");
    while file.read(&mut piece).expect("read") > 0 {}
    let beside = vec![1_u8; BESIDE];

    begin_with(plan, gc::Config::DEFAULT);
    let layout = layout();
    let head = list(layout, LIVE / NODE);
    for number in 0..CHURN {
        std::hint::black_box(push(layout, std::ptr::null_mut(), number));
    }
    check(head, LIVE / NODE, &plan);
    let stats = gc::stats();
    assert!(stats.heap_peak_bytes < LIMIT as u64, "{stats:?}");
    assert!(stats.collections > 20, "{stats:?}");
    println!("in {} MiB: {stats:?}, {} beside", LIMIT / MIB, std::hint::black_box(beside).len());
}

#[test]
fn mark_sweep() {
    is_not_killed(gc::Plan::MarkSweep, || vellum_skip::again(mark_sweep, "confined"));
}

#[test]
fn copying() {
    is_not_killed(gc::Plan::MostlyCopying, || vellum_skip::again(copying, "confined"));
}

/// Has `again` run the test again in a group.
fn is_not_killed(plan: gc::Plan, again: impl FnOnce() -> Command) {
    if vellum_skip::role().is_some() {
        return inside(plan);
    }
    let group = match Group::limited(LIMIT as u64) {
        Ok(group) => group,
        Err(why) => return vellum_skip::skip(why),
    };
    let mut command = again();
    group.confine(&mut command);
    let ended = command.output().expect("this program again");
    let said = String::from_utf8_lossy(&ended.stdout);
    println!("{said}{}", String::from_utf8_lossy(&ended.stderr));
    assert!(ended.status.success(), "{}", ended.status);
    assert!(said.contains("in 64 MiB"), "it ran");
}
