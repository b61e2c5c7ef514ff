//! Tests that `mmap` and related calls work like the kernel's on mappings that Vellum serves.

use std::process::Command;
use vellum_conformance::{compiled, plain, served, with_args, with_env};
use vellum_wire::Counter;

vellum_conformance::scenarios! { states: "states.c", [], [];
    pages_of_a_watched_mapping_are_missing pages_of_a_mapping_watched_later_are_missing
    memory_is_watched_no_more_when_it_is_unmapped policies_go_with_their_mapping names_go_with_their_mapping
    sealed_mappings_stay pages_in_a_pipe_keep_their_contents bad_pointers_are_refused
}

vellum_conformance::scenarios! { anonymous: "mappings.c", [], [];
    another_allocators_memory memory_is_zero_after_reuse lengths_are_rounded_to_pages parts_can_be_unmapped
    page_by_page aligned_by_trimming two_neighbours_in_one_call unmapping_nothing_succeeds errors_are_the_kernels
    protection_holds attributes_end_with_the_mapping fork_advice_holds copy_on_write shared_memory_is_shared
    reserve_and_commit other_kinds kernel_calls_on_served_memory
}

vellum_conformance::scenarios! { that_change: "remaps.c", [], [];
    random_hints places_again vellum_advised_blocks_stay remapping remapping_in_steps
    remapping_parts_and_to_places mapping_over advice random_operations
}

/// Without served mappings the comparisons of the other tests would pass trivially.
#[test]
fn mappings_are_served() {
    let program = compiled("mappings.c", &[]);
    let run = |knob: &str| {
        let command = with_args(&program, &["memory_is_zero_after_reuse"]);
        served(with_env(command, &[("VELLUM_MMAP", knob)])).succeeded().seats[0].get(Counter::MmapServed)
    };
    let served = run("on");
    assert!(served > 20, "mappings served: {served}");
    assert_eq!(run("off"), 0);
}

/// The number of fuzzer seeds for each allocator, unless `VELLUM_FUZZ_SEEDS` sets it.
const SEEDS: u64 = 200;
/// Seeds in one process: the state left by one seed is part of the start of the next.
const SEEDS_A_PROCESS: u64 = 200;

/// Runs the fuzzer with all seeds, in processes that `run` runs.
fn random_calls(run: impl Fn(Command)) {
    let program = compiled("mapfuzz.c", &[]);
    let seeds = std::env::var("VELLUM_FUZZ_SEEDS")
        .ok()
        .map_or(SEEDS, |asked| asked.parse().expect("a number of seeds"));
    for first in (0..seeds).step_by(SEEDS_A_PROCESS as usize) {
        let mut command = Command::new(&program);
        command.args([first.to_string(), SEEDS_A_PROCESS.min(seeds - first).to_string()]);
        run(command);
    }
}

/// The fuzzer's model matches the kernel.
#[test]
fn kernel_matches_the_fuzzers_model() {
    random_calls(|command| drop(plain(command).succeeded()));
}

#[test]
fn served_random_calls_match_the_kernel() {
    random_calls(|command| drop(served(command).succeeded()));
}

/// Runs the fuzzer with other page-layer settings than the defaults.
#[test]
fn random_calls_work_with_huge_pages_and_short_decay() {
    random_calls(|mut command| {
        command.env("VELLUM_HUGE", "always").env("VELLUM_DECAY_MS", "10");
        served(command).succeeded();
    });
}
