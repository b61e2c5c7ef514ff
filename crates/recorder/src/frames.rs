//! Facts about an instruction: whether it belongs to the user's source, and how to leave its frame.
//!
//! One table for the process, in private memory that a forked child gets with all it holds. Filled in once an
//! instruction, by looking at its module's unwinding tables and asking the command; read by everybody without
//! a lock.
//!
//! Invariants: a key is written once, by compare-and-swap, before its value; a value of 0 is one still being
//! filled in, for which another thread works it out again.

use crate::known::Known;
use crate::modules;
use core::ptr::null_mut;
use core::sync::atomic::{
    AtomicPtr, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use rustix::mm::{MapFlags, ProtFlags};

/// Places in the table.
const SLOTS: usize = 1 << 17;
/// Probes before a full neighbourhood is given up, and worked out each time.
const PROBES_MAX: usize = 64;
/// Bits of an address below the epoch.
const ADDRESS_BITS: u32 = 47;

struct Slot {
    key: AtomicU64,
    value: AtomicU64,
}

static TABLE: AtomicPtr<Slot> = AtomicPtr::new(null_mut());

/// The facts about the instruction that returns to `pc`, worked out now if nothing is.
pub(crate) fn of(pc: u64, epoch: u32) -> Known {
    let key = key(pc, epoch);
    let Some(slot) = slot_of(key) else {
        return modules::describe(pc, epoch);
    };
    let value = slot.value.load(Acquire);
    if value != 0 {
        return Known::from_bits(value);
    }
    let known = modules::describe(pc, epoch);
    slot.value.store(known.bits(), Release);
    known
}

/// The facts about the instruction that returns to `pc`, if that has been worked out and is where it belongs,
/// or one further.
#[inline(always)]
pub(crate) fn known(pc: u64, epoch: u32) -> Option<Known> {
    let table = TABLE.load(Relaxed);
    if table.is_null() {
        return None;
    }
    let key = key(pc, epoch);
    let start = start(key);
    // SAFETY: the indices are within the table, which stays.
    let slots = unsafe { [&*table.add(start), &*table.add((start + 1) % SLOTS)] };
    let slot = slots.into_iter().find(|slot| slot.key.load(Relaxed) == key)?;
    let value = slot.value.load(Acquire);
    (value != 0).then_some(Known::from_bits(value))
}

fn key(pc: u64, epoch: u32) -> u64 {
    pc | u64::from(epoch) << ADDRESS_BITS
}

fn start(key: u64) -> usize {
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize % SLOTS
}

/// The key's slot, which becomes its own if it had none.
fn slot_of(key: u64) -> Option<&'static Slot> {
    let table = table()?;
    let start = start(key);
    for probe in 0..PROBES_MAX {
        // SAFETY: the index is within the table, which stays.
        let slot = unsafe { &*table.add((start + probe) % SLOTS) };
        match slot.key.load(Relaxed) {
            there if there == key => return Some(slot),
            0 => match slot.key.compare_exchange(0, key, Relaxed, Relaxed) {
                Err(theirs) if theirs != key => {}
                _ => return Some(slot),
            },
            _ => {}
        }
    }
    None
}

fn table() -> Option<*const Slot> {
    let table = TABLE.load(Acquire);
    if !table.is_null() {
        return Some(table);
    }
    let bytes = SLOTS * size_of::<Slot>();
    // SAFETY: a new mapping wherever the kernel likes; zeros are empty slots.
    let fresh = unsafe {
        rustix::mm::mmap_anonymous(null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
    };
    let fresh = fresh.ok()?.cast::<Slot>();
    match TABLE.compare_exchange(null_mut(), fresh, Release, Acquire) {
        Ok(_) => Some(fresh),
        Err(theirs) => {
            // SAFETY: the mapping just made, which nobody else knows.
            let _ = unsafe { rustix::mm::munmap(fresh.cast(), bytes) };
            Some(theirs)
        }
    }
}
