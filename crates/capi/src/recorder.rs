//! The recorder: times an operation repeatedly, and stores each time as an observation.

use crate::clock::open;
use crate::error::{failed, handed_out, none, object, taken_back};
use crate::series::VelSeries;
use std::ffi::{c_char, c_int, c_void};
use vellum_timing::record::{Detail, Recorder};

/// `vel_operation`: the timed function.
pub type Operation = unsafe extern "C" fn(context: *mut c_void);

/// The error for a missing function.
pub(crate) const NO_OPERATION: &str = "a null pointer was given where a function is needed";

/// `VEL_STAMPS` or `VEL_FULL`.
pub(crate) fn detail(number: c_int) -> Result<Detail, String> {
    match number {
        0 => Ok(Detail::Stamps),
        1 => Ok(Detail::Full),
        other => Err(format!("detail {other}: there are VEL_STAMPS and VEL_FULL")),
    }
}

/// Makes a recorder.
#[unsafe(no_mangle)]
pub extern "C" fn vel_recorder_new(clock_kind: c_int, detail: c_int, capacity: usize) -> *mut Recorder {
    let made = || -> Result<Recorder, String> {
        let (clock, detail) = (open(clock_kind).map_err(|why| why.to_string())?, self::detail(detail)?);
        Recorder::new(clock, detail, capacity).map_err(|why| why.to_string())
    };
    made().map_or_else(none, handed_out)
}

/// Sets the number of operations per observation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_recorder_batch(recorder: *mut Recorder, batch: u64) -> c_int {
    // SAFETY: by the header, `recorder` is null or a live object that no other thread uses.
    let Some(recorder) = (unsafe { object(recorder) }) else { return -1 };
    if batch == 0 {
        return failed("a batch of 0 operations: an observation holds at least 1");
    }
    recorder.set_batch(batch);
    0
}

/// Begins an observation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_recorder_begin(recorder: *mut Recorder) {
    // SAFETY: by the header, `recorder` is null or a live object that no other thread uses.
    if let Some(recorder) = unsafe { object(recorder) } {
        recorder.begin();
    }
}

/// Ends an observation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_recorder_end(recorder: *mut Recorder) {
    // SAFETY: by the header, `recorder` is null or a live object that no other thread uses.
    if let Some(recorder) = unsafe { object(recorder) } {
        recorder.end();
    }
}

/// Makes observations of an operation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_recorder_repeat(
    recorder: *mut Recorder,
    times: usize,
    operation: Option<Operation>,
    context: *mut c_void,
) -> c_int {
    // SAFETY: by the header, `recorder` is null or a live object that no other thread uses.
    let Some(recorder) = (unsafe { object(recorder) }) else { return -1 };
    let Some(operation) = operation else { return failed(NO_OPERATION) };
    // SAFETY: the caller passes a function and the context that belongs to it, valid until this returns.
    recorder.repeat(times, || unsafe { operation(context) });
    0
}

/// Turns the observations into a series, and frees the recorder.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_recorder_finish(recorder: *mut Recorder, name: *const c_char) -> *mut VelSeries {
    // SAFETY: by the header, `recorder` is null or live and not used elsewhere, `name` is null or a C string.
    let (Some(_), name) = (unsafe { (object(recorder), crate::text(name)) }) else {
        return std::ptr::null_mut();
    };
    // SAFETY: checked above not to be null; by the header, the caller does not use it again.
    match unsafe { taken_back(recorder) } {
        Some(recorder) => handed_out(recorder.finish(&name.unwrap_or_default()).into()),
        None => std::ptr::null_mut(),
    }
}

reads! {
    /// The number of observations so far.
    vel_recorder_count(Recorder) -> usize: 0, Recorder::count;
    /// The number of observations lost for lack of room.
    vel_recorder_lost(Recorder) -> u64: 0, Recorder::lost;
}

frees! {
    /// Frees the recorder.
    vel_recorder_free(Recorder);
}
