//! Answering the recorder's questions, in a thread of its own, while the program runs.
//!
//! It sleeps on the ledger's bell. Questions come once for each instruction that does something with memory, and each waits in a
//! process that stands still meanwhile.

use super::ledger::{LedgerFile, MappedModule};
use super::symbols::{Symbols, locked};
use rustix::thread::{Timespec, futex};
use std::collections::HashMap;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use vellum_wire::cost::{Answer, AskState};

/// How long the bell is slept on before looking anyway.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// The thread that answers.
#[derive(Debug)]
pub struct Answers {
    ledger: Arc<LedgerFile>,
    thread: JoinHandle<()>,
}

impl Answers {
    /// Begins to answer.
    pub fn start(ledger: Arc<LedgerFile>, symbols: Arc<Mutex<Symbols>>) -> Answers {
        let theirs = ledger.clone();
        Answers { ledger, thread: std::thread::spawn(move || answer(&theirs, &symbols)) }
    }

    /// Stops: what still runs is told that nobody answers any more.
    pub fn stop(self) {
        let head = self.ledger.view().head();
        head.closed.store(1, Release);
        head.bell.fetch_add(1, AcqRel);
        let _ = futex::wake(&head.bell, futex::Flags::empty(), 1);
        let _ = self.thread.join();
    }
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
        // A spurious or refused wait only costs another round.
        let _ = futex::wait(&head.bell, futex::Flags::empty(), bell, Some(&LOOK));
    }
}
