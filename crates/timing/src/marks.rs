//! Marks: spans of time in which collectors and allocators worked; and requests that delay such work.
//!
//! Recorders cannot see the collections inside the process they measure. A collector, an allocator or the
//! program itself can report a span in which it was at work: a mark. A measurement that must not be
//! interrupted can request that no collection starts.
//!
//! ```text
//! collector                              recorder
//! let start_ns = marks::now()            let collecting = Collecting::start()
//!   … work …                               … observations …
//! marks::record(…)       ──▶ store ──▶    collecting.take() ─▶ Mark { start_ns, end_ns, cause }
//!
//! marks::register(hooks) ──▶ hooks   ◀── let held = marks::hold();  … undisturbed …  drop(held)
//! ```
//!
//! Costs: while no recorder collects marks, a mark costs a few loads of a flag, and no clock is read.
//! Otherwise it costs two readings of `CLOCK_MONOTONIC` and a lock that is never held for long. Marks are
//! stored in memory that was allocated before, so that a collector may record one while it must not allocate.
//!
//! Invariants:
//! - marks are kept in the order in which they ended, [`MARKS_MAX`] at most; further marks are only counted;
//! - no collection starts while at least one [`Held`] exists, even of collectors that register in that time.
//!
//! Source: Bates 1999 times the collector's calls (`GCSCHED`, `idlegc`), and offers `disablegc` and
//! `enablegc` to programs. This file offers marks and postponement for any collector.

use crate::clock::monotonic_ns;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use vellum_measure::{Mark, MarkCause, touched};

/// The most marks kept at a time.
pub const MARKS_MAX: usize = 1 << 16;
/// The most kinds of a program's own.
pub const KINDS_MAX: usize = 256;
/// The most collectors in a process.
pub const COLLECTORS_MAX: usize = 16;

/// The kind of work of a mark, as a number that can be stored without allocating.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Kind(u32);

/// The built-in kinds; the numbers of a program's own kinds follow.
const KNOWN: [MarkCause; 5] = MarkCause::KNOWN;

impl Kind {
    /// A collection of all objects.
    pub const MAJOR: Kind = Kind(1);
    /// A slice of collection while the program had nothing to do.
    pub const IDLE: Kind = Kind(2);

    /// The kind of this name. Its first use assigns a number.
    ///
    /// # Errors
    /// If the process has [`KINDS_MAX`] others.
    pub fn named(name: &str) -> Result<Kind, MarkError> {
        let cause = MarkCause::parse(name);
        if let Some(known) = KNOWN.iter().position(|one| *one == cause) {
            return Ok(Kind(known as u32));
        }
        let mut own = locked(&OWN_KINDS);
        let index = match own.iter().position(|one| one == name) {
            Some(index) => index,
            None if own.len() < KINDS_MAX => {
                own.push(name.to_owned());
                own.len() - 1
            }
            None => return Err(MarkError::Kinds(name.to_owned())),
        };
        Ok(Kind((KNOWN.len() + index) as u32))
    }

    /// The kind with this number, if it has a name.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Kind> {
        ((number as usize) < KNOWN.len() + locked(&OWN_KINDS).len()).then_some(Kind(number))
    }

    /// Its number: the same for the life of the process.
    #[must_use]
    pub fn number(self) -> u32 {
        self.0
    }

    /// The cause that marks of this kind have.
    #[must_use]
    pub fn cause(self) -> MarkCause {
        let index = self.0 as usize;
        KNOWN.get(index).cloned().unwrap_or_else(|| {
            let own = locked(&OWN_KINDS);
            MarkCause::Other(own.get(index - KNOWN.len()).cloned().unwrap_or_default())
        })
    }
}

/// Errors: no space for a kind or a collector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MarkError {
    /// Too many names.
    #[error("no room for marks called {0:?}: {KINDS_MAX} kinds have names already; use one of them again")]
    Kinds(String),
    /// Too many collectors.
    #[error("no room for another collector's hooks: {COLLECTORS_MAX} are registered")]
    Collectors,
}

