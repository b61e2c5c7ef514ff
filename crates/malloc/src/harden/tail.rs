//! The tail of a hardened block: bytes behind the requested ones that the program must not change.
//!
//! ```text
//! ┌───────────────────┬───┬────────────────┬──────────┐
//! │ program's bytes   │ 0 │ canary         │ size word │      a block of `whole` bytes
//! └───────────────────┴───┴────────────────┴──────────┘
//! 0               requested            whole-8       whole
//! ```
//!
//! The first byte past the program's is always zero, so that an unterminated string ends there. The canary's
//! bytes are computed from the key ([`crate::seal`]) and the block's address. The size word holds the
//! requested size and a checksum of it, by which an overwritten size is found. Size and checksum are masked
//! with a number made of the same key and address. The word's lowest byte is zero, as it may be the first
//! byte past the program's. A block in quarantine is zero up to its size word, which then holds [`FREED`].

use crate::misuse;
use crate::seal::keyed;

pub(super) const BYTES: usize = size_of::<u64>();

/// Bits of the size word: nothing, the size, its check.
const SIZE_SHIFT: u32 = 8;
const SIZE_BITS: u32 = 40;
const CHECK_SHIFT: u32 = SIZE_SHIFT + SIZE_BITS;
/// An odd number whose multiples spread sizes over the check's bits.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
const FREED: usize = (1 << SIZE_BITS) - 1;

fn mask(block: *const u8) -> u64 {
    (keyed(block as usize) as u64).wrapping_mul(SPREAD) & !((1 << SIZE_SHIFT) - 1)
}

fn word(block: *const u8, bytes: usize) -> u64 {
    let check = (bytes as u64).wrapping_mul(SPREAD) >> CHECK_SHIFT;
    mask(block) ^ ((bytes as u64) << SIZE_SHIFT | check << CHECK_SHIFT)
}

/// The size in a word, unless something else was written over it.
fn size_in(block: *const u8, found: u64) -> Option<usize> {
    let bytes = ((found ^ mask(block)) >> SIZE_SHIFT) as usize & FREED;
    (word(block, bytes) == found).then_some(bytes)
}

fn canary(block: *const u8, offset: usize, requested: usize) -> u8 {
    // Never zero but at the first place, lest a zero go unnoticed.
    let byte = (keyed(block as usize).rotate_left(17) >> (offset % 8 * 8)) as u8 | 1;
    if offset == requested { 0 } else { byte }
}

fn place(block: *mut u8, whole: usize) -> *mut u64 {
    block.wrapping_add(whole - BYTES).cast()
}

/// Writes the tail of a block. Safety: the block has `whole` bytes, a multiple of 8, of which `requested +
/// BYTES` are at most all.
pub(super) unsafe fn write(block: *mut u8, requested: usize, whole: usize) {
    // SAFETY: within the block.
    unsafe {
        for offset in requested..whole - BYTES {
            block.add(offset).write(canary(block, offset, requested));
        }
        place(block, whole).write(word(block, requested));
    }
}

/// The requested size, or the end of the process if the tail was written to or the block is free. Safety: a
/// block of `whole` bytes with a tail starts there.
pub(super) unsafe fn check(function: &str, block: *mut u8, whole: usize) -> usize {
    // SAFETY: within the block.
    let requested = size_in(block, unsafe { place(block, whole).read() });
    if requested == Some(FREED) {
        let mut line = misuse::begin(function, block);
        misuse::end(line.text("the block is already free (").decimal(whole as u64).text("-byte class)"));
    }
    let requested = requested.filter(|bytes| bytes + BYTES <= whole);
    let is_whole = |requested: usize| {
        // SAFETY: each offset is below `whole`, the length of the block.
        let byte = |offset: usize| unsafe { block.add(offset).read() };
        (requested..whole - BYTES).all(|offset| byte(offset) == canary(block, offset, requested))
    };
    match requested {
        Some(requested) if is_whole(requested) => requested,
        damaged => {
            let mut line = misuse::begin(function, block);
            line.text("bytes past the end of the block were written to (");
            if let Some(requested) = damaged {
                line.decimal(requested as u64).text(" bytes of a ");
            }
            misuse::end(line.decimal(whole as u64).text("-byte class)"));
        }
    }
}

/// Zeroes a block that is freed, and marks it. Safety: the block has `whole` bytes and is nobody's.
pub(super) unsafe fn fill(block: *mut u8, whole: usize) {
    // SAFETY: within the block.
    unsafe {
        block.write_bytes(0, whole - BYTES);
        place(block, whole).write(word(block, FREED));
    }
}

/// The first word of a filled block that is not as it was. Safety: the conditions of [`fill`].
pub(super) unsafe fn written_at(block: *mut u8, whole: usize) -> Option<usize> {
    // SAFETY: within the block, whose size is a multiple of 8.
    let (words, last) = unsafe {
        (core::slice::from_raw_parts(block.cast::<u64>(), whole / BYTES - 1), place(block, whole).read())
    };
    let end = (last != word(block, FREED)).then_some(words.len());
    words.iter().position(|&word| word != 0).or(end)
}

/// Ends the process if a filled block is not as it was. Safety: the conditions of [`fill`].
pub(super) unsafe fn check_fill(block: *mut u8, whole: usize) {
    // SAFETY: the block is a filled one, by this function's condition.
    if let Some(index) = unsafe { written_at(block, whole) } {
        let mut line = misuse::begin("free", block);
        line.text("the block was written to after it was freed, at offset ").decimal((index * BYTES) as u64);
        misuse::end(line.text(" (").decimal(whole as u64).text("-byte class)"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_back_and_nothing_else_is() {
        crate::seal::draw_key();
        let mut memory = [0u64; 64];
        let block = memory.as_mut_ptr().cast::<u8>();
        for bytes in [0, 1, 16, 4096, 1 << 38, FREED] {
            let written = word(block, bytes);
            assert_eq!(size_in(block, written), Some(bytes));
            assert_eq!(written & 0xff, 0, "a string ends there");
            let mistaken = (0..64).filter(|bit| size_in(block, written ^ 1 << bit).is_some()).count();
            assert_eq!(mistaken, 0, "one bit of {bytes}");
        }
    }

    #[test]
    fn tails_and_fills_are_as_written() {
        crate::seal::draw_key();
        let mut memory = [0xaau64; 64];
        let block = memory.as_mut_ptr().cast::<u8>();
        for requested in 0..=512 - BYTES {
            // SAFETY: the array is that long.
            unsafe {
                write(block, requested, 512);
                assert_eq!(block.add(requested).read(), 0, "the first byte past {requested}");
                assert_eq!(check("test", block, 512), requested);
                fill(block, 512);
                check_fill(block, 512);
            }
        }
    }
}
