//! The process's heap: settings, scopes, collections, blocking regions, limits and counters.

use crate::OutOfMemory;
use crate::scope::Scope;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;
use vellum_gc::{self as gc, Config, Stats};

/// The process's heap.
#[derive(Clone, Copy, Debug)]
pub struct Heap(());

/// Why the heap was not started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartError {
    /// It has started already, be it by [`Heap::get`].
    Started,
    /// There is no memory or address space for it.
    OutOfMemory,
    /// A setting is not served, or out of range: its name. `precise_stacks` is for programs that keep frames
    /// of their own; under `only_starts` words with tags would keep nothing.
    NotServed(&'static str),
}

impl std::fmt::Display for StartError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let why = match self {
            StartError::NotServed(setting) => {
                return write!(
                    formatter,
                    "the collected heap cannot start: the setting {setting} is not served, or out of range"
                );
            }
            StartError::Started => {
                "the collected heap has started already: settings are given before its first use"
            }
            StartError::OutOfMemory => {
                "the collected heap cannot start: there is no memory, or less than 2 GiB of address space (ulimit -v)"
            }
        };
        formatter.write_str(why)
    }
}

impl std::error::Error for StartError {}

thread_local! {
    static BLOCKED: Cell<bool> = const { Cell::new(false) };
}

/// Whether the thread is in [`Heap::blocking`].
pub(crate) fn is_blocked() -> bool {
    BLOCKED.get()
}

/// # Panics
/// If the thread is in [`Heap::blocking`].
#[inline]
pub(crate) fn expect_running(what: &str) {
    assert!(!is_blocked(), "{what} in a blocking region, which is not to touch the heap");
}

/// Collection is held off while this lives.
#[derive(Debug)]
#[must_use = "collection is held off as long as this lives"]
pub struct Held(());

impl Drop for Held {
    fn drop(&mut self) {
        expect_running("collection is let on");
        gc::hold(false);
    }
}

impl Heap {
    /// Starts the heap with settings.
    ///
    /// # Errors
    /// [`StartError`]; nothing has changed then.
    pub fn start(config: Config) -> Result<Heap, StartError> {
        expect_running("the heap is started");
        if config.precise_stacks {
            return Err(StartError::NotServed("precise_stacks"));
        }
        if config.only_starts {
            return Err(StartError::NotServed("only_starts"));
        }
        match gc::init(config) {
            Ok(()) => Ok(Heap(())),
            Err(gc::Already::Started) => Err(StartError::Started),
            Err(gc::Already::OutOfMemory) => Err(StartError::OutOfMemory),
            Err(gc::Already::NotServed(setting)) => Err(StartError::NotServed(setting)),
        }
    }

    /// The heap, which starts with the default settings at the first allocation if it has not been started.
    pub fn get() -> Heap {
        Heap(())
    }

    /// Calls `body` with a scope, which ends with it. Scopes nest; each has its own handles.
    ///
    /// # Panics
    /// In a blocking region, or if there is no memory for a scope's list.
    pub fn scope<R>(self, body: impl for<'s> FnOnce(&Scope<'s>) -> R) -> R {
        Scope::with(body)
    }

    /// Collects now; false if collection is held off, or there is no memory for lists.
    pub fn collect(self) -> bool {
        expect_running("a collection is asked for");
        gc::collect()
    }

    /// Runs the finalizers that are due; returns how many.
    pub fn finalize(self) -> usize {
        expect_running("finalizers are run");
        gc::finalize()
    }

    /// Has finalizers run in [`Heap::finalize`] only, or (the default) after collections, too.
    pub fn finalize_on_demand(self, on: bool) {
        expect_running("finalizers are put off");
        gc::finalize_on_demand(on);
    }

    /// Holds collection off as long as what is returned lives. The heap grows meanwhile, up to its limits.
    pub fn hold(self) -> Held {
        expect_running("collection is held off");
        gc::hold(true);
        Held(())
    }

    /// Goes on with a collection in slices for so long, or begins one if that is worth while. Whether there
    /// is more to do. See `vel_gc_idle` of `vellum_gc.h`.
    pub fn idle(self, time: Duration) -> bool {
        expect_running("idle time is given");
        gc::idle(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
    }

    /// Stops here if a collection waits, where threads stop at safepoints only ([`Config::safepoints`]).
    #[inline]
    pub fn safepoint(self) {
        if !is_blocked() {
            gc::safepoint();
        }
    }

    /// Calls `body` without collections waiting for it or interrupting it. It can bring no handle along.
    ///
    /// ```compile_fail,E0521
    /// # use vellum_heap::Heap;
    /// let heap = Heap::get();
    /// heap.scope(|scope| {
    ///     let number = scope.alloc(7u64).unwrap();
    ///     heap.blocking(move || *number);
    /// });
    /// ```
    pub fn blocking<R: 'static>(self, body: impl FnOnce() -> R + 'static) -> R {
        expect_running("a blocking region is entered");
        let result = gc::blocking(|| {
            BLOCKED.set(true);
            // What unwinds must not pass by the region's end.
            let result = catch_unwind(AssertUnwindSafe(body));
            BLOCKED.set(false);
            result
        });
        result.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Sets the limit of blocks and large objects in bytes; `None`: none.
    pub fn set_limit(self, bytes: Option<usize>) {
        expect_running("a limit is set");
        gc::set_limit(bytes.unwrap_or(usize::MAX));
    }

    /// Sets the maximum of the heap with its metadata in bytes; `None`: none.
    pub fn set_max(self, bytes: Option<usize>) {
        expect_running("a maximum is set");
        gc::set_max(bytes.unwrap_or(usize::MAX).max(Config::MAX_LEAST));
    }

    /// The counters.
    pub fn stats(self) -> Stats {
        expect_running("counters are read");
        gc::stats()
    }

    /// Checks every invariant of the heap.
    ///
    /// # Errors
    /// Names the first that is broken.
    pub fn validate(self) -> Result<(), &'static str> {
        expect_running("the heap is checked");
        gc::validate()
    }
}

/// What the collector's refusal means here, where every address is an object's.
pub(crate) fn refused(why: gc::Refused) -> OutOfMemory {
    debug_assert_eq!(why, gc::Refused::OutOfMemory, "handles lead to objects");
    OutOfMemory { bytes: size_of::<usize>() }
}
