//! A histogram of lengths of time from 0 to 2⁶³ ticks; a bucket's width is about 1 % of its lengths.
//!
//! ```text
//! length   0 1 2 … 127 │ 128 129 … 255 │ 256–257 258–259 … │ 512–515 … │
//! bucket   one for each  one for each    one for 2            one for 4     128 in each octave
//! ```
//!
//! Each bucket stores the number and the sum of the lengths in it. The mean of min(length, T) is therefore
//! exact if T is the edge of a bucket: every bucket then lies wholly on one side of T.

/// Buckets an octave, as a power of 2.
const OCTAVE_BITS: u32 = 7;
const OCTAVE: usize = 1 << OCTAVE_BITS;
/// One bucket for each length below 2·[`OCTAVE`], then [`OCTAVE`] buckets for each power of 2 up to 2⁶³.
const BUCKETS: usize = (64 - OCTAVE_BITS as usize + 1) * OCTAVE;

#[derive(Debug, Clone, Copy, Default)]
struct Bucket {
    count: u64,
    sum: f64,
}

/// Counted lengths.
#[derive(Debug, Clone)]
pub struct Histogram {
    buckets: Vec<Bucket>,
    /// One more than the last bucket in use.
    used: usize,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: vec![Bucket::default(); BUCKETS], used: 0 }
    }
}

impl Histogram {
    /// Adds a length `weight` times.
    #[inline]
    pub fn add(&mut self, length: u64, weight: u64) {
        let at = bucket_of(length);
        self.used = self.used.max(at + 1);
        let bucket = &mut self.buckets[at];
        bucket.count += weight;
        bucket.sum += length as f64 * weight as f64;
    }

    /// Moves all counts of `other` here.
    pub fn take(&mut self, other: &mut Self) {
        for (own, others) in self.buckets.iter_mut().zip(&mut other.buckets[..other.used]) {
            own.count += others.count;
            own.sum += others.sum;
            *others = Bucket::default();
        }
        self.used = self.used.max(std::mem::take(&mut other.used));
    }

    /// For each threshold: the sum of min(length, threshold) over all lengths, and the number of longer ones.
    ///
    /// The thresholds rise. A threshold within a bucket splits the bucket as if its lengths were spread
    /// evenly. A threshold at a bucket's lower edge splits no bucket and is exact.
    #[must_use]
    pub fn below(&self, thresholds: &[f64]) -> Vec<(f64, f64)> {
        let total: f64 = self.buckets[..self.used].iter().map(|bucket| bucket.count as f64).sum();
        let (mut at, mut shorter, mut sum) = (0, 0.0, 0.0);
        let one = |threshold: &f64| {
            while at < self.used && (lower_edge(at + 1) as f64) <= *threshold {
                shorter += self.buckets[at].count as f64;
                sum += self.buckets[at].sum;
                at += 1;
            }
            let (mut within, mut within_sum) = (0.0, 0.0);
            let low = lower_edge(at) as f64;
            if at < self.used && *threshold > low && self.buckets[at].count > 0 {
                let part = (threshold - low) / (lower_edge(at + 1) as f64 - low);
                within = self.buckets[at].count as f64 * part;
                within_sum = within * (low + (threshold - low) / 2.0);
            }
            let longer = total - shorter - within;
            (sum + within_sum + threshold * longer, longer)
        };
        thresholds.iter().map(one).collect()
    }

    /// The nearest length at or below `length` at which [`below`](Self::below) is exact.
    #[must_use]
    pub fn edge(length: u64) -> u64 {
        lower_edge(bucket_of(length))
    }
}

#[inline]
fn bucket_of(length: u64) -> usize {
    // The number of octaves above the exact buckets, 0 for lengths below 2·OCTAVE.
    let octave = (u64::BITS - 1 - (length | 1).leading_zeros()).saturating_sub(OCTAVE_BITS);
    (octave as usize) * OCTAVE + (length >> octave) as usize
}

/// The smallest length of a bucket.
fn lower_edge(bucket: usize) -> u64 {
    let octave = (bucket / OCTAVE).saturating_sub(1);
    let within = (bucket - octave * OCTAVE) as u64;
    // The edge behind the last bucket would be 2⁶⁴; the largest number takes its place.
    within.checked_shl(octave as u32).filter(|edge| edge >> octave == within).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buckets_follow_each_other_without_gaps() {
        for bucket in 0..BUCKETS - 1 {
            let edge = lower_edge(bucket);
            assert_eq!(bucket_of(edge), bucket, "edge {edge}");
            assert_eq!(bucket_of(lower_edge(bucket + 1) - 1), bucket);
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
        assert_eq!([5, 255, 256, 257, 1000].map(Histogram::edge), [5, 255, 256, 256, 1000]);
    }

    proptest! {
        #[test]
        fn at_edges_it_is_exact(
            lengths in prop::collection::vec((0u64..3_000_000, 1u64..5), 0..200),
            thresholds in prop::collection::vec(0u64..4_000_000, 1..20),
        ) {
            let (mut a, mut b) = (Histogram::default(), Histogram::default());
            for (at, (length, weight)) in lengths.iter().enumerate() {
                if at % 2 == 0 { a.add(*length, *weight) } else { b.add(*length, *weight) }
            }
            a.take(&mut b);
            let mut edges: Vec<f64> = thresholds.iter().map(|t| Histogram::edge(*t) as f64).collect();
            edges.sort_by(f64::total_cmp);
            for (edge, (sum, longer)) in edges.iter().zip(a.below(&edges)) {
                let min: f64 = lengths.iter().map(|(l, w)| (*l as f64).min(*edge) * *w as f64).sum();
                // Lengths equal to the threshold lie in the bucket above it.
                let least: u64 = lengths.iter().filter(|(l, _)| *l as f64 >= *edge).map(|(_, w)| w).sum();
                prop_assert!((sum - min).abs() <= 1e-9 * min, "{sum} {min} at {edge}");
                prop_assert_eq!(longer, least as f64);
            }
            prop_assert_eq!(b.below(&[9e9]), [(0.0, 0.0)]);
        }
    }
}
