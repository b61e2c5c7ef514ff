//! The tables for the end of objects' lives, together.

use crate::death::disclaim::Disclaimers;
use crate::death::finalizers::Finalizer;
use crate::death::links::Link;
use crate::death::samples::Samples;
use crate::death::table::Table;
use crate::death::uncollectable::Kept;
use crate::space::block::Address;
use vellum_pages::Buffer;

/// Every such table of a heap.
pub(crate) struct Deaths {
    pub finalizers: Table<Finalizer>,
    pub disclaimers: Disclaimers,
    pub links: Table<Link>,
    pub kept: Kept,
    /// Values by their keys.
    pub ephemerons: Table<Address>,
    /// Objects freed by their users, until the next collection.
    pub freed: Buffer<Address>,
    /// Objects that a profile knows.
    pub samples: Samples,
    /// Finalizers that are due.
    pub due: usize,
    /// The place in their table from which the next is searched.
    pub due_from: usize,
    pub on_demand: bool,
}

impl Deaths {
    pub(crate) const fn new() -> Deaths {
        Deaths {
            finalizers: Table::new(),
            disclaimers: Disclaimers::new(),
            links: Table::new(),
            kept: Kept::new(),
            ephemerons: Table::new(),
            freed: Buffer::new(),
            samples: Samples::new(),
            due: 0,
            due_from: 0,
            on_demand: false,
        }
    }
}
