//! Marks (time spans in which a collector or an allocator worked), and hooks that hold off collections.

use crate::error::failed;
use crate::recorder::Operation;
use std::ffi::{c_char, c_int, c_void};
use std::sync::{Mutex, PoisonError};
use vellum_timing::marks::{self, Held, Hooks, Kind};

/// The holds of collectors that C code took: C has no destructors to release them.
static HELD: Mutex<Vec<Held>> = Mutex::new(Vec::new());

/// The number of the kind with this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_mark_kind(name: *const c_char) -> c_int {
    // SAFETY: by the header, `name` is null or a C string.
    match Kind::named(&unsafe { crate::text(name) }.unwrap_or_default()) {
        Ok(kind) => kind.number() as c_int,
        Err(why) => failed(why),
    }
}

/// The start of a span: now.
#[unsafe(no_mangle)]
pub extern "C" fn vel_mark_begin() -> u64 {
    marks::now()
}

/// Marks a span that ends now.
#[unsafe(no_mangle)]
pub extern "C" fn vel_mark_end(kind: c_int, start_ns: u64) {
    if start_ns != 0
        && let Some(kind) = u32::try_from(kind).ok().and_then(Kind::from_number)
    {
        marks::record(kind, start_ns, marks::now());
    }
}

/// The caller's context pointer, passed back to the caller's functions.
struct Context(*mut c_void);

// SAFETY: the pointer is never dereferenced here; by the header, the functions may be called from any thread.
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
            // SAFETY: by the header, the function and its context are valid for the life of the process.
            unsafe { function(context.0) };
        })
    };
    match marks::register(Hooks { hold: call(hold), allow: call(allow) }) {
        Ok(()) => 0,
        Err(why) => failed(why),
    }
}

/// Prevents all collectors from collecting.
#[unsafe(no_mangle)]
pub extern "C" fn vel_collectors_hold() {
    let held = marks::hold();
    HELD.lock().unwrap_or_else(PoisonError::into_inner).push(held);
}

/// Allows collections again.
#[unsafe(no_mangle)]
pub extern "C" fn vel_collectors_allow() {
    // Dropped after the lock is released, as a collector's function may be slow.
    let held = HELD.lock().unwrap_or_else(PoisonError::into_inner).pop();
    drop(held);
}
