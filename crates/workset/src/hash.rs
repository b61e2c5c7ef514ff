//! The hash of page numbers, for tables and for choosing the sampled pages.
//!
//! Neighbouring pages differ in their lowest bits only, and programs access neighbours in order. Without a
//! hash, a sample of every 64th page would see all or none of a program with a stride of 64 pages. The hash
//! is SplitMix64's output function, a bijection, so different pages have different hashes.
//!
//! The sample uses the middle of the 64 bits, and tables use both ends. If they shared bits, all sampled
//! pages would have the same values in bits that tables need.

use std::hash::{BuildHasherDefault, Hasher};

use crate::unit::Page;

/// The lowest bit of the hash that sampling uses …
const SAMPLE_SHIFT: u32 = 20;
/// … and the most bits that it uses.
pub(crate) const SAMPLE_BITS_MAX: u32 = 32;

/// A page's hash.
#[inline]
pub(crate) fn scatter(page: Page) -> u64 {
    mix(page.0)
}

#[inline]
fn mix(number: u64) -> u64 {
    let z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// True if a page with this hash is sampled, as one of 2^`bits` pages.
#[inline]
pub(crate) fn sampled(scattered: u64, bits: u32) -> bool {
    (scattered >> SAMPLE_SHIFT) & ((1u64 << bits) - 1) == 0
}

/// Tables by page.
pub type PageTable<V> = std::collections::HashMap<Page, V, BuildHasherDefault<PageHasher>>;

/// The hash as a hasher. It is the same in every process, so iterations over a table repeat.
#[derive(Debug, Clone, Default)]
pub struct PageHasher(u64);

impl Hasher for PageHasher {
    #[inline]
    fn write_u64(&mut self, number: u64) {
        self.0 = mix(self.0 ^ number);
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_takes_its_share_of_neighbours_and_of_strides() {
        for stride in [1u64, 64, 512, 4096] {
            let taken = (0..100_000).filter(|n| sampled(scatter(Page(n * stride)), 6)).count();
            // 1562.5 expected, with a standard deviation of 39.
            assert!((1400..1730).contains(&taken), "{taken} of 100,000 at stride {stride}");
        }
    }

    #[test]
    fn halving_the_sample_keeps_half_of_the_same_pages() {
        for n in 0..10_000 {
            let scattered = scatter(Page(n));
            assert!(sampled(scattered, 0));
            assert!(!sampled(scattered, 5) || sampled(scattered, 4));
        }
    }
}
