//! The work of the worker processes, one file for each kind.
//!
//! Costs are in [`crate::clock::UNIT`] or nanoseconds, by the end of the name; the cost of reading the
//! counter is subtracted. A worker prints its figures as one line of JSON.

mod block;
mod claim;
mod list;
mod mix;
mod moves;
mod touch;
mod vector;

use crate::params::{Params, WorkError};
use std::ffi::CStr;
use vellum_campaign::{Metrics, check_malloc};

/// The bins of the work `mix`: they hold sizes from `2^BIN_FIRST` to `2^BIN_LAST` bytes.
pub(super) use mix::{BIN_FIRST, BIN_LAST};

type Work = fn(&Params) -> Result<Metrics, WorkError>;

const WORKS: [(&str, Work); 8] = [
    ("back", touch::back),
    ("block", block::block),
    ("claim", claim::claim),
    ("list", list::list),
    ("mix", mix::mix),
    ("moves", moves::moves),
    ("touch", touch::touch),
    ("vector", vector::vector),
];

/// Does the work with this name in this process, and returns its figures as one line.
///
/// # Errors
/// [`WorkError`] if malloc is not the expected one, a parameter is invalid or memory is short.
pub fn work<S: AsRef<str>>(name: &str, words: &[S]) -> Result<String, WorkError> {
    check_malloc()?;
    let (_, work) =
        WORKS.iter().find(|(known, _)| *known == name).ok_or_else(|| WorkError::Unknown(name.to_owned()))?;
    let metrics = work(&Params::parse(words)?)?;
    Ok(serde_json::to_string(&metrics).expect("a map of finite numbers is JSON"))
}

/// The median of measured values, as a figure.
fn middle(values: &[u64]) -> f64 {
    let values: Vec<f64> = values.iter().map(|value| *value as f64).collect();
    vellum_measure::median(&values).unwrap_or(f64::NAN)
}

/// A block of the preloaded malloc.
fn malloc(bytes: usize) -> Result<*mut u8, WorkError> {
    // SAFETY: malloc has no precondition. The black box keeps the compiler from deleting the call.
    let block = std::hint::black_box(unsafe { libc::malloc(bytes) });
    if block.is_null() { Err(WorkError::Memory { call: "malloc", bytes }) } else { Ok(block.cast()) }
}

/// Frees a block.
///
/// # Safety
/// The block is live and came from [`malloc`].
unsafe fn free(block: *mut u8) {
    // SAFETY: the block is live and came from malloc, by this function's `# Safety`.
    unsafe { libc::free(std::hint::black_box(block).cast()) };
}

/// A function of the preloaded library.
fn symbol(name: &'static CStr) -> Result<*mut libc::c_void, WorkError> {
    // SAFETY: `dlsym` gets a C string and the pseudo-handle for the program's own search order.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if found.is_null() { Err(WorkError::Lacks(name.to_str().unwrap_or("a function"))) } else { Ok(found) }
}

/// Highest resident memory of this process so far, bytes; NaN if the kernel does not report it.
fn peak_bytes() -> f64 {
    let peak = vellum_kernel::Pid::me().status().ok().and_then(|status| status.peak);
    peak.map_or(f64::NAN, |bytes| bytes.0 as f64)
}
