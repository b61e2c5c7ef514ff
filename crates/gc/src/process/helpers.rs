//! Helper threads that mark together with the collecting thread (the leader), and the statics by which
//! they share work.
//!
//! Helpers are threads that are not registered with the C library ([`vellum_sys::thread`]), one for each
//! marking thread beyond the first. They are made before the first collection that uses them and sleep
//! between collections. They end with the process, or before it changes its credentials ([`bar`]).
//! `trace::parallel` describes their work.
//!
//! # Invariants
//! * Helpers touch no thread-local storage, and allocate nothing.
//! * They are started under the heap's lock.

use crate::process::work_packets::{Crew, MEMBERS_MAX};
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use vellum_sys::lifecycle::{self, Lifecycle};
use vellum_sys::thread::Undisturbed;
use vellum_sys::{Caps, caps, map, owner, thread};

/// Words of a helper's stack (address space).
pub(crate) const STACK_WORDS: usize = 256 << 10;
/// The longest sleep of a member: the leader is not woken when all the others are idle.
const SLEEP_NS: u64 = 200_000;
/// The longest sleep of a helper between collections.
const ASLEEP_NS: u64 = 3_600_000_000_000;
/// Tests for work before a member sleeps.
const LOOKS: u32 = 2000;

pub(crate) static CREW: Crew = Crew::new();
/// The address of the packets; 0 until they are made.
pub(crate) static PACKETS_AT: AtomicUsize = AtomicUsize::new(0);
/// The address of the shared trace (`trace::parallel`). Written before the crew opens.
pub(crate) static TRACE_AT: AtomicUsize = AtomicUsize::new(0);
/// Changes when there may be something to take, if members sleep.
static SHARED: AtomicU32 = AtomicU32::new(0);
static SLEEPERS: AtomicU32 = AtomicU32::new(0);
/// Changes when there is a trace to join.
static BELL: AtomicU32 = AtomicU32::new(0);
/// The state of each helper.
static LIVES: [Lifecycle; MEMBERS_MAX as usize] =
    [const { Lifecycle::over(AtomicU32::new(0)) }; MEMBERS_MAX as usize];
/// Each helper's memory, once it was made; the next helper of the same number uses it again.
static MEMORIES: [AtomicUsize; MEMBERS_MAX as usize] = [const { AtomicUsize::new(0) }; MEMBERS_MAX as usize];
/// The thread id of the last helper of each number.
static BORN: [AtomicU32; MEMBERS_MAX as usize] = [const { AtomicU32::new(0) }; MEMBERS_MAX as usize];
static STACKS: [AtomicUsize; MEMBERS_MAX as usize] = [const { AtomicUsize::new(0) }; MEMBERS_MAX as usize];
static TIDS: [AtomicU32; MEMBERS_MAX as usize] = [const { AtomicU32::new(0) }; MEMBERS_MAX as usize];

struct Helper(usize);

impl lifecycle::Crew for Helper {
    fn ring(&self) {
        thread::wake(&BELL);
    }
    fn have_ended(&self) -> bool {
        TIDS[self.0].load(Ordering::Acquire) == 0
    }
    fn wait_until_gone(&self) -> bool {
        thread::wait_until_gone(&TIDS[self.0], BORN[self.0].load(Ordering::Relaxed), thread::END_NS)
    }
    fn wait(&self, word: &AtomicU32, seen: u32) {
        thread::wait(word, seen, SLEEP_NS);
    }
    fn wake(&self, word: &AtomicU32) {
        thread::wake_all(word);
    }
}

/// Helpers that run or are being started.
pub(crate) fn count() -> u32 {
    LIVES.iter().filter(|life| life.is_started()).count() as u32
}

/// Returns whether no helper runs or is being started.
pub fn are_absent() -> bool {
    LIVES.iter().all(Lifecycle::is_absent)
}

/// Ends the helpers, and prevents new ones until [`unbar`]. For a call that changes the process's
/// credentials, made by the process that the helpers belong to. Waits for a trace that is under way. False,
/// and nothing is barred, if one does not end.
#[must_use]
pub fn bar() -> bool {
    for (index, life) in LIVES.iter().enumerate() {
        if !life.bar(&Helper(index)) {
            for life in &LIVES[..index] {
                let _ = life.unbar();
            }
            return false;
        }
    }
    true
}

