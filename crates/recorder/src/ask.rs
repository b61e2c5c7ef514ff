//! Queries to the command (`vellum cost`): does an instruction belong to the user's source?
//!
//! Only the command can read debug information. A query goes into a free slot of the shared file, the ledger
//! ([`Ask`]). A futex shared by both sides (the *bell*) wakes the command, and the answer wakes this thread.
//! Each instruction is queried once, so a query may be slow, but its wait is bounded. If the command was
//! killed or stopped, no answer comes within [`PATIENCE_NS`], and this process sends no more queries.

use crate::process;
use core::sync::atomic::{
    AtomicBool, AtomicU32,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use rustix::thread::{Timespec, futex};
use vellum_wire::cost::{Answer, Ask, AskState};

/// The longest wait for an answer.
const PATIENCE_NS: u64 = 20_000_000_000;
/// The time between checks whether the command still runs.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
/// The number of searches for a free place, and the time between.
const TRIES: u32 = 1000;
const NAP: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
/// Reads of the word before sleeping on it.
const SPINS: u32 = 200;

static GIVEN_UP: AtomicBool = AtomicBool::new(false);

/// The command's answer about the instruction at `address` of the file of the module logged at `module_at`.
pub(crate) fn ask(module_at: u64, address: u64) -> Answer {
    let Some(ledger) = process::ledger() else { return Answer::None };
    if GIVEN_UP.load(Relaxed) || ledger.head().closed.load(Relaxed) != 0 {
        return Answer::None;
    }
    let asks = ledger.asks();
    let free = |ask: &&Ask| {
        ask.state.compare_exchange(AskState::Free as u32, AskState::Taken as u32, Acquire, Relaxed).is_ok()
    };
    // No place is free. Either many threads wait for answers, which come soon, or that many were killed.
    let Some(ask) = (0..TRIES).find_map(|_| {
        let found = asks.iter().find(free);
        if found.is_none() {
            let _ = futex::wait(
                &ledger.head().bell,
                futex::Flags::empty(),
                ledger.head().bell.load(Relaxed),
                Some(&NAP),
            );
        }
        found
    }) else {
        ledger.head().unanswered.fetch_add(1, Relaxed);
        return Answer::None;
    };
    ask.module_at.store(module_at, Relaxed);
    ask.address.store(address, Relaxed);
    ask.pid.store(vellum_stacks::file::own_pid(), Relaxed);
    ask.state.store(AskState::Asked as u32, Release);
    let head = ledger.head();
    head.bell.fetch_add(1, AcqRel);
    let _ = futex::wake(&head.bell, futex::Flags::empty(), 1);
    let answer = if wait(&ask.state, &head.closed) {
        Answer::from_u32(ask.answer.load(Relaxed))
    } else {
        GIVEN_UP.store(true, Relaxed);
        head.unanswered.fetch_add(1, Relaxed);
        Answer::None
    };
    ask.state.store(AskState::Free as u32, Release);
    answer
}

/// Waits for the answer; false if none comes.
fn wait(state: &AtomicU32, closed: &AtomicU32) -> bool {
    let asked = AskState::Asked as u32;
    for _ in 0..SPINS {
        if state.load(Acquire) != asked {
            return true;
        }
        core::hint::spin_loop();
    }
    let began = vellum_sys::clock::now_ns();
    loop {
        // A spurious or failed wait only costs another round.
        let _ = futex::wait(state, futex::Flags::empty(), asked, Some(&LOOK));
        if state.load(Acquire) != asked {
            return true;
        }
        if closed.load(Relaxed) != 0 || vellum_sys::clock::now_ns() - began > PATIENCE_NS {
            return false;
        }
    }
}
