//! The end of objects' lives: the callbacks and tables that react to an object's death or postpone it.
//!
//! | file | contents |
//! | --- | --- |
//! | `finalizers` | functions that run when an object has died |
//! | `disclaim` | callbacks that decide whether a dead object is freed |
//! | `links` | pointers that become null |
//! | `ephemerons` | values that live as long as their keys |
//! | `uncollectable` | objects that stay until they are freed |
//! | `explicit_free` | objects that the program frees itself |
//! | `samples` | objects sampled for a heap profile |
//! | `table` | the hash table, keyed by addresses, that these files use |
//!
//! # Invariants
//! * Objects in these tables do not move. The exceptions are samples and the values of ephemerons, whose
//!   entries are updated.
//! * The program's functions are called while its threads run, with no lock held.
//!
//! Source: the interfaces of the Boehm-Demers-Weiser collector; Hayes 1997 (ephemerons).

pub(crate) mod disclaim;
pub(crate) mod ephemerons;
pub(crate) mod explicit_free;
pub(crate) mod finalizers;
pub(crate) mod links;
pub(crate) mod samples;
pub(crate) mod table;
pub(crate) mod uncollectable;

use crate::death::disclaim::Disclaimers;
use crate::death::finalizers::Finalizer;
use crate::death::links::Link;
use crate::death::samples::Samples;
use crate::death::table::Table;
use crate::death::uncollectable::Kept;
use vellum_pages::Buffer;
use vellum_sys::Addr;

/// Every such table of a heap.
pub(crate) struct Deaths {
    pub finalizers: Table<Finalizer>,
    pub disclaimers: Disclaimers,
    pub links: Table<Link>,
    pub kept: Kept,
    /// Values by their keys.
    pub ephemerons: Table<Addr>,
    /// Objects freed by their users, until the next collection.
    pub freed: Buffer<Addr>,
    /// Objects of a profile.
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