/// Ends a [`bar`]. The next collection with several markers makes helpers, with the credentials of its
/// thread.
pub fn unbar() {
    for life in &LIVES {
        let _ = life.unbar();
    }
}

/// In a forked child there are no helpers.
pub(crate) fn forget() {
    LIVES.iter().for_each(Lifecycle::reset_after_fork);
    TIDS.iter().for_each(|tid| tid.store(0, Ordering::Relaxed));
    SLEEPERS.store(0, Ordering::Relaxed);
}

/// Helpers that were ever made, in this process or its parent.
pub(crate) fn made() -> usize {
    MEMORIES.iter().filter(|memory| memory.load(Ordering::Relaxed) != 0).count()
}

/// The memory whose address is in `word`, mapped now if it was not. Under the heap's lock.
pub(crate) fn mapped(word: &AtomicUsize, bytes: usize) -> Option<usize> {
    if word.load(Ordering::Relaxed) == 0 {
        word.store(map::reserve_writable(bytes).ok()?.start.get(), Ordering::Relaxed);
    }
    Some(word.load(Ordering::Relaxed))
}

/// Makes the helper of that number, which runs `help`, unless it runs already; false if it cannot be made.
/// Under the heap's lock.
pub(crate) fn make(index: usize, help: extern "C" fn(usize) -> !) -> bool {
    let life = &LIVES[index];
    if life.is_started() {
        return true;
    }
    if !caps::has(Caps::HELPER) || !owner::is_here() {
        return false;
    }
    if mapped(&STACKS[index], STACK_WORDS * size_of::<usize>()).is_none() {
        return false;
    }
    let Some(memory) = mapped(&MEMORIES[index], thread::HELPER_BYTES) else { return false };
    let _undisturbed = Undisturbed::new();
    if !life.begin(&Helper(index)) {
        return false;
    }
    let memory = core::ptr::with_exposed_provenance_mut(memory);
    // SAFETY: pages that are never given back, zeroed or with stale frames of a helper that has ended; `help`
    // touches no thread-local storage.
    let run = unsafe { thread::start(help, index, memory, &TIDS[index]) }.is_ok();
    BORN[index].store(TIDS[index].load(Ordering::Relaxed), Ordering::Relaxed);
    life.began(&Helper(index), run);
    run
}

/// The address of a helper's stack.
pub(crate) fn stack_of(index: usize) -> usize {
    STACKS[index].load(Ordering::Relaxed)
}

/// Wakes the helpers: there is a trace to join.
pub(crate) fn ring() {
    thread::wake(&BELL);
}

/// Waits until the bell has rung since it was `rung`; returns how often it has now. Ends the helper, which is
/// the caller, if it is to end.
pub(crate) fn wait_for_bell(index: usize, rung: u32) -> u32 {
    while BELL.load(Ordering::Acquire) == rung {
        thread::wait(&BELL, rung, ASLEEP_NS);
    }
    let rung = BELL.load(Ordering::Acquire);
    end_if_asked(index);
    rung
}

/// Ends the helper, which is the caller, if it is to end. After a load of the bell: a request to end is
/// stored before the bell rings.
pub(crate) fn end_if_asked(index: usize) {
    if LIVES[index].is_retiring() {
        thread::exit();
    }
}

/// Waits for a moment, or sleeps when the member has waited for long.
pub(crate) fn wait(looks: u32) {
    if looks < LOOKS {
        return core::hint::spin_loop();
    }
    let seen = SHARED.load(Ordering::SeqCst);
    SLEEPERS.fetch_add(1, Ordering::SeqCst);
    // A member that shares later sees a sleeper; one that shared before is seen here.
    if !CREW.has_work() {
        thread::wait(&SHARED, seen, SLEEP_NS);
    }
    SLEEPERS.fetch_sub(1, Ordering::SeqCst);
}

pub(crate) fn wake_sleepers() {
    if SLEEPERS.load(Ordering::SeqCst) > 0 {
        thread::wake(&SHARED);
    }
}
