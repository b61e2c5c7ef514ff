//! The heap's memory: blocks of 16 KiB and large objects, their descriptors, and the address table.
//!
//! | file | contents |
//! | --- | --- |
//! | `size_class`, `slot` | sizes of objects; slots (sets of objects of one size and sort) |
//! | `block` | a block's descriptor and bitmaps |
//! | `descriptors` | memory for descriptors |
//! | `address_table` | the table from addresses to blocks |
//! | `layout` | types |
//! | `block_source` | taking memory from the page layer or the pager, and returning it |
//! | `survivor_statistics` | the survivors among a slot's young objects |
//! | `heap_space` | the heap's blocks, free blocks and slots |
//!
//! # Invariants
//! * No object has a header: its block's descriptor has its size and sort (typed, untyped or atomic).
//! * Descriptors are never unmapped.
//!
//! Source: Smith and Morrisett 1998. Departure: blocks of objects of one size and sort replace its pages.

pub(crate) mod address_table;
pub(crate) mod block;
pub(crate) mod block_source;
pub(crate) mod descriptors;
pub(crate) mod heap_space;
pub(crate) mod layout;
pub(crate) mod size_class;
pub(crate) mod slot;
pub(crate) mod survivor_statistics;
