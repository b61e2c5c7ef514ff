//! Suites: sets of operations that are timed in one run and reported together.

use crate::clock;
use crate::error::{failed, handed_out, none, object, shared};
use crate::recorder::{NO_OPERATION, Operation, detail};
use crate::series::VelSeries;
use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr::null;
use std::time::Duration;
use vellum_timing::bench::{Batching, Options, Outcome, Suite};

/// `struct vel_suite_options`.
#[derive(Debug)]
#[repr(C)]
pub struct VelSuiteOptions {
    clock_kind: c_int,
    detail: c_int,
    observations: usize,
    seconds: f64,
    warm_up_seconds: f64,
    batching: i64,
    only: *const c_char,
    hold_collectors: c_int,
    reserved: c_int,
}

/// The results of a suite in C's types.
#[derive(Debug)]
pub struct VelRan {
    base: VelSeries,
    outcomes: Vec<Result<VelSeries, CString>>,
}

/// `VEL_REFUSE`, `VEL_AUTO`, or a batch.
pub(crate) fn batching(number: i64) -> Result<Batching, String> {
    match number {
        0 => Ok(Batching::Refuse),
        -1 => Ok(Batching::Auto),
        batch => u64::try_from(batch).map(Batching::Of).map_err(|_| {
            format!("batching {batch}: there are VEL_REFUSE, VEL_AUTO, and batches of 1 and more")
        }),
    }
}

/// A span of time given in seconds.
pub(crate) fn seconds(value: f64) -> Result<Duration, String> {
    Duration::try_from_secs_f64(value).map_err(|_| format!("{value} seconds: give a span of time, 0 or more"))
}

/// # Safety
/// `only` is null or a NUL-terminated string.
unsafe fn options(from: &VelSuiteOptions) -> Result<Options, String> {
    Ok(Options {
        clock: clock::kind(from.clock_kind).map_err(|why| why.to_string())?,
        detail: detail(from.detail)?,
        observations: from.observations,
        time: seconds(from.seconds)?,
        warm_up: seconds(from.warm_up_seconds)?,
        batching: batching(from.batching)?,
        // SAFETY: by `# Safety`, `only` is null or a C string.
        only: unsafe { crate::text(from.only) },
        hold_collectors: from.hold_collectors != 0,
    })
}

/// A suite without cases.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_suite_new(name: *const c_char) -> *mut Suite<'static> {
    // SAFETY: by the header, `name` is null or a C string.
    handed_out(Suite::new(unsafe { crate::text(name) }.unwrap_or_default()))
}

/// Adds a case.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_suite_case(
    suite: *mut Suite<'static>,
    name: *const c_char,
    operation: Option<Operation>,
    context: *mut c_void,
) -> c_int {
    // SAFETY: by the header, `suite` is null or live and not used elsewhere, `name` is null or a C string.
    let (Some(suite), name) = (unsafe { (object(suite), crate::text(name)) }) else { return -1 };
    let Some(operation) = operation else { return failed(NO_OPERATION) };
    // SAFETY: by the header, the function and its context are valid as long as the suite.
    suite.case(name.unwrap_or_default(), move || unsafe { operation(context) });
    0
}

/// Runs the cases of a suite.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_suite_run(
    suite: *mut Suite<'static>,
    options: *const VelSuiteOptions,
) -> *mut VelRan {
    // SAFETY: by the header, `suite` and `options` are null or live objects that no other thread uses.
    let (Some(suite), from) = (unsafe { (object(suite), options.as_ref()) }) else {
        return std::ptr::null_mut();
    };
    // SAFETY: by the header, `only` of the options is null or a C string.
    let options = from.map_or_else(|| Ok(Options::default()), |from| unsafe { self::options(from) });
    match options.and_then(|options| suite.run(&options).map_err(|why| why.to_string())) {
        Ok(ran) => {
            let outcome = |outcome| match outcome {
                Outcome::Observed(series) => Ok(VelSeries::from(*series)),
                Outcome::Refused(why) => {
                    Err(CString::new(why.to_string().replace('\0', " ")).unwrap_or_default())
                }
            };
            handed_out(VelRan {
                base: ran.base.into(),
                outcomes: ran.outcomes.into_iter().map(outcome).collect(),
            })
        }
        Err(why) => none(why),
    }
}

/// The series of a case; null if the case was refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_ran_series(ran: *const VelRan, index: usize) -> *const VelSeries {
    // SAFETY: by the header, `ran` is null or a live object that no other thread uses.
    let outcome = unsafe { shared(ran) }.and_then(|ran| ran.outcomes.get(index));
    outcome.and_then(|outcome| outcome.as_ref().ok()).map_or(null(), std::ptr::from_ref)
}

/// The reason why a case was refused; null if it was not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_ran_refusal(ran: *const VelRan, index: usize) -> *const c_char {
    // SAFETY: by the header, `ran` is null or a live object that no other thread uses.
    let outcome = unsafe { shared(ran) }.and_then(|ran| ran.outcomes.get(index));
    outcome.and_then(|outcome| outcome.as_ref().err()).map_or(null(), |why| why.as_ptr())
}

reads! {
    /// The timings of an empty operation.
    vel_ran_base(VelRan) -> *const VelSeries: null(), |ran| &raw const ran.base;
    /// The number of cases that ran.
    vel_ran_count(VelRan) -> usize: 0, |ran| ran.outcomes.len();
}

frees! {
    /// Frees the suite.
    vel_suite_free(Suite<'static>);
    /// Frees the results of a suite.
    vel_ran_free(VelRan);
}
