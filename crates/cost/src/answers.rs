//! A thread that answers the recorder's queries while the program runs: is an instruction the user's code?
//!
//! The recorder (the preloaded library) sends one query for each instruction that calls a memory operation,
//! and waits for the answer. The thread here sleeps on a futex in the shared ledger.

use super::ledger::LedgerFile;
use super::log::MappedModule;
use rustix::thread::{Timespec, futex};
use std::collections::HashMap;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use vellum_process::Symbols;
use vellum_wire::cost::{Answer, AskState};

/// The longest sleep on the bell.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// The thread that answers queries.
#[derive(Debug)]
pub struct Answers {
    ledger: Arc<LedgerFile>,
    thread: JoinHandle<()>,
}

impl Answers {
    /// Starts the thread.
    pub fn start(ledger: Arc<LedgerFile>, symbols: Arc<Mutex<Symbols>>) -> Answers {
        let theirs = ledger.clone();
        Answers { ledger, thread: std::thread::spawn(move || answer(&theirs, &symbols)) }
    }

    /// Stops the thread, and marks the ledger as closed, so that running processes send no more queries.
    pub fn stop(self) {
        let head = self.ledger.view().head();
        head.closed.store(1, Release);
        head.bell.fetch_add(1, AcqRel);
        let _ = futex::wake(&head.bell, futex::Flags::empty(), 1);
        let _ = self.thread.join();
    }
}

/// Locks the symbols, even after a thread panicked with the lock held: they are only a cache.
pub(crate) fn locked(symbols: &Mutex<Symbols>) -> MutexGuard<'_, Symbols> {
    symbols.lock().unwrap_or_else(PoisonError::into_inner)
}

fn answer(ledger: &LedgerFile, symbols: &Mutex<Symbols>) {
    let mut modules: HashMap<u64, Option<MappedModule>> = HashMap::new();
    let head = ledger.view().head();
    loop {
        let bell = head.bell.load(Acquire);
        for ask in ledger.view().asks() {
            if ask.state.load(Acquire) != AskState::Asked as u32 {
                continue;
            }
            let at = ask.module_at.load(Relaxed);
            let module = modules.entry(at).or_insert_with(|| ledger.module_at(at));
            let address = ask.address.load(Relaxed);
            let answer =
                module.as_ref().map_or(Answer::None, |module| locked(symbols).answer(&module.path, address));
            ask.answer.store(answer as u32, Relaxed);
            ask.state.store(AskState::Answered as u32, Release);
            let _ = futex::wake(&ask.state, futex::Flags::empty(), 1);
        }
        if head.closed.load(Acquire) != 0 {
            return;
        }
        // A spurious or failed wait only costs another round.
        let _ = futex::wait(&head.bell, futex::Flags::empty(), bell, Some(&LOOK));
    }
}
