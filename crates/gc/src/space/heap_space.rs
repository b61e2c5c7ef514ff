//! The heap's memory: its blocks, its free blocks, and for each slot (the objects of one size and pointer
//! layout) the blocks with room.
//!
//! # Invariants (checked by `validate`)
//! * `blocks` has every block once; a large object is a block of its own. The address table leads to each.
//! * A slot's list of blocks with room has blocks of that slot only, and none from which a thread allocates.
//! * `bytes` is the sum of the extents of `blocks`, and never above the limit.

use crate::space::address_table::AddressTable;
use crate::space::block::Block;
use crate::space::block_source::BlockSource;
use crate::space::descriptors::Descriptors;
use crate::space::layout::{Layout, LayoutRoom};
use crate::space::slot::Slot;
use core::ptr::null;
use vellum_pages::Buffer;
use vellum_sys::Addr;

pub(crate) struct HeapSpace {
    pub source: BlockSource,
    /// Which address belongs to which block.
    pub table: AddressTable,
    /// The kinds of objects, [`SLOTS_MAX`](crate::SLOTS_MAX) at most. The first ones are those of untyped
    /// objects, by class.
    pub slots: Buffer<Slot>,
    pub layouts: *const Layout,
    pub layout_room: LayoutRoom,
    /// Blocks and large objects.
    pub blocks: Buffer<&'static Block>,
    /// Free blocks' addresses.
    pub pool: Buffer<Addr>,
    /// Blocks of the pool that were not needed at the last collection.
    pub surplus: usize,
    /// The last collection gave most of the heap back.
    pub shrinks: bool,
    /// Extents of dead large objects.
    pub doomed: Buffer<Addr>,
    pub descriptors: Descriptors,
    /// Bytes of blocks and large objects.
    pub bytes: usize,
}

impl HeapSpace {
    pub(crate) const fn new() -> HeapSpace {
        HeapSpace {
            source: BlockSource::new(),
            table: AddressTable::none(),
            slots: Buffer::new(),
            layouts: null(),
            layout_room: LayoutRoom::new(),
            blocks: Buffer::new(),
            pool: Buffer::new(),
            surplus: 0,
            shrinks: false,
            doomed: Buffer::new(),
            descriptors: Descriptors::new(),
            bytes: 0,
        }
    }
}
