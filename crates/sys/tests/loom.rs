//! Model checks of all interleavings of `lifecycle` (starting, waking, ending, barring, forking) and
//! `checks`: `RUSTFLAGS="--cfg loom" cargo test -p vellum-sys --test loom --release`.
#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use loom::thread;

/// Whose atomics the state machine uses.
mod atomics {
    pub(crate) use loom::sync::atomic::{AtomicU32, Ordering};
}
#[path = "../src/lifecycle.rs"]
#[allow(dead_code, unreachable_pub)]
mod lifecycle;
use lifecycle::{Crew, Lifecycle};
#[path = "../src/checks.rs"]
#[allow(dead_code, unreachable_pub)]
mod checks;
use checks::Checks;

/// A process: who it is, and its background thread, with the words that the kernel keeps of one.
struct Process {
    life: Lifecycle,
    bell: AtomicU32,
    /// The thread's word, 0 when it has ended.
    tid: AtomicU32,
    /// The identity of the process, and that with which the thread was started.
    who: AtomicU32,
    born_as: AtomicU32,
    /// Threads that use the one stack there is.
    stacks: AtomicU32,
    /// Set if threads end on request.
    is_willing: AtomicBool,
}

const ROOT: u32 = 0;
const NOBODY: u32 = 1;

struct Helper<'a>(&'a Process);

impl Crew for Helper<'_> {
    fn ring(&self) {
        self.0.bell.fetch_add(1, Ordering::Release);
    }
    fn have_ended(&self) -> bool {
        self.0.tid.load(Ordering::Acquire) == 0
    }
    fn wait_until_gone(&self) -> bool {
        while self.0.tid.load(Ordering::Acquire) != 0 {
            if !self.0.is_willing.load(Ordering::Relaxed) {
                return false;
            }
            thread::yield_now();
        }
        true
    }
    fn wait(&self, _word: &AtomicU32, _seen: u32) {
        thread::yield_now();
    }
    fn wake(&self, _word: &AtomicU32) {}
}

impl Process {
    fn new() -> Arc<Process> {
        Arc::new(Process {
            life: Lifecycle::over(AtomicU32::new(0)),
            bell: AtomicU32::new(0),
            tid: AtomicU32::new(0),
            who: AtomicU32::new(ROOT),
            born_as: AtomicU32::new(ROOT),
            stacks: AtomicU32::new(0),
            is_willing: AtomicBool::new(true),
        })
    }

    /// The helper's thread, which reads the bell before the state.
    fn run(&self) {
        loop {
            let rung = self.bell.load(Ordering::Acquire);
            if self.life.is_retiring() {
                break;
            }
            while self.bell.load(Ordering::Acquire) == rung {
                thread::yield_now();
            }
        }
        self.stacks.fetch_sub(1, Ordering::AcqRel);
        // The kernel clears the word when the thread has left its stack.
        self.tid.store(0, Ordering::Release);
    }

    /// Forks: no thread of the process is left.
    fn check(&self) {
        if self.tid.load(Ordering::Acquire) != 0 {
            assert_eq!(self.born_as.load(Ordering::Relaxed), NOBODY, "a thread has kept what was given up");
        }
    }
}

/// Starts the thread, if it may be. A start fails unless `works`.
fn start(process: &Arc<Process>, works: bool) -> bool {
    if !process.life.begin(&Helper(process)) {
        return false;
    }
    if works {
        // What `clone` does.
        assert_eq!(process.stacks.fetch_add(1, Ordering::AcqRel), 0, "two threads on one stack");
        process.born_as.store(process.who.load(Ordering::Relaxed), Ordering::Relaxed);
        process.tid.store(1, Ordering::Release);
        let running = process.clone();
        thread::spawn(move || running.run());
    }
    process.life.began(&Helper(process), works);
    works
}

/// `setuid`.
fn become_nobody(process: &Arc<Process>) {
    assert!(process.life.bar(&Helper(process)), "the thread is willing");
    assert_eq!(process.tid.load(Ordering::Acquire), 0, "nobody is there while the process changes");
    process.who.store(NOBODY, Ordering::Relaxed);
    assert_eq!(process.tid.load(Ordering::Acquire), 0, "nobody has been born meanwhile");
    if process.life.unbar() {
        start(process, true);
    }
}

/// Ends the thread, so that the model does.
fn quit(process: &Arc<Process>) {
    assert!(process.life.bar(&Helper(process)));
    assert!(process.life.is_absent() && process.tid.load(Ordering::Acquire) == 0);
}

/// Every interleaving with at most two preemptions: the polls of waiting threads make too many others.
fn explore(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.max_branches = 50_000;
    // The largest models are not explored to their end; the others take seconds.
    builder.max_duration = Some(std::time::Duration::from_secs(20));
    builder.check(model);
}

/// One thread changes its identity while another has work for the helper.
#[test]
fn none_is_born_with_what_was_given_up() {
    explore(|| {
        let process = Process::new();
        let other = process.clone();
        let other = thread::spawn(move || {
            start(&other, true);
        });
        become_nobody(&process);
        process.check();
        other.join().unwrap();
        process.check();
        quit(&process);
    });
}

