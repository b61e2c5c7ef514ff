//! The search for the smallest size at an acceptable cost: a pure function of the measured costs.
//!
//! The first size is the recommended one. The next is an eighth smaller if the cost was acceptable, else an
//! eighth larger. Between an acceptable size and a size that is too small, the search bisects.

/// The search ends when the two sizes differ by this share of the larger,
const PRECISION: f64 = 1.0 / 16.0;
/// or after this number of sizes.
const SIZES_MAX: u32 = 8;
/// The divisor of a size that gives the step down or up.
const STEP: u64 = 8;

#[derive(Debug)]
pub(super) struct Search {
    cap: f64,
    /// The job's whole memory, the largest size.
    all: u64,
    pub(super) size: u64,
    sizes: u32,
    /// The largest size that cost too much, and the smallest acceptable size.
    dear: Option<u64>,
    kept: Option<u64>,
}

impl Search {
    /// A search that begins with the size `from`.
    pub(super) fn new(from: u64, all: u64, cap: f64) -> Search {
        Search { cap, all, size: from.min(all), sizes: 0, dear: None, kept: None }
    }

    /// Records the cost of the current size. True if the search is over.
    pub(super) fn seen(&mut self, cost: f64) -> bool {
        self.sizes += 1;
        if cost <= self.cap {
            self.kept = Some(self.kept.map_or(self.size, |kept| kept.min(self.size)));
        } else {
            self.dear = Some(self.dear.map_or(self.size, |dear| dear.max(self.size)));
        }
        // If a larger size costs too much after a smaller one was acceptable, the job has changed: the larger
        // one counts.
        if self.dear >= self.kept {
            self.kept = None;
        }
        self.size = match (self.dear, self.kept) {
            (Some(dear), Some(kept)) if (kept - dear) as f64 <= kept as f64 * PRECISION => return true,
            (Some(dear), Some(kept)) => dear + (kept - dear) / 2,
            (None, Some(kept)) => kept - kept / STEP,
            (Some(dear), None) if dear >= self.all => return true,
            (Some(dear), None) => (dear + dear / STEP).min(self.all),
            (None, None) => return true,
        };
        self.sizes >= SIZES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sizes tried, for a job that needs `needs`.
    fn tried(from: u64, needs: u64) -> Vec<u64> {
        let mut search = Search::new(from, 1000, 0.02);
        let mut sizes = Vec::new();
        loop {
            sizes.push(search.size);
            let cost = if search.size >= needs { 0.001 } else { 0.3 };
            if search.seen(cost) {
                return sizes;
            }
        }
    }

    #[test]
    fn search_ends_near_the_needed_size() {
        for from in (100..=1000).step_by(50) {
            for needs in (100..=1000).step_by(10) {
                let sizes = tried(from, needs);
                assert!(
                    sizes.len() <= SIZES_MAX as usize && sizes.iter().all(|size| *size <= 1000),
                    "{sizes:?}"
                );
                let kept = sizes.iter().filter(|size| **size >= needs).min();
                // A start that is wrong by less than about this factor leaves enough steps to settle.
                if from * 8 > needs * 5 && from * 5 < needs * 8 {
                    let kept = *kept.expect("a size that does") as f64;
                    assert!(kept <= needs as f64 * 1.15, "{needs} from {from}: {sizes:?}");
                }
            }
        }
    }

    #[test]
    fn search_for_a_job_that_never_fits_ends_at_its_full_size() {
        assert_eq!(tried(900, 2000), [900, 1000]);
        // The search also ends for a job that needs no memory.
        assert_eq!(tried(900, 0).len(), SIZES_MAX as usize);
    }
}
