//! What a profile needs much room for: what the walker remembers, the index of stacks, and the desk to count
//! resident memory on.
//!
//! All is zero at first, and when a part begins. A page that was not written takes no memory: so nothing is
//! cleared by writing to it.

use super::part::Part;
use super::resident::Desk;
use super::walk::{Stack, Walker};
use core::sync::atomic::Ordering::Relaxed;
use vellum_sys::map;

/// Places of the index of stacks, twice as many as the stacks that a part has room for, nearly.
const STACKS: usize = 1 << 17;
/// Probes before a neighbourhood is full, and a stack is not entered.
const PROBES_MAX: usize = 256;

/// The tables. All zero: nothing is known.
#[repr(C)]
pub(super) struct Tables {
    pub(super) walker: Walker,
    pub(super) desk: Desk,
    /// Stacks by their hashes: the numbers of their entries' first words, plus one.
    stacks: [u32; STACKS],
}

impl Tables {
    /// Maps them, for good.
    pub(super) fn map() -> rustix::io::Result<*mut Tables> {
        map::reserve_writable(size_of::<Tables>()).map(core::ptr::with_exposed_provenance_mut)
    }

    /// Forgets everything: a part that is begun has no modules, lines or stacks.
    ///
    /// # Safety
    /// `tables` is null, or was [mapped](Tables::map) and is reached by nobody else.
    pub(super) unsafe fn clear(tables: *mut Tables) {
        if tables.is_null() {
            return;
        }
        // SAFETY: by this function's condition.
        let is_zero = unsafe { map::flush(tables.expose_provenance(), size_of::<Tables>()) }.is_ok();
        if !is_zero {
            // Memory that is locked keeps its frames.
            // SAFETY: as above; all zero is a valid value.
            unsafe { tables.write_bytes(0, 1) };
        }
    }

    /// The entries of all stacks.
    pub(super) fn entries(&self) -> impl Iterator<Item = u32> {
        self.stacks.iter().filter_map(|slot| slot.checked_sub(1))
    }

    /// The entry of a stack, made if there is none; `None` if there is no room.
    pub(super) fn find_or_add(&mut self, part: &mut Part, stack: &Stack) -> Option<u32> {
        let start = stack.hash as usize;
        for probe in 0..PROBES_MAX {
            let slot = &mut self.stacks[start.wrapping_add(probe) % STACKS];
            match slot.checked_sub(1) {
                Some(at) if part.stack(at).hash.load(Relaxed) == stack.hash => return Some(at),
                Some(_) => {}
                None => {
                    let at = part.add_stack(stack.hash, stack.frames())?;
                    *slot = at + 1;
                    return Some(at);
                }
            }
        }
        None
    }
}
