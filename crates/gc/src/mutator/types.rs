//! Makes types (maps of pointers) and slots (all objects of one size and type) when they are first needed.

use crate::heap::Heap;
use crate::instance::Collector;
use crate::process::visitor::TraceFn;
use crate::space::block::Scan;
use crate::space::layout::{Layout, Shape};
use crate::space::size_class::{SLOTS_MAX, bytes_of};
use crate::space::slot::{NO_SLOT, Slot};
use core::cell::Cell;
use vellum_pages::PAGE;

impl Collector {
    /// The layout of `shape`, made at its first use; `None` if memory is out. `procedure` is the callback
    /// whose address the shape has.
    pub(crate) fn layout(
        &mut self,
        shape: Shape,
        procedure: Option<(TraceFn, usize)>,
    ) -> Option<&'static Layout> {
        let mut next = self.heap.space.layouts;
        // SAFETY: null, or a layout, which lives for ever.
        while let Some(layout) = unsafe { next.as_ref() } {
            if layout.shape() == shape {
                return Some(layout);
            }
            next = layout.next.get();
        }
        let is_there = self.heap.space.layout_room.any()
            || (self.heap.may_take(PAGE) && self.heap.space.layout_room.fill());
        if !is_there {
            return None;
        }
        let layout = self.heap.space.layout_room.take()?;
        layout.words.set(shape.words);
        layout.has_pointers.set(shape.has_pointers());
        layout.pointers.set(shape.pointers);
        layout.procedure.set(procedure);
        if procedure.is_some() && !self.heap.has_procedures {
            self.heap.has_procedures = true;
            self.plan.drop_cycle(&mut self.heap);
            self.plan.end_account(&mut self.heap);
        }
        layout.next.set(self.heap.space.layouts);
        self.heap.space.layouts = layout;
        let class = crate::space::size_class::class_of(shape.bytes());
        layout.bytes.set(shape.bytes() as u32);
        layout.slot.set(u32::from(self.heap.slot_of(layout, class)));
        Some(layout)
    }
}

impl Heap {
    /// The slot of objects of `class` made of elements of `layout`, made at its first use; the untyped slot
    /// if slots have run out.
    pub(crate) fn slot_of(&mut self, layout: &'static Layout, class: usize) -> u16 {
        let known: &Cell<u16> = &layout.array_slots[class];
        if known.get() != 0 {
            return known.get();
        }
        // Pointer-free objects of a type read zero at first, and so cannot share the atomic slots.
        let slot = self.new_slot(class, layout.scan(), layout);
        known.set(slot.unwrap_or(class as u16));
        known.get()
    }

    pub(crate) fn new_slot(&mut self, class: usize, scan: Scan, layout: *const Layout) -> Option<u16> {
        let slot = self.space.slots.len();
        if slot == SLOTS_MAX || slot == self.space.slots.capacity() && !self.may_take(PAGE) {
            return None;
        }
        self.space.slots.push(Slot { size: bytes_of(class), scan, layout, ..NO_SLOT }).ok()?;
        Some(slot as u16)
    }
}
