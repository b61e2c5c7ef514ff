//! Seals of free blocks, by which a forged link and a second free are found.
//!
//! A free block's first word leads to the next free block; its second is the link's **seal**:
//!
//! ```text
//! free block   ┌────────┬────────────────────────┬ ─ ─
//!              │  next  │  next + address + KEY  │
//!              └────────┴────────────────────────┴ ─ ─
//! ```
//!
//! `KEY` is random, one for each process, except for its highest byte.
//!
//! - **A forged link ends the process.** The two words are compared when a block leaves a list, so that no
//!   overwritten address is handed out. An attacker who can write to free memory must guess 56 bits. With the
//!   block's address in the sum, a sealed pair is not valid in another block.
//! - **A second free ends the process.** The seal is zeroed when a block is handed out, so a block that is
//!   freed with a valid seal is free already. The highest byte of the key, and so of every seal, is [`MARK`].
//!   The fast path of `free` tests that byte alone. Blocks of a `batch` were on no list, and may hold an old
//!   seal: their slabs are marked ([`crate::slab::Slab::unclean`]).
//! - **A forked child** may find another thread's fast path half done. The seal is therefore written before
//!   the block is on a list, and zeroed after the block has left the list.
//! - **A limit:** an attacker who can *read* a free block and has its address can compute the key.
//!
//! Why not an encoded link? The comparison is not on the path from one link to the next, so it costs no
//! latency. Encoding and decoding take more instructions. If only a few low bytes are overwritten, an encoded
//! link still decodes to some address of the slab, while the seal fails.

use crate::arch;
use core::arch::global_asm;
use core::cell::Cell;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed, Ordering::Release, compiler_fence};

// The process's key; 0 until the first block is placed. A hidden symbol, so that it is one operand away: a
// static of another crate is reached through the global offset table.
global_asm!(
    ".pushsection .bss.vellum_key,\"aw\",@nobits",
    ".balign 8",
    ".globl vellum_key",
    ".hidden vellum_key",
    ".type vellum_key,@object",
    ".size vellum_key,8",
    "vellum_key:",
    ".zero 8",
    ".popsection",
);

/// Spreads a weak seed over all bits: the golden ratio's fraction.
const SPREAD: usize = 0x9e37_79b9_7f4a_7c15;

/// The highest byte of every seal. No text in UTF-8 has it, no pointer, no small number and no usual
/// floating-point one.
const MARK: u8 = 0xf5;
const MARK_SHIFT: u32 = usize::BITS - u8::BITS;
const MARK_UNIT: usize = 1 << MARK_SHIFT;
const MARK_SHIFTED: usize = (MARK as usize) << MARK_SHIFT;
/// The sum of two addresses is below this.
const ADDRESSES: usize = 1 << 48;

#[repr(C)]
#[derive(Debug)]
pub(crate) struct Block {
    /// The next free block of the same list.
    next: Cell<*mut Block>,
    seal: Cell<usize>,
}

const _: () = assert!(size_of::<Block>() <= crate::class::GRANULE);

/// Draws the key, before any block is handed out. May be called again, and by several threads.
pub(crate) fn draw_key() {
    // SAFETY: the word above lives for ever, and zero is a number.
    let key = unsafe { &*arch::key().cast::<AtomicUsize>() };
    if key.load(Relaxed) == 0 {
        // The first to come decides. A key of 0 would mean: not drawn.
        let _ = key.compare_exchange(0, key_of(random()), Relaxed, Relaxed);
    }
}

/// The key from a random word: the mark on top, and below it a number that can take the sum of two addresses
/// without a carry into the mark.
fn key_of(random: usize) -> usize {
    MARK_SHIFTED | (random % (MARK_UNIT - ADDRESSES))
}

#[inline(always)]
pub(crate) fn keyed(word: usize) -> usize {
    arch::xor_key(word)
}

