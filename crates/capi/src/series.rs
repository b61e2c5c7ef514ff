//! Series: all observations (times and faults) of one operation, in order.

use crate::error::{failed, object, put, shared};
use crate::sample::{VelBase, VelStat, put_stat};
use std::ffi::{CString, c_char, c_int};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ptr::null;
use vellum_measure::{Observation, Series, json, line};

/// A series with its name as a C string.
#[derive(Debug)]
pub struct VelSeries {
    name: CString,
    series: Series,
}

impl From<Series> for VelSeries {
    fn from(series: Series) -> VelSeries {
        VelSeries { name: CString::new(series.name.replace('\0', " ")).unwrap_or_default(), series }
    }
}

/// `struct vel_observation`.
#[derive(Debug)]
#[repr(C)]
pub struct VelObservation {
    start_ns: u64,
    wall_ns: f64,
    cpu_ns: f64,
    steal_ns: f64,
    minor_faults: u32,
    major_faults: u32,
    voluntary_switches: u32,
    involuntary_switches: u32,
}

impl From<&Observation> for VelObservation {
    fn from(one: &Observation) -> VelObservation {
        VelObservation {
            start_ns: one.start_ns,
            wall_ns: one.wall_ns,
            cpu_ns: one.cpu_ns.unwrap_or(f64::NAN),
            steal_ns: one.steal_ns.unwrap_or(f64::NAN),
            minor_faults: one.minor,
            major_faults: one.major,
            voluntary_switches: one.voluntary,
            involuntary_switches: one.involuntary,
        }
    }
}

/// The observation with this index.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_series_get(
    series: *const VelSeries,
    index: usize,
    observation: *mut VelObservation,
) -> c_int {
    // SAFETY: by the header, `series` and `observation` are null or live objects that no other thread uses.
    let (Some(series), Some(place)) = (unsafe { (shared(series), object(observation)) }) else { return -1 };
    let observations = &series.series.observations;
    let none = || format!("observation {index}: there are {}, counted from 0", observations.len());
    put(place, observations.get(index).map(VelObservation::from).ok_or_else(none))
}

/// The base: the time of an empty operation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_series_base(series: *const VelSeries, base: *mut VelBase) -> c_int {
    // SAFETY: by the header, `series` and `base` are null or live objects that no other thread uses.
    let (Some(series), Some(place)) = (unsafe { (shared(series), object(base)) }) else { return -1 };
    put(place, series.series.base.as_ref().map(VelBase::from).ok_or("this series has no base"))
}

/// The statistics per operation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_series_stat(series: *const VelSeries, stat: *mut VelStat) -> c_int {
    // SAFETY: by the header, `series` and `stat` are null or live objects that no other thread uses.
    let (Some(series), Some(place)) = (unsafe { (shared(series), object(stat)) }) else { return -1 };
    put_stat(series.series.stat(), place)
}

/// Writes the series to a file or to standard output.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_series_write(
    series: *const VelSeries,
    path: *const c_char,
    format: c_int,
    append: c_int,
) -> c_int {
    // SAFETY: by the header, `series` is null or live and not used elsewhere, `path` is null or a C string.
    let (Some(series), path) = (unsafe { (shared(series), crate::text(path)) }) else { return -1 };
    let Some(format) = Format::of(format) else {
        return failed(format!("format {format}: there are VEL_LINES and VEL_JSON"));
    };
    if append != 0 && format != Format::Lines {
        return failed("only lines can be added to: a document in JSON has one beginning");
    }
    let written = match &path {
        None => write(&series.series, format, io::stdout().lock()),
        Some(path) => {
            let mut options = File::options();
            options.create(true).write(true).append(append != 0).truncate(append == 0);
            match options.open(path) {
                Ok(file) => write(&series.series, format, file),
                Err(why) => Err(why.to_string()),
            }
        }
    };
    match written {
        Ok(()) => 0,
        Err(why) => failed(format!("writing {}: {why}", path.as_deref().unwrap_or("standard output"))),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Lines,
    Json,
}

impl Format {
    fn of(number: c_int) -> Option<Format> {
        [Format::Lines, Format::Json].get(usize::try_from(number).ok()?).copied()
    }
}

fn write(series: &Series, format: Format, out: impl Write) -> Result<(), String> {
    let mut out = BufWriter::new(out);
    let written = match format {
        Format::Lines => line::write_series(&mut out, series).map_err(|why| why.to_string()),
        Format::Json => json::write(&mut out, [series]).map_err(|why| why.to_string()),
    };
    written.and_then(|()| out.flush().map_err(|why| why.to_string()))
}

reads! {
    /// The name of a series.
    vel_series_name(VelSeries) -> *const c_char: null(), |series| series.name.as_ptr();
    /// The number of observations.
    vel_series_count(VelSeries) -> usize: 0, |series| series.series.observations.len();
    /// The number of operations per observation.
    vel_series_batch(VelSeries) -> u64: 0, |series| series.series.batch;
    /// The number of marks during the observations.
    vel_series_mark_count(VelSeries) -> usize: 0, |series| series.series.marks.len();
}

frees! {
    /// Frees the series.
    vel_series_free(VelSeries);
}
