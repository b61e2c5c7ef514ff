//! Tests that a signal ends an experiment and keeps the observations made so far.
//!
//! This file has a single test, because all threads of a process share its signals and their state.

use std::time::Duration;
use vellum_experiment::duel::{DuelOptions, duel_between};
use vellum_experiment::process_duel::{ProcessDuelError, ProcessOptions, process_duel_while};
use vellum_experiment::{ArmOrder, Experiment, Stop, Turn};
use vellum_process::{Command, Interrupt};

fn ask() {
    // SAFETY: the signal goes to this process, which catches SIGTERM.
    assert_eq!(unsafe { libc::raise(libc::SIGTERM) }, 0);
}

#[test]
fn a_signal_keeps_complete_observations() {
    let caught = Interrupt::catch().unwrap();
    let mut kept = Vec::new();
    let mut executor = |turn: Turn| -> Result<(), ()> {
        kept.push(turn);
        if (turn.round, turn.place) == (1, 1) {
            ask();
        }
        Ok(())
    };
    let end = Experiment::new(ArmOrder::Random, 3, 1).run(&Stop::rounds(9), &mut executor);
    assert_eq!((end, kept.len()), (Ok(Some(libc::SIGTERM)), 5));
    drop(caught);

    let caught = Interrupt::catch().unwrap();
    let mut calls = 0;
    let options =
        DuelOptions { warm_up: Duration::ZERO, time: Duration::from_secs(60), ..Default::default() };
    let mut operation = || std::thread::sleep(Duration::from_micros(100));
    let mut counted = || {
        calls += 1;
        if calls == 100 {
            ask();
        }
        std::thread::sleep(Duration::from_micros(100));
    };
    let ended = duel_between([&mut counted, &mut operation], &options).unwrap();
    assert!((1..100).contains(&ended.len()), "{} rounds", ended.len());
    drop(caught);

    let shell = Command {
        program: "/bin/sh".into(),
        argv: ["sh", "-c", ":"].map(Into::into).into(),
        env: Vec::new(),
        stdio: [None, None, None],
    };
    for (rounds, complete) in [(2, true), (0, false)] {
        let caught = Interrupt::catch().unwrap();
        let options = ProcessOptions { rounds_min: 9, rounds_max: 9, warm_up: 0, ..Default::default() };
        if rounds == 0 {
            ask();
        }
        let ended = process_duel_while(&[&shell, &shell], &options, |so_far| {
            if so_far == rounds {
                ask();
            }
            true
        });
        match ended {
            Ok(duel) => assert!(complete && duel.rounds.len() == rounds, "{} rounds", duel.rounds.len()),
            Err(error) => {
                assert!(!complete && matches!(error, ProcessDuelError::Interrupted(_)), "{error}");
            }
        }
        drop(caught);
    }
}
