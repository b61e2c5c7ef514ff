//! The end of an object's life, and what postpones it.
//!
//! | file | what it is |
//! | --- | --- |
//! | `finalizers`, `run` | functions that run when an object has died |
//! | `disclaim` | callbacks that decide whether a dead object goes |
//! | `links` | pointers that become null |
//! | `ephemerons` | values that live as long as their keys |
//! | `uncollectable` | objects that stay until they are freed |
//! | `explicit_free` | objects that their users free |
//! | `samples` | objects that a profile of the heap knows |
//! | `table`, `deaths` | tables by address, and all of them together |
//!
//! # Invariants
//! * Objects that a table knows by their addresses do not move; but for samples, whose table follows them.
//! * The program's functions run with the world going on and no lock held.
//!
//! Source: the interfaces of the Boehm-Demers-Weiser collector; Hayes 1997 (ephemerons).

pub(crate) mod deaths;
pub(crate) mod disclaim;
pub(crate) mod ephemerons;
pub(crate) mod explicit_free;
pub(crate) mod finalizers;
pub(crate) mod links;
pub(crate) mod run;
pub(crate) mod samples;
pub(crate) mod table;
pub(crate) mod uncollectable;