/// The same with a running helper: it is ended, and requested again.
#[test]
fn who_runs_is_ended_and_comes_back() {
    explore(|| {
        let process = Process::new();
        assert!(start(&process, true));
        let other = process.clone();
        let other = thread::spawn(move || {
            start(&other, true);
        });
        become_nobody(&process);
        process.check();
        other.join().unwrap();
        assert!(process.life.is_started(), "it was wanted");
        process.check();
        quit(&process);
    });
}

/// Two threads change their identity at once: neither finds a helper, and one of them learns of the request.
#[test]
fn two_may_bar_at_once() {
    explore(|| {
        let process = Process::new();
        assert!(start(&process, true));
        let bar = |process: &Arc<Process>| {
            assert!(process.life.bar(&Helper(process)));
            assert_eq!(process.tid.load(Ordering::Acquire), 0, "nobody is there");
            u32::from(process.life.unbar())
        };
        let other = process.clone();
        let other = thread::spawn(move || bar(&other));
        assert_eq!(bar(&process) + other.join().unwrap(), 1);
    });
}

/// A signal handler bars on top of a thread interrupted between its bar and its unbar, and does not wait.
#[test]
fn a_bar_within_a_bar() {
    explore(|| {
        let process = Process::new();
        assert!(start(&process, true));
        assert!(process.life.bar(&Helper(&process)));
        become_nobody(&process);
        assert!(!start(&process, true), "the outer bar holds");
        assert!(process.life.unbar(), "and says at its end what was wanted");
        assert!(start(&process, true));
        process.check();
        quit(&process);
    });
}

/// A start that fails leaves nobody waiting, and can be tried again.
#[test]
fn a_start_may_fail() {
    explore(|| {
        let process = Process::new();
        let other = process.clone();
        let other = thread::spawn(move || {
            start(&other, false);
        });
        become_nobody(&process);
        other.join().unwrap();
        // Started at the end of the bar, if it was wanted during it.
        assert!(process.life.is_started() || start(&process, true));
        process.check();
        quit(&process);
    });
}

/// One of two threads that request the helper starts it.
#[test]
fn one_of_two_starts() {
    explore(|| {
        let process = Process::new();
        let other = process.clone();
        let other = thread::spawn(move || u32::from(start(&other, true)));
        let starts = u32::from(start(&process, true)) + other.join().unwrap();
        assert_eq!(starts, 1);
        quit(&process);
    });
}

/// A helper that does not end for long makes the bar fail; after its end another can be started.
#[test]
fn a_retirement_that_was_given_up_is_noted_later() {
    explore(|| {
        let process = Process::new();
        // Where it has been started, and not ended.
        assert!(process.life.begin(&Helper(&process)));
        process.tid.store(1, Ordering::Release);
        process.life.began(&Helper(&process), true);
        process.is_willing.store(false, Ordering::Relaxed);
        assert!(!process.life.bar(&Helper(&process)));
        let other = process.clone();
        let other = thread::spawn(move || {
            assert!(other.life.is_retiring());
            other.tid.store(0, Ordering::Release);
        });
        let early = process.life.begin(&Helper(&process));
        other.join().unwrap();
        assert!(early || process.life.begin(&Helper(&process)));
    });
}

/// A child that is forked at any moment has no helper, no bars, and can start its own.
#[test]
fn a_forked_child_begins_anew() {
    explore(|| {
        let process = Process::new();
        let other = process.clone();
        let other = thread::spawn(move || {
            if other.life.begin(&Helper(&other)) {
                other.life.began(&Helper(&other), false);
            }
            assert!(other.life.bar(&Helper(&other)));
        });
        // The memory is the child's copy from here on, which the other thread cannot change any more.
        let is_child = process.life.is_started();
        other.join().unwrap();
        process.life.reset_after_fork();
        assert!(!process.life.unbar(), "a bar that was its parent's is not there to be ended");
        assert!(process.life.begin(&Helper(&process)), "{is_child}");
    });
}

/// Things put there by threads, and the number of them that the last check counted.
struct Watched {
    checks: Checks,
    there: AtomicU32,
    seen: loom::sync::Mutex<(u32, u32)>,
}

impl Watched {
    fn new() -> Arc<Watched> {
        Arc::new(Watched {
            checks: Checks::over(AtomicU32::new(0), AtomicU32::new(0)),
            there: AtomicU32::new(0),
            seen: loom::sync::Mutex::new((0, 0)),
        })
    }

    /// Puts one there and sees to it that it is seen.
    fn put(&self, now_ms: u32) {
        self.there.fetch_add(1, Ordering::Relaxed);
        let mut due = self.checks.request(now_ms);
        while let Some(check) = due {
            let there = self.there.load(Ordering::Relaxed);
            let mut seen = self.seen.lock().unwrap();
            if !Checks::is_older(check.number, seen.0) {
                *seen = (check.number, there);
            }
            drop(seen);
            due = self.checks.done(&check, now_ms);
        }
    }
}

/// The last result is of a check that counted everything, whether or not a thread has lost patience.
#[test]
fn the_last_check_saw_all() {
    for later in [0, 100] {
        explore(move || {
            let watched = Watched::new();
            let other = watched.clone();
            let thread = thread::spawn(move || other.put(later));
            watched.put(0);
            thread.join().unwrap();
            assert_eq!(watched.seen.lock().unwrap().1, 2);
        });
    }
}
