//! The process's heap: settings, scopes, collections, blocking regions (code that uses no objects), limits,
//! counters.

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
    /// The heap has already started, by this function or by its first use.
    Started,
    /// There is too little memory or address space.
    OutOfMemory,
    /// The named setting is not supported, or out of range. `precise_stacks` needs a program that describes
    /// its frames. With `only_starts`, tagged words would keep nothing alive.
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

/// True if the thread is in [`Heap::blocking`].
pub(crate) fn is_blocked() -> bool {
    BLOCKED.get()
}

/// # Panics
/// If the thread is in [`Heap::blocking`].
#[inline]
pub(crate) fn expect_running(what: &str) {
    assert!(!is_blocked(), "{what} in a blocking region, which is not to touch the heap");
}

/// Holds collection off while this value exists.
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

    /// The heap. If it has not been started, its first allocation starts it with the default settings.
    pub fn get() -> Heap {
        Heap(())
    }

    /// Calls `body` with a scope, which ends when `body` returns. Scopes nest; each has its own handles.
    ///
    /// # Panics
    /// In a blocking region, or if there is no memory for the scope's list.
    pub fn scope<R>(self, body: impl for<'s> FnOnce(&Scope<'s>) -> R) -> R {
        Scope::with(body)
    }

    /// Collects now; false if collection is held off, or there is no memory for the collector's lists.
    pub fn collect(self) -> bool {
        expect_running("a collection is asked for");
        gc::collect()
    }

    /// Runs the finalizers that are due; returns their number.
    pub fn finalize(self) -> usize {
        expect_running("finalizers are run");
        gc::finalize()
    }

    /// Chooses whether finalizers run in [`Heap::finalize`] only; by default they also run after collections.
    pub fn finalize_on_demand(self, on: bool) {
        expect_running("finalizers are put off");
        gc::finalize_on_demand(on);
    }

    /// Holds collection off while the returned value exists. The heap may grow up to its limits.
    pub fn hold(self) -> Held {
        expect_running("collection is held off");
        gc::hold(true);
        Held(())
    }

    /// Continues an incremental collection for this time, or begins one if that is worthwhile. Returns
    /// whether work is left. See `vel_gc_idle` of `vellum_gc.h`.
    pub fn idle(self, time: Duration) -> bool {
        expect_running("idle time is given");
        gc::idle(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
    }

    /// Stops here if a collection waits, for heaps whose threads stop at safepoints only
    /// ([`Config::safepoints`]).
    #[inline]
    pub fn safepoint(self) {
        if !is_blocked() {
            gc::safepoint();
        }
    }

    /// Calls `body`; collections neither wait for it nor interrupt it. `body` cannot use any handle.
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
            // A panic must not unwind past the end of the region.
            let result = catch_unwind(AssertUnwindSafe(body));
            BLOCKED.set(false);
            result
        });
        result.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Sets the limit of blocks and large objects, in bytes; `None` for no limit.
    pub fn set_limit(self, bytes: Option<usize>) {
        expect_running("a limit is set");
        gc::set_limit(bytes.unwrap_or(usize::MAX));
    }

    /// Sets the maximum of the heap including metadata, in bytes; `None` for no maximum.
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
    /// The name of the first invariant that is broken.
    pub fn validate(self) -> Result<(), &'static str> {
        expect_running("the heap is checked");
        gc::validate()
    }
}

/// Converts an error of the collector. Handles always lead to objects, so only a lack of memory is possible.
pub(crate) fn refused(why: gc::Refused) -> OutOfMemory {
    debug_assert_eq!(why, gc::Refused::OutOfMemory, "handles lead to objects");
    OutOfMemory { bytes: size_of::<usize>() }
}
