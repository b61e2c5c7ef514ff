//! Profiles: times by the part of the program in which they were spent.

use crate::error::{handed_out, none, object, put, shared, taken_back};
use std::ffi::{CString, c_char, c_int};
use std::ptr::{null, null_mut};
use vellum_timing::profile::{self, HZ, Profile, ProfileOptions, Profiler, Scope};

/// A profile with its texts as C reads them.
#[derive(Debug)]
pub struct VelProfile {
    profile: Profile,
    text: CString,
    /// Symbol and module of each row.
    names: Vec<[CString; 2]>,
}

/// `struct vel_profile_row`.
#[derive(Debug)]
#[repr(C)]
pub struct VelProfileRow {
    symbol: *const c_char,
    module: *const c_char,
    in_kernel: c_int,
    reserved: c_int,
    samples: u64,
    ms: f64,
    percent: f64,
}

impl From<Profile> for VelProfile {
    fn from(profile: Profile) -> VelProfile {
        let text = |text: &str| CString::new(text.replace('\0', " ")).unwrap_or_default();
        VelProfile {
            text: text(&profile.to_string()),
            names: profile.rows.iter().map(|row| [text(&row.symbol), text(&row.module)]).collect(),
            profile,
        }
    }
}

/// Starts sampling.
#[unsafe(no_mangle)]
pub extern "C" fn vel_profon(whole_process: c_int, hz: u32) -> *mut Profiler {
    let scope = if whole_process != 0 { Scope::Process } else { Scope::Thread };
    let hz = if hz == 0 { HZ } else { hz };
    profile::on(&ProfileOptions { scope, hz, sampler: None }).map_or_else(none, handed_out)
}

/// Stops sampling.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_profoff(profiler: *mut Profiler) -> *mut VelProfile {
    // SAFETY: by the header, `profiler` is null or a live object that no other thread uses.
    let Some(_) = (unsafe { object(profiler) }) else { return null_mut() };
    // SAFETY: checked above not to be null; by the header, the caller does not use it again.
    match unsafe { taken_back(profiler) } {
        Some(profiler) => handed_out(profiler.off().into()),
        None => null_mut(),
    }
}

/// The numbers of samples.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_profile_totals(
    profile: *const VelProfile,
    samples: *mut u64,
    kernel: *mut u64,
    lost: *mut u64,
    sees_kernel: *mut c_int,
) {
    // SAFETY: by the header, `profile` and the places are null or live objects that no other thread uses.
    unsafe {
        let Some(VelProfile { profile, .. }) = shared(profile) else { return };
        let places = [(samples, profile.samples), (kernel, profile.kernel_samples), (lost, profile.lost)];
        for (place, value) in places {
            if let Some(place) = place.as_mut() {
                *place = value;
            }
        }
        if let Some(place) = sees_kernel.as_mut() {
            *place = c_int::from(profile.sees_kernel);
        }
    }
}

/// The row with this index.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_profile_get(
    profile: *const VelProfile,
    index: usize,
    row: *mut VelProfileRow,
) -> c_int {
    // SAFETY: by the header, `profile` and `row` are null or live objects that no other thread uses.
    let (Some(VelProfile { profile, names, .. }), Some(place)) = (unsafe { (shared(profile), object(row)) })
    else {
        return -1;
    };
    let found = profile.rows.get(index).zip(names.get(index)).map(|(row, [symbol, module])| VelProfileRow {
        symbol: symbol.as_ptr(),
        module: module.as_ptr(),
        in_kernel: c_int::from(row.in_kernel),
        reserved: 0,
        samples: row.samples,
        ms: row.ms,
        percent: row.percent,
    });
    put(place, found.ok_or_else(|| format!("row {index}: there are {}, counted from 0", names.len())))
}

reads! {
    /// The number of symbols.
    vel_profile_count(VelProfile) -> usize: 0, |profile| profile.names.len();
    /// The table as text.
    vel_profile_text(VelProfile) -> *const c_char: null(), |profile| profile.text.as_ptr();
}

frees! {
    /// Frees the profile.
    vel_profile_free(VelProfile);
}
