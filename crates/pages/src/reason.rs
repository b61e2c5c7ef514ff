//! The reasons to flush frames, each with its counter. Also the number of cached pages from which on limits
//! matter.

use crate::units::PAGE;
use vellum_wire::Counter;

/// Below this many cached pages limits are not checked: so few cannot be what a process is killed for.
const CHECK_MIN: u64 = (1usize << 20).div_euclid(PAGE) as u64;

/// Why frames are flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    Decay,
    Peak,
    Pressure,
    Asked,
}

impl Reason {
    pub(crate) fn counter(self) -> Counter {
        match self {
            Reason::Decay => Counter::FlushedDecay,
            Reason::Peak => Counter::FlushedPeak,
            Reason::Pressure => Counter::FlushedPressure,
            Reason::Asked => Counter::FlushedAsked,
        }
    }
}

/// True if this many cached pages could matter to a limit.
pub(crate) fn is_worth_checking(cached: u64) -> bool {
    cached >= CHECK_MIN
}
