//! Facts about an instruction: whether it belongs to the user's source, and how to leave its frame.
//!
//! Filled in once per instruction, from its module's unwinding tables and the command's answer.

use crate::facts::Facts;
use crate::known::Known;
use crate::modules;

/// Bits of an address below the epoch.
const ADDRESS_BITS: u32 = 47;

static FACTS: Facts = Facts::new();

/// The facts about the instruction that returns to `pc`, computed now if they are missing.
pub(crate) fn of(pc: u64, epoch: u32) -> Known {
    let known = FACTS.of(key(pc, epoch), || modules::describe(pc, epoch).bits());
    known.map_or_else(|| modules::describe(pc, epoch), Known::from_bits)
}

/// The facts about the instruction that returns to `pc`, if they are in the table.
#[inline(always)]
pub(crate) fn known(pc: u64, epoch: u32) -> Option<Known> {
    FACTS.known(key(pc, epoch)).map(Known::from_bits)
}

fn key(pc: u64, epoch: u32) -> u64 {
    pc | u64::from(epoch) << ADDRESS_BITS
}
