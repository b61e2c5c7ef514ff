//! The hash of page numbers: for the hash table of pages, and to choose the pages of a sample.
//!
//! Neighbouring pages differ in their lowest bits only, and programs access neighbours in order. Without a
//! hash, a sample of every 64th page would see all or none of a program with a stride of 64 pages. The hash
//! is SplitMix64's output function, a bijection, so different pages have different hashes.
//!
//! The sample uses the middle of the hash's 64 bits, and tables use both ends. If they shared bits, all
//! sampled pages would have the same values in bits that tables need.

use crate::unit::Page;

/// The lowest bit of the hash that sampling uses …
const SAMPLE_SHIFT: u32 = 20;
/// … and the most bits that it uses.
pub(crate) const SAMPLE_BITS_MAX: u32 = 32;

/// A page's hash.
#[inline]
pub(crate) fn scatter(page: Page) -> u64 {
    vellum_random::scatter(page.0)
}

/// True if a page with this hash is sampled, as one of 2^`bits` pages.
#[inline]
pub(crate) fn sampled(scattered: u64, bits: u32) -> bool {
    (scattered >> SAMPLE_SHIFT) & ((1u64 << bits) - 1) == 0
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
