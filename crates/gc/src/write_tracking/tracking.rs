//! The heap's account of writes, between the collections that use it.

use crate::write_tracking::Dirty;

/// See the head of this file.
pub(crate) struct Tracking {
    /// The account of writes, between cycles.
    pub account: Option<Dirty>,
    /// Its tracking ends piece by piece.
    pub is_leaving: bool,
}

impl Tracking {
    pub(crate) const fn new() -> Tracking {
        Tracking { account: None, is_leaving: false }
    }
}
