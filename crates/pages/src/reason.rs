//! Why frames are flushed, and the counter of each reason.

use vellum_wire::Counter;

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
