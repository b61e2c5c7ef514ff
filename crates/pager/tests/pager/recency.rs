//! Reference strings in which recently referenced pages are the likelier.

use vellum_random::Rng;
use vellum_workset::Page;

/// `count` references to `tails.len() + 1` pages. `tails[h - 1]` is the probability that a
/// reference goes to none of the `h` pages referenced last.
pub(crate) fn by_recency(tails: &[f64], seed: u64, count: usize) -> Vec<Page> {
    let (mut recent, mut rng) = ((0..=tails.len() as u64).collect::<Vec<_>>(), Rng::new(seed));
    let mut next = || {
        let chance = rng.unit();
        recent[..=tails.partition_point(|tail| *tail > chance)].rotate_right(1);
        Page(recent[0])
    };
    (0..count).map(|_| next()).collect()
}