/// A random word from the kernel, or from the bytes that the kernel gave the process at its start.
pub fn random() -> usize {
    let mut word = 0usize;
    let place = [&raw mut word as usize, size_of::<usize>(), libc::GRND_NONBLOCK as usize, 0, 0, 0];
    // SAFETY: the kernel writes at most a word's bytes to `word`.
    let got = unsafe { vellum_sys::raw::syscall(libc::SYS_getrandom, place) };
    if got == Ok(size_of::<usize>()) {
        return word;
    }
    // SAFETY: `getauxval` has no preconditions.
    let start = unsafe { libc::getauxval(libc::AT_RANDOM) } as *const usize;
    // SAFETY: sixteen random bytes that the kernel put on the first stack, of any alignment.
    let seed = if start.is_null() { 0 } else { unsafe { start.read_unaligned() } };
    // The program may use the same bytes for its own secrets; without any, an address is the seed.
    (seed ^ (&raw const word as usize)).wrapping_mul(SPREAD).rotate_left(29).wrapping_mul(SPREAD)
}

impl Block {
    #[inline(always)]
    fn seal_of(&self, next: *mut Block) -> usize {
        arch::add_key((next as usize).wrapping_add(core::ptr::from_ref(self) as usize))
    }

    /// Makes the block a free block that leads to `next`.
    #[inline(always)]
    pub(crate) fn link(&self, next: *mut Block) {
        self.next.set(next);
        self.seal.set(self.seal_of(next));
        compiler_fence(Release);
    }

    /// True if the seal has the mark of all seals. The block need not be free: see [`Block::is_sealed`].
    #[inline(always)]
    pub(crate) fn may_be_sealed(&self) -> bool {
        (self.seal.get() >> MARK_SHIFT) as u8 == MARK
    }

    /// True if the block has a valid seal: it is free, or was, and has not been on a list since.
    #[inline]
    pub(crate) fn is_sealed(&self) -> bool {
        self.sealed_next().is_some()
    }

    /// The next block of the list, if the seal is valid.
    #[inline(always)]
    pub(crate) fn sealed_next(&self) -> Option<*mut Block> {
        let next = self.next.get();
        (self.seal_of(next) == self.seal.get()).then_some(next)
    }

    #[inline(always)]
    pub(crate) fn unseal(&self) {
        compiler_fence(Release);
        self.seal.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ptr::null_mut;

    #[test]
    fn a_seal_holds_for_one_link_at_one_place() {
        draw_key();
        let blank = || Block { next: Cell::new(null_mut()), seal: Cell::new(0) };
        let (a, b) = (blank(), blank());
        assert!(!a.is_sealed(), "zeros are no seal");
        a.link(core::ptr::from_ref(&b).cast_mut());
        assert!(a.is_sealed());
        assert_eq!(a.next(), core::ptr::from_ref(&b).cast_mut());
        b.next.set(a.next.get());
        b.seal.set(a.seal.get());
        assert!(!b.is_sealed(), "another block's seal");
        for bit in 0..usize::BITS {
            let link = a.next.get();
            a.next.set((link as usize ^ 1 << bit) as *mut Block);
            assert!(!a.is_sealed(), "bit {bit} of the link");
            a.next.set(link);
        }
        a.unseal();
        assert!(!a.is_sealed());
        a.link(null_mut());
        assert!(a.is_sealed() && a.next().is_null());
    }

    #[test]
    fn keys_differ() {
        assert_ne!(random(), random());
        assert_ne!(key_of(random()), key_of(random()));
    }

    #[test]
    fn every_seal_has_the_mark() {
        let sums = [0, 1, ADDRESSES / 2, ADDRESSES - 1];
        for random in
            [0, 1, usize::MAX, MARK_UNIT - 1, MARK_UNIT - ADDRESSES - 1, MARK_UNIT - ADDRESSES, random()]
        {
            for sum in sums {
                let seal = key_of(random) + sum;
                assert_eq!(seal >> MARK_SHIFT, usize::from(MARK), "random {random:#x}, addresses {sum:#x}");
            }
        }
        draw_key();
        let block = Block { next: Cell::new(null_mut()), seal: Cell::new(0) };
        assert!(!block.may_be_sealed(), "zeros have no mark");
        block.link(core::ptr::from_ref(&block).cast_mut());
        assert!(block.may_be_sealed() && block.is_sealed());
        block.seal.set(block.seal.get() ^ 1);
        assert!(block.may_be_sealed() && !block.is_sealed(), "the mark is not the seal");
        block.unseal();
        assert!(!block.may_be_sealed());
    }
}
