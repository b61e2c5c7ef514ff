//! Tests that a signal ends a campaign, and that the campaign keeps the runs made by then.
//!
//! This file has one test, since all threads of a process share its signals and their state.

use std::time::Duration;
use vellum_campaign::{Arm, Campaign, Cell, Launch};
use vellum_process::Interrupt;

#[test]
fn a_signal_keeps_the_finished_runs() {
    let _caught = Interrupt::catch().unwrap();
    let launch = Launch::new("/bin/sh", ["-c", "true"]);
    let arms = ["one", "two", "three"].map(|label| Arm { label: label.to_owned(), launch: launch.clone() });
    let cell = Cell { name: "cell".into(), prepare: None, arms: arms.into(), rounds: 9, together: false };
    let campaign = Campaign { seed: 3, allowed: Duration::from_secs(60), budget: None };
    // Raised just before the second arm of the second round starts.
    let sheets = campaign.run(&[cell], |done, _, _| {
        if done == 4 {
            // SAFETY: a signal to this process, which has a handler for it.
            assert_eq!(unsafe { libc::raise(libc::SIGTERM) }, 0);
        }
    });
    let runs: Vec<_> = sheets[0].arms.iter().flat_map(|(_, runs)| runs).collect();
    assert_eq!((runs.len(), sheets[0].made()), (5, 5), "{runs:?}");
    assert!(runs.iter().all(|run| run.result.is_ok()), "{runs:?}");
}
