//! Douglas 2011, section 4.2: a vector that grows by one value at a time, in three ways (`method`).
//!
//! - `copy` does the same as `std::vector`: when it is full, it allocates twice the size, copies the values
//!   and frees the old storage.
//! - `realloc` calls realloc for twice the size.
//! - `buffer` is Vellum's growable buffer: only the pages needed, address space behind them, no copies.

use std::time::Instant;
use vellum_campaign::Metrics;
use vellum_campaign::worker::area::Area;
use vellum_campaign::worker::meter::peak_bytes;
use vellum_campaign::worker::{Params, WorkError, middle, raw};
use vellum_pages::Buffer;

/// Number of values in a vector's first storage.
const FIRST: usize = 512;

/// `first_ns` and `warm_ns` (the median of the later times) for a vector of `bytes`, and `peak_bytes` above
/// the process's memory before.
pub(super) fn vector(params: &Params) -> Result<Metrics, WorkError> {
    let (bytes, times) = (params.number("bytes")?, params.number("times")?.max(2));
    let values = bytes / size_of::<u64>();
    let grow: fn(usize) -> Result<u64, WorkError> = match params.word("method") {
        "copy" => |values| Ok(plain(values, larger_by_copy)),
        "realloc" => |values| Ok(plain(values, larger_by_realloc)),
        "buffer" => buffer,
        _ => return Err(params.refused("method")),
    };
    let before = peak_bytes();
    let mut spent = Area::<u64>::new(times);
    for slot in spent.iter_mut() {
        let start = Instant::now();
        let last = grow(values)?;
        *slot = start.elapsed().as_nanos() as u64;
        if last != values as u64 - 1 {
            return Err(WorkError::Damaged {
                what: "a vector's end".into(),
                found: last,
                expected: values as u64 - 1,
            });
        }
    }
    let mut metrics = Metrics::new();
    metrics.set("first_ns", spent[0] as f64);
    metrics.set("warm_ns", middle(&mut spent[1..]));
    metrics.set("peak_bytes", peak_bytes() - before);
    Ok(metrics)
}

/// A vector over malloc; `larger` makes its storage twice as large. Returns the last value.
fn plain(values: usize, larger: unsafe fn(*mut u64, usize) -> *mut u64) -> u64 {
    let (mut room, mut len) = (FIRST, 0);
    let mut storage = raw::malloc(room * size_of::<u64>()).cast::<u64>();
    while len < values {
        if len == room {
            // SAFETY: `storage` is live and holds `room` values; the new address replaces it.
            storage = unsafe { larger(storage, room) };
            room *= 2;
        }
        // SAFETY: `len < room`, so the value lies in the storage.
        unsafe { storage.add(len).write(len as u64) };
        len += 1;
    }
    // SAFETY: the last value was written; the storage is not used after it is freed.
    unsafe {
        let last = storage.add(len - 1).read_volatile();
        raw::free(storage.cast());
        last
    }
}

/// # Safety
/// `old` is live storage of `room` values, dead afterwards.
unsafe fn larger_by_copy(old: *mut u64, room: usize) -> *mut u64 {
    let new = raw::malloc(2 * room * size_of::<u64>()).cast::<u64>();
    // SAFETY: both blocks hold `room` values and differ; `old` is live by this function's `# Safety` and not
    // used again.
    unsafe {
        new.copy_from_nonoverlapping(old, room);
        raw::free(old.cast());
    }
    new
}

/// # Safety
/// `old` is live storage of `room` values, dead afterwards.
unsafe fn larger_by_realloc(old: *mut u64, room: usize) -> *mut u64 {
    // SAFETY: `old` is a live block of malloc's by this function's `# Safety`; the caller replaces its
    // address.
    unsafe { raw::realloc(old.cast(), 2 * room * size_of::<u64>()).cast() }
}

fn buffer(values: usize) -> Result<u64, WorkError> {
    let mut buffer = Buffer::<u64>::new();
    for value in 0..values as u64 {
        buffer.push(value).map_err(|error| WorkError::Memory { call: "Buffer::push", bytes: error.bytes })?;
    }
    Ok(std::hint::black_box(&buffer)[values - 1])
}
