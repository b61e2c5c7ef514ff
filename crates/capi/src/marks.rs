//! Marks on the time line, and hooks for collectors.

use crate::error::failed;
use crate::recorder::Operation;
use std::ffi::{c_char, c_int, c_void};
use std::sync::{Mutex, PoisonError};
use vellum_timing::marks::{self, Held, Hooks, Kind};

/// Who holds collectors by way of C: a language without destructors counts.
static HELD: Mutex<Vec<Held>> = Mutex::new(Vec::new());

/// A kind's number by name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_mark_kind(name: *const c_char) -> c_int {
    // SAFETY: as the header demands.
    match Kind::named(&unsafe { crate::text(name) }.unwrap_or_default()) {
        Ok(kind) => kind.number() as c_int,
        Err(why) => failed(why),
    }
}

/// When a span begins.
#[unsafe(no_mangle)]
pub extern "C" fn vel_mark_begin() -> u64 {
    marks::now()
}

/// Marks a span that ends now.
#[unsafe(no_mangle)]
pub extern "C" fn vel_mark_end(kind: c_int, start_ns: u64) {
    let end_ns = marks::now();
    if start_ns != 0
        && end_ns != 0
        && let Some(kind) = u32::try_from(kind).ok().and_then(Kind::from_number)
    {
        marks::record(kind, start_ns, end_ns);
    }
}

/// A pointer of the caller's that its own functions are given back.
struct Context(*mut c_void);

// SAFETY: never followed here; the header says that the functions may be called from any thread.
unsafe impl Send for Context {}

/// Registers a collector.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_collector_register(
    hold: Option<Operation>,
    allow: Option<Operation>,
    context: *mut c_void,
) -> c_int {
    let (Some(hold), Some(allow)) = (hold, allow) else { return failed(crate::recorder::NO_OPERATION) };
    let call = |function: Operation| {
        let context = Context(context);
        Box::new(move || {
            let context = &context;
            // SAFETY: the caller's function with the caller's context, both for the life of the process.
            unsafe { function(context.0) };
        })
    };
    match marks::register(Hooks { hold: call(hold), allow: call(allow) }) {
        Ok(()) => 0,
        Err(why) => failed(why),
    }
}

/// Holds all collectors.
#[unsafe(no_mangle)]
pub extern "C" fn vel_collectors_hold() {
    let held = marks::hold();
    HELD.lock().unwrap_or_else(PoisonError::into_inner).push(held);
}

/// Lets them collect again.
#[unsafe(no_mangle)]
pub extern "C" fn vel_collectors_allow() {
    // Dropped after the lock is free: a collector's function may take its time.
    let held = HELD.lock().unwrap_or_else(PoisonError::into_inner).pop();
    drop(held);
}
