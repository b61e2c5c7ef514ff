//! Opens clocks. The header reads a clock inline, unless `<time.h>` has no `clock_gettime`.

use crate::error::{object, put};
use std::ffi::c_int;
use vellum_timing::clock::{Clock, ClockError, ClockKind, read};

/// `VEL_BEST`.
const BEST: c_int = -1;

/// `struct vel_clock`.
#[derive(Debug)]
#[repr(C)]
pub struct VelClock {
    ns_per_tick: f64,
    ppm: f64,
    step_ns: f64,
    /// The kind: a `VEL_CLOCK_*` of the header.
    pub kind: c_int,
    reserved: c_int,
}

/// The kind with this number; `None` for `VEL_BEST`.
pub(crate) fn kind(number: c_int) -> Result<Option<ClockKind>, ClockError> {
    if number == BEST {
        return Ok(None);
    }
    let index = usize::try_from(number).ok();
    let found = index.and_then(|index| ClockKind::ALL.get(index).copied());
    found.map(Some).ok_or_else(|| ClockError::Unknown(number.to_string()))
}

pub(crate) fn open(number: c_int) -> Result<Clock, ClockError> {
    kind(number)?.map_or_else(Clock::best, Clock::open)
}

fn number(kind: ClockKind) -> c_int {
    ClockKind::ALL.iter().position(|one| *one == kind).map_or(BEST, |index| index as c_int)
}

/// Opens a clock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_clock_open(clock: *mut VelClock, kind: c_int) -> c_int {
    // SAFETY: by the header, `clock` is null or a live object that no other thread uses.
    let Some(place) = (unsafe { object(clock) }) else { return -1 };
    let opened = open(kind).map(|opened| VelClock {
        ns_per_tick: opened.ns_per_tick(),
        ppm: opened.ppm(),
        step_ns: opened.step_ns(),
        kind: number(opened.kind()),
        reserved: 0,
    });
    put(place, opened)
}

/// Reads one of the kernel's clocks, in its ticks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_stamp_call(clock: *const VelClock) -> u64 {
    // SAFETY: by the header, `clock` is null or a live object that no other thread uses.
    let number = unsafe { clock.as_ref() }.map_or(BEST, |clock| clock.kind);
    let kind = kind(number).ok().flatten().unwrap_or(ClockKind::MonotonicRaw);
    // The counter is read inline in the header only, so a counter clock falls back to a kernel clock here.
    kind.id().or(ClockKind::MonotonicRaw.id()).and_then(|id| read(id).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_kinds_match_the_header() {
        let header = include_str!("../../../include/vellum_measure.h");
        for kind in ClockKind::ALL {
            let name = format!("VEL_{} = {}", kind.name().to_uppercase().replace('-', "_"), number(kind));
            assert!(header.contains(&name), "{name}");
            assert_eq!(super::kind(number(kind)), Ok(Some(kind)));
        }
        assert_eq!(super::kind(BEST), Ok(None));
        assert!(super::kind(5).is_err() && super::kind(-2).is_err());
    }
}
