//! Tests of `vellum heap` on programs that each stress one part of the profiler, compiled with options that
//! make stacks hard to walk. The sample interval is 1 KiB, so nearly every allocation's stack is walked.

use crate::common::held::{compiled, profiled};
use crate::common::{out, text};
use std::path::Path;

/// Compiler flags, by name: as in a distribution, and without tables for unwinding.
const BUILDS: [(&str, &[&str]); 3] = [
    ("-g", &[]),
    ("stripped", &["-s", "-O2"]),
    ("no tables", &["-s", "-O2", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-fno-exceptions"]),
];

/// Runs a storm in each build; it must print "whole", and have samples.
fn storm(name: &str, more: &[&str]) {
    for (build, flags) in BUILDS {
        let place = tempfile::tempdir().unwrap();
        let flags: Vec<&str> = flags.iter().copied().chain(["-pthread", "-ldl"]).collect();
        let Some(program) = compiled("storm.c", &flags) else { return };
        let command: Vec<&str> = [text(&program), name].into_iter().chain(more.iter().copied()).collect();
        let (output, document) = profiled(&["-i", "1K"], &command, place.path());
        assert_eq!(out(&output), "whole\n", "{name}, {build}");
        assert!(document["sum"]["ever"]["samples"].as_u64() > Some(1000), "{name}, {build}: {output:?}");
    }
}

/// Storms that would slow down concurrent tests.
mod alone {
    #[test]
    fn thousand_threads_are_profiled() {
        super::storm("threads", &[]);
    }
}

#[test]
fn signal_handlers_interrupt_malloc() {
    storm("handlers", &[]);
}

#[test]
fn forks_from_allocating_threads() {
    storm("forks", &[]);
}

#[test]
fn forks_during_interrupted_malloc() {
    storm("forks beside handlers", &[]);
}

#[test]
fn libraries_are_loaded_and_unloaded() {
    let place = tempfile::tempdir().unwrap();
    // Two libraries loaded one after the other at the same address, with different tables.
    let library = |name: &str, flags: &[&str]| {
        let folder = place.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        compiled("plugin.c", &[&["-shared", "-fPIC"], flags].concat())
    };
    let Some((one, other)) = library("one", &[]).zip(library("other", &["-O3", "-DPAD=4096"])) else {
        return;
    };
    storm("libraries", &[text(Path::new(&one)), text(Path::new(&other))]);
}

#[test]
fn thousand_coroutines_are_profiled() {
    storm("coroutines", &[]);
}

#[test]
fn stacks_end_at_a_guard_page() {
    storm("guards", &[]);
}
