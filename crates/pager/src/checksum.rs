//! A page's checksum: 128 bits, keyed afresh in each process.
//!
//! It serves twice. A page that comes back from the store must have the sum that it had when it went, or the
//! store is corrupt and the program is stopped. And a page that is taken out of memory with the sum that its
//! copy in the store has is unchanged, and need not be written again: so no write to a clean page ever has to
//! be caught, which would cost a fault each.
//!
//! The second use stakes data on the sum, so it is long and keyed: a page whose change would not be seen is
//! met with a chance of about 2^-60 at most (2^-120 but for its last hundred bytes), whatever is in it, as
//! long as nobody who chooses that knows the key. A million pages a second for a year make that one in thirty
//! thousand. Eight lanes, each a chain of multiply-and-fold (the halves of a 64 by 64 bit product, as in the
//! family of hashes that mix so), and the sum of all states of each besides, which remembers what a chain may
//! have forgotten.

use vellum_sys::PAGE;

/// The sum of a page.
pub(crate) type Sum = [u64; 2];

const LANES: usize = 8;
/// Bytes that go round all lanes once.
const PIECE: usize = 2 * LANES * size_of::<u64>();
/// Pages come from a device or have lain long, so they are in no cache: this many bytes are fetched before
/// they are needed.
const AHEAD: usize = 1024;
const WORDS: usize = PAGE / 8;

/// What sums depend on besides the page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key([u64; LANES]);

#[inline]
const fn fold(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    product as u64 ^ (product >> 64) as u64
}

const STIR: u64 = 0x9e37_79b9_7f4a_7c15;

/// Has the two cache lines from `place` on fetched.
fn ahead(place: *const u8) {
    vellum_sys::prefetch(place);
    vellum_sys::prefetch(place.wrapping_add(64));
}

impl Key {
    /// A key made from `seed`.
    pub(crate) const fn new(seed: [u64; 2]) -> Key {
        let mut lanes = [0; LANES];
        let mut index = 0;
        while index < LANES {
            let odd = STIR.wrapping_mul(2 * index as u64 + 1);
            // Never zero, which would forget what it is multiplied with.
            lanes[index] = fold(seed[0] ^ odd, seed[1] ^ odd.rotate_left(32)) | 1;
            index += 1;
        }
        Key(lanes)
    }

    /// A key nobody can guess, or from the clock if there is no randomness to be had.
    pub(crate) fn random() -> Key {
        let mut bytes = [0u8; 16];
        let flags = rustix::rand::GetRandomFlags::NONBLOCK;
        let mut seed = [vellum_sys::clock::now_ns(), STIR];
        if rustix::rand::getrandom(&mut bytes, flags) == Ok(bytes.len()) {
            for (word, half) in seed.iter_mut().zip(bytes.chunks_exact(8)) {
                *word = half.iter().fold(0, |word, &byte| word << 8 | u64::from(byte));
            }
        }
        Key::new(seed)
    }

    /// The sum of the page at `page`.
    ///
    /// # Safety
    /// A page of readable memory starts there, which nobody writes to meanwhile.
    pub(crate) unsafe fn sum(&self, page: *const u8) -> Sum {
        // SAFETY: by this function's condition; pages are aligned.
        let words = unsafe { core::slice::from_raw_parts(page.cast::<u64>(), WORDS) };
        // Other than the keys, or the first two words of a lane could change places unnoticed.
        let (mut lanes, mut sums) = (self.0.map(|key| key.rotate_left(32) ^ STIR), [0u64; LANES]);
        for (at, piece) in words.chunks_exact(2 * LANES).enumerate() {
            ahead(page.wrapping_add(at * PIECE + AHEAD));
            for lane in 0..LANES {
                lanes[lane] = fold(piece[2 * lane] ^ self.0[lane], piece[2 * lane + 1] ^ lanes[lane]);
                sums[lane] = sums[lane].wrapping_add(lanes[lane]);
            }
        }
        let one = |of: [u64; LANES], start| {
            of.iter().fold(start, |sum, &lane| fold(sum ^ lane, STIR ^ lane.rotate_left(29)))
        };
        [one(lanes, self.0[0]), one(sums, self.0[1])]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[repr(C, align(4096))]
    struct Page([u8; PAGE]);

    fn sum(key: &Key, page: &Page) -> Sum {
        // SAFETY: a page of the test's own.
        unsafe { key.sum(page.0.as_ptr()) }
    }

    #[test]
    fn every_bit_counts_in_both_halves() {
        let key = Key::new([1, 2]);
        let mut page = Page([0; PAGE]);
        let zero = sum(&key, &page);
        let mut seen: [HashSet<u64>; 2] = [HashSet::from([zero[0]]), HashSet::from([zero[1]])];
        for bit in 0..PAGE * 8 {
            page.0[bit / 8] ^= 1 << (bit % 8);
            let sum = sum(&key, &page);
            page.0[bit / 8] ^= 1 << (bit % 8);
            assert!(seen[0].insert(sum[0]) && seen[1].insert(sum[1]), "bit {bit} does not count");
        }
        assert_eq!(sum(&key, &page), zero);
    }

    #[test]
    fn exchanged_words_and_other_keys_make_other_sums() {
        let key = Key::new([1, 2]);
        let mut page = Page([0; PAGE]);
        for (index, byte) in page.0.iter_mut().enumerate() {
            *byte = (index / 8 % 251) as u8;
        }
        let before = sum(&key, &page);
        for other in 1..WORDS {
            page.0.swap(0, other * 8);
            let is_same = page.0[0] == page.0[other * 8];
            let now = sum(&key, &page);
            page.0.swap(0, other * 8);
            assert!(now != before || is_same, "word {other}");
        }
        assert_ne!(sum(&Key::new([1, 3]), &page), before);
        assert_ne!(sum(&Key::random(), &page), before);
    }
}
