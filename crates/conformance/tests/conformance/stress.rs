//! Random stress tests with threads and forks. They also run with each kernel facility disabled in turn.
//!
//! Each test prints its seed, and `VELLUM_TEST_SEED` sets it. `VELLUM_STRESS=20` runs 20 times as long.

use std::path::Path;
use std::process::Command;
use vellum_conformance::{Outcome, compiled, plain, served, with_args, with_env};
use vellum_sys::Caps;

/// The seed of this run, which is printed with the command to repeat it.
fn seed() -> String {
    (vellum_random::test_seed(None) as u32).to_string()
}

/// Runs the program with this seed, and these numbers of threads, of iterations per thread, and of forks.
/// `VELLUM_STRESS` multiplies iterations and forks.
fn stress(
    program: &Path,
    seed: &str,
    [threads, turns, forks]: [u64; 3],
    environment: &[(&str, &str)],
) -> Outcome {
    let times = std::env::var("VELLUM_STRESS").map_or(1, |asked| asked.parse().expect("a number"));
    let mut command = Command::new(program);
    command.arg(seed).args([threads, turns * times, forks * times].map(|number| number.to_string()));
    command.envs(environment.iter().copied());
    let outcome = served(command).succeeded();
    assert_eq!(outcome.text(), format!("seed {seed} done\n"), "{outcome}");
    assert_eq!(outcome.stderr, "", "{outcome}");
    outcome
}

#[test]
fn threads_forks_and_random_lifetimes() {
    let program = compiled("stress.c", &["-pthread"]);
    let seed = seed();
    plain(with_args(&program, &[&seed, "2", "2000", "2"])).succeeded();
    stress(&program, &seed, [2, 40_000, 10], &[]);
    stress(&program, &seed, [8, 10_000, 10], &[]);
}

/// Disables the facilities that an older kernel or less privilege lacks: each alone, and all together.
/// Takes every `PARTS`th, from number `part` on.
fn capabilities_masked_in_turn(part: usize) {
    let program = compiled("stress.c", &["-pthread"]);
    let remaps = compiled("remaps.c", &[]);
    let interface = compiled("interface.c", &["-ldl"]);
    let seed = seed();
    let all = Caps::NAMES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(",");
    let masks = Caps::NAMES.iter().map(|(name, _)| *name).chain([all.as_str()]);
    for mask in masks.skip(part).step_by(PARTS) {
        eprintln!("VELLUM_MASK={mask}");
        let masked = [("VELLUM_MASK", mask)];
        stress(&program, &seed, [3, 4000, 2], &masked);
        for (program, scenario) in [
            (&remaps, "random_operations"),
            (&remaps, "remapping"),
            (&interface, "realloc_keeps_contents_up_and_down"),
            (&interface, "calloc_clears_dirty_memory"),
        ] {
            let command =
                with_env(with_args(program, &[scenario]), &[("VELLUM_TEST_SEED", &seed), masked[0]]);
            let outcome = served(command).succeeded();
            assert_eq!(outcome.stderr, "", "{outcome}");
        }
    }
}

/// The number of tests among which the facilities are divided.
const PARTS: usize = 4;

#[test]
fn capabilities_masked_in_turn_0() {
    capabilities_masked_in_turn(0);
}

#[test]
fn capabilities_masked_in_turn_1() {
    capabilities_masked_in_turn(1);
}

#[test]
fn capabilities_masked_in_turn_2() {
    capabilities_masked_in_turn(2);
}

#[test]
fn capabilities_masked_in_turn_3() {
    capabilities_masked_in_turn(3);
}

#[test]
fn every_setting_of_every_knob() {
    let program = compiled("stress.c", &["-pthread"]);
    let seed = seed();
    let settings = [
        ("VELLUM_DECAY_MS", "0"),
        ("VELLUM_DECAY_MS", "1"),
        ("VELLUM_DECAY_MS", "3600000"),
        ("VELLUM_HUGE", "always"),
        ("VELLUM_HUGE", "never"),
        ("VELLUM_MMAP", "off"),
        ("VELLUM_DISABLE", "0"),
    ];
    for setting in settings {
        eprintln!("{}={}", setting.0, setting.1);
        stress(&program, &seed, [3, 4000, 2], &[setting]);
    }
}