static OWN_KINDS: Mutex<Vec<String>> = Mutex::new(Vec::new());
static COLLECTING: AtomicUsize = AtomicUsize::new(0);
static STORE: Mutex<Store> = Mutex::new(Store { marks: Vec::new(), lost: 0 });
static HOOKS: Mutex<Registered> = Mutex::new(Registered { holders: 0, hooks: Vec::new() });

struct Store {
    marks: Vec<(u64, u64, Kind)>,
    lost: u64,
}

/// Ignores poisoning: no panic leaves the data under these locks half-written.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `CLOCK_MONOTONIC` in nanoseconds, or 0 without reading the clock while no marks are collected: the start
/// or the end of a span whose mark [`record`] makes.
#[inline]
#[must_use]
pub fn now() -> u64 {
    if COLLECTING.load(Relaxed) == 0 { 0 } else { monotonic_ns() }
}

/// Keeps a mark from `start_ns` to `end_ns`, nanoseconds of `CLOCK_MONOTONIC`, while marks are collected. A
/// time of 0 makes no mark: at that time none were collected.
pub fn record(kind: Kind, start_ns: u64, end_ns: u64) {
    if COLLECTING.load(Relaxed) == 0 || start_ns == 0 || end_ns == 0 {
        return;
    }
    let mut store = locked(&STORE);
    if store.marks.len() < store.marks.capacity().min(MARKS_MAX) {
        store.marks.push((start_ns, end_ns.max(start_ns), kind));
    } else {
        store.lost += 1;
    }
}

/// Marks are collected while one of these lives.
#[derive(Debug)]
pub struct Collecting {
    since_ns: u64,
    lost_before: u64,
}

/// The collected marks.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// The marks, in the order in which they ended.
    pub marks: Vec<Mark>,
    /// The number of marks without space.
    pub lost: u64,
}

impl Collecting {
    /// Collects marks from now on.
    #[must_use]
    pub fn start() -> Collecting {
        let mut store = locked(&STORE);
        if store.marks.capacity() < MARKS_MAX {
            let mut fresh = touched(MARKS_MAX, (1, 1, Kind::MAJOR));
            fresh.append(&mut store.marks);
            store.marks = fresh;
        }
        if COLLECTING.fetch_add(1, Relaxed) == 0 {
            store.marks.clear();
        }
        Collecting { since_ns: monotonic_ns(), lost_before: store.lost }
    }

    /// The marks that ended since the start.
    #[must_use]
    pub fn take(&self) -> Taken {
        // The spans are copied first, because the name of a kind takes another lock, and allocates.
        let (spans, lost) = {
            let store = locked(&STORE);
            (store.marks.clone(), store.lost - self.lost_before)
        };
        let since = spans.into_iter().filter(|&(_, end_ns, _)| end_ns >= self.since_ns);
        let mark =
            |(start_ns, end_ns, kind): (u64, u64, Kind)| Mark { start_ns, end_ns, cause: kind.cause() };
        Taken { marks: since.map(mark).collect(), lost }
    }
}

impl Drop for Collecting {
    fn drop(&mut self) {
        COLLECTING.fetch_sub(1, Relaxed);
    }
}

/// A collector's two functions. They are called under a lock, so they may not register hooks or hold
/// collectors.
pub struct Hooks {
    /// Stops collections from starting, and returns when none runs.
    pub hold: Box<dyn Fn() + Send>,
    /// Allows collections again.
    pub allow: Box<dyn Fn() + Send>,
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks").finish_non_exhaustive()
    }
}

struct Registered {
    holders: usize,
    hooks: Vec<Hooks>,
}

/// Registers a collector for the life of the process. If collectors are held off now, this one is too.
///
/// # Errors
/// If [`COLLECTORS_MAX`] are registered.
pub fn register(hooks: Hooks) -> Result<(), MarkError> {
    let mut registered = locked(&HOOKS);
    if registered.hooks.len() == COLLECTORS_MAX {
        return Err(MarkError::Collectors);
    }
    if registered.holders > 0 {
        (hooks.hold)();
    }
    registered.hooks.push(hooks);
    Ok(())
}

