//! Tests of `vellum heap` on garbage-collected heaps, under each collector plan (0 to 2, see `vellum_gc.h`).
//! A source line holds its objects until a collection frees them. Some programs here need a collector.

use crate::common::held::{amounts, heap, linked, profiled};
use crate::common::{out, said, text};
use serde_json::Value;
use std::process::Command;

/// The allowed error of an estimate in standard errors: one correct estimate in two million is further off.
const DEVIATIONS: f64 = 5.0;
/// Objects that may be present or not: kept by accidental words, or unused in a run of allocations.
const ACCIDENTS: f64 = 600.0;

/// Checks a line's number of objects, each of `bytes` bytes, within the error of its samples.
fn check(document: &Value, mark: &str, when: &str, objects: f64, bytes: f64) {
    let [told, blocks, samples] = amounts(document, "collected.c", mark, when).unwrap_or_default();
    let error = if blocks == 0.0 { 0.0 } else { ((1.0 - samples / blocks).max(0.0) / samples).sqrt() };
    // An accidental sample represents as many objects as any other sample.
    let each = if samples == 0.0 { 1.0 } else { blocks / samples };
    let off = DEVIATIONS * error * blocks + ACCIDENTS + 3.0 * each;
    assert!((blocks - objects).abs() <= off, "{mark} {when}: {blocks} of {objects}, {samples} samples");
    assert!((told - bytes * blocks).abs() <= 0.01 * told + bytes, "{mark} {when}: {told} bytes in {blocks}");
}

/// Checks that objects are held until a collection finds them dead, with one thread and with several.
fn objects_are_held(plan: &str) {
    let place = tempfile::tempdir().unwrap();
    let Some(program) = linked("collected.c") else { return };
    for (threads, interval) in [("1", "200"), ("3", "4K"), ("2", "64K")] {
        let words = [text(&program), plan, threads];
        let (output, document) = profiled(&["-i", interval], &words, place.path());
        assert_eq!(out(&output), "whole\n");
        assert_eq!(document["processes"].as_array().unwrap().len(), 2, "{}", said(&output));
        // The child repeats the work; inherited objects count for its parent.
        let workers = threads.parse::<f64>().unwrap() + 1.0;
        check(&document, "kept", "end", workers * 100_000.0, 48.0);
        check(&document, "kept", "ever", workers * 100_000.0, 48.0);
        check(&document, "dropped", "end", 0.0, 48.0);
        check(&document, "dropped", "ever", workers * 800_000.0, 48.0);
        check(&document, "freed", "end", 0.0, 208.0);
        check(&document, "freed", "ever", workers * 100_000.0, 208.0);
        check(&document, "large", "end", workers * 50.0, 100_000.0);
    }
}

#[test]
fn objects_are_held_under_each_plan() {
    ["0", "1", "2"].into_iter().for_each(objects_are_held);
}

/// Runs the scenarios of a program of the collector's conformance tests, with many objects sampled. Scenarios
/// that check the size of a heap are left out, as a profile adds to it.
fn scenarios_come_through(source: &str) {
    const OTHERS: [&str; 2] = ["returns", "limits"];
    let place = tempfile::tempdir().unwrap();
    let Some(program) = linked(&format!("../../../conformance/c/{source}")) else { return };
    let listed = Command::new(&program).output().expect("it starts");
    let names = String::from_utf8(listed.stdout).expect("text");
    for name in names.lines().filter(|name| !OTHERS.contains(name)) {
        let output = heap(&["-i", "1K"], &[text(&program), name], place.path());
        assert!(output.status.success(), "{source} {name}: {}", said(&output));
    }
}

#[test]
fn programs_that_rely_on_the_collector_run_under_the_profiler() {
    scenarios_come_through("collector.c");
}

#[test]
fn programs_whose_objects_move_run_under_the_profiler() {
    scenarios_come_through("movement.c");
}
