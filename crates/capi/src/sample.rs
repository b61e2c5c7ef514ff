//! Samples: lists of numbers, their statistics, and the *base* (the time of an empty operation).

use crate::clock::{VelClock, open};
use crate::error::{failed, handed_out, none, object, put, shared};
use std::ffi::c_int;
use std::ptr::null;
use vellum_measure::{Base, Sample, Stat};
use vellum_timing::clock::measure_base_on;

/// `struct vel_stat`.
#[derive(Debug)]
#[repr(C)]
pub struct VelStat {
    n: u64,
    mean: f64,
    min: f64,
    max: f64,
    std: f64,
}

/// `struct vel_base`.
#[derive(Debug)]
#[repr(C)]
pub struct VelBase {
    n: u64,
    mean: f64,
    min: f64,
    max: f64,
    std: f64,
    step: f64,
}

impl From<Stat> for VelStat {
    fn from(stat: Stat) -> VelStat {
        VelStat { n: stat.n, mean: stat.mean, min: stat.min, max: stat.max, std: stat.std }
    }
}

impl From<&Base> for VelBase {
    fn from(base: &Base) -> VelBase {
        let Base { n, mean, min, max, std, step, .. } = *base;
        VelBase { n, mean, min, max, std, step }
    }
}

impl From<&VelBase> for Base {
    fn from(base: &VelBase) -> Base {
        let VelBase { n, mean, min, max, std, step } = *base;
        Base { clock: String::new(), n, mean, min, max, std, step }
    }
}

/// The largest number of values for which room is reserved at once.
const CAPACITY_MAX: usize = 1 << 24;

/// Writes `stat` to `place`; an error without it.
pub(crate) fn put_stat(stat: Option<Stat>, place: &mut VelStat) -> c_int {
    let why = "no figures: there are no values, or one of them is not a finite number";
    put(place, stat.map(VelStat::from).ok_or(why))
}

/// An empty sample. At most room for 16,777,216 values is reserved at once; more is allocated as needed.
#[unsafe(no_mangle)]
pub extern "C" fn vel_sample_new(capacity: usize) -> *mut Sample {
    // Reserved first as a test: a failed allocation inside `Sample` would end the program.
    if Vec::<f64>::new().try_reserve_exact(capacity.min(CAPACITY_MAX)).is_err() {
        return none("no memory for a sample: make it smaller, or raise the limit on memory (ulimit -v)");
    }
    handed_out(Sample::new(capacity.min(CAPACITY_MAX)))
}

/// Adds a value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_sample_add(sample: *mut Sample, value: f64) {
    // SAFETY: by the header, `sample` is null or a live object that no other thread uses.
    if let Some(sample) = unsafe { object(sample) } {
        sample.add(value);
    }
}

/// The values of a sample.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_sample_values(sample: *const Sample, count: *mut usize) -> *const f64 {
    // SAFETY: by the header, `sample` and `count` are null or live objects that no other thread uses.
    let (Some(sample), Some(count)) = (unsafe { (shared(sample), object(count)) }) else { return null() };
    *count = sample.values().len();
    sample.values().as_ptr()
}

/// The statistics of a sample.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_sample_stat(sample: *const Sample, stat: *mut VelStat) -> c_int {
    // SAFETY: by the header, `sample` and `stat` are null or live objects that no other thread uses.
    let (Some(sample), Some(place)) = (unsafe { (shared(sample), object(stat)) }) else { return -1 };
    put_stat(sample.stat(), place)
}

/// Measures the base: times an empty operation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_measure_base(
    clock: *const VelClock,
    n: usize,
    base: *mut VelBase,
    timings: *mut *mut Sample,
) -> c_int {
    // SAFETY: by the header, `clock`, `base` and `timings` are null or live and not used elsewhere.
    let (Some(clock), Some(place), timings) = (unsafe { (shared(clock), object(base), timings.as_mut()) })
    else {
        return -1;
    };
    let measured = open(clock.kind).and_then(|clock| measure_base_on(&clock, n));
    let series = match measured {
        Ok(series) => series,
        Err(why) => return failed(why),
    };
    if let Some(base) = &series.base {
        *place = base.into();
    }
    if let Some(timings) = timings {
        *timings = handed_out(series.observations.iter().map(|one| one.wall_ns).collect());
    }
    0
}

/// The number of operations per observation that an operation of this duration needs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_batch_for(base: *const VelBase, operation_ns: f64) -> u64 {
    // SAFETY: by the header, `base` is null or a live object that no other thread uses.
    let Some(base) = (unsafe { shared(base) }) else { return 1 };
    Base::from(base).batch_for(operation_ns).unwrap_or(1)
}

frees! {
    /// Frees the sample.
    vel_sample_free(Sample);
}