/// Holds all collectors off until the result is dropped. Timings become steadier, but differ from those of
/// the program, which must collect at some time. Therefore the source, and the suites here, hold collectors
/// off only on request.
#[must_use = "collectors are held only while this lives"]
pub fn hold() -> Held {
    let mut registered = locked(&HOOKS);
    registered.holders += 1;
    if registered.holders == 1 {
        registered.hooks.iter().for_each(|one| (one.hold)());
    }
    Held(())
}

/// Keeps collectors held off.
#[derive(Debug)]
pub struct Held(());

impl Drop for Held {
    fn drop(&mut self) {
        let mut registered = locked(&HOOKS);
        registered.holders -= 1;
        if registered.holders == 0 {
            registered.hooks.iter().for_each(|one| (one.allow)());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicI32;

    /// All tests of the process share the store: only marks of the test's own kind count.
    fn own(taken: &Taken, kind: Kind) -> Vec<&Mark> {
        taken.marks.iter().filter(|mark| mark.cause == kind.cause()).collect()
    }

    #[test]
    fn a_span_is_marked_while_marks_are_collected() {
        let kind = Kind::named("test span").unwrap();
        let early = now();
        let collecting = Collecting::start();
        let before = monotonic_ns();
        record(kind, now(), now());
        record(kind, early, now());
        record(kind, 0, now());
        let after = monotonic_ns();
        let taken = collecting.take();
        let marks = own(&taken, kind);
        let whole = marks.iter().filter(|mark| mark.start_ns >= before).count();
        assert_eq!(whole, 1, "{marks:?}");
        assert!(marks.iter().all(|mark| (1..=mark.end_ns).contains(&mark.start_ns) && mark.end_ns <= after));
        assert_eq!(taken.lost, 0);
    }

    #[test]
    fn marks_of_another_collection_are_not_taken_twice() {
        let kind = Kind::named("test twice").unwrap();
        let outer = Collecting::start();
        record(kind, monotonic_ns(), monotonic_ns());
        std::thread::sleep(std::time::Duration::from_millis(1));
        let inner = Collecting::start();
        record(kind, monotonic_ns(), monotonic_ns());
        assert_eq!((own(&outer.take(), kind).len(), own(&inner.take(), kind).len()), (2, 1));
    }

    #[test]
    fn kinds_are_found_by_name() {
        assert_eq!(Kind::named("idle"), Ok(Kind::IDLE));
        assert_eq!(Kind::named("decay").unwrap().cause(), MarkCause::Decay);
        let kind = Kind::named("checkpoint").unwrap();
        assert_eq!((Kind::from_number(kind.number()), Kind::from_number(1)), (Some(kind), Some(Kind::MAJOR)));
        assert_eq!(Kind::from_number(u32::MAX), None);
        assert_eq!(Kind::named("checkpoint"), Ok(kind));
        assert_eq!(kind.cause(), MarkCause::Other("checkpoint".to_owned()));
        let error = MarkError::Kinds("x".into());
        assert!(error.to_string().contains("256"));
    }

    #[test]
    fn collectors_are_held_until_the_last_release() {
        let state = Arc::new(AtomicI32::new(0));
        let hooks = |state: &Arc<AtomicI32>| {
            let (down, up) = (state.clone(), state.clone());
            Hooks {
                hold: Box::new(move || {
                    down.fetch_sub(1, Relaxed);
                }),
                allow: Box::new(move || {
                    up.fetch_add(1, Relaxed);
                }),
            }
        };
        register(hooks(&state)).unwrap();
        let (first, second) = (hold(), hold());
        assert_eq!(state.load(Relaxed), -1);
        register(hooks(&state)).unwrap();
        assert_eq!(state.load(Relaxed), -2, "one that comes later is held too");
        drop(first);
        assert_eq!(state.load(Relaxed), -2);
        drop(second);
        assert_eq!(state.load(Relaxed), 0);
    }
}
