//! The heap's memory: blocks of 16 KiB and large objects, their descriptors, and the address table.
//!
//! | file | what it is |
//! | --- | --- |
//! | `size_class` | sizes and slots |
//! | `block` | a block's descriptor and bitmaps |
//! | `descriptors` | memory for descriptors |
//! | `address_table` | address to block |
//! | `layout` | types |
//! | `block_source` | where pages come from |
//! | `survivor_statistics` | the survivors among a slot's young objects |
//! | `vacancy` | when free blocks are discardable |
//!
//! # Invariants
//! * No object has a header: size and sort are its block's.
//! * Descriptors are never unmapped.
//!
//! Source: Smith and Morrisett 1998, with blocks of one size and sort in place of its pages.

pub(crate) mod address_table;
pub(crate) mod block;
pub(crate) mod block_source;
pub(crate) mod descriptors;
pub(crate) mod heap_space;
pub(crate) mod layout;
pub(crate) mod size_class;
pub(crate) mod slot;
pub(crate) mod survivor_statistics;
