//! Estimates a working-set curve from counts of accessed bits, taken several times after one clearing.
//!
//! Some sources report only how many pages were referenced since all bits were cleared (`smaps` after
//! `clear_refs`), not when. This number is the size w of a working set whose window begins at the clearing:
//!
//! ```text
//! clear ──┬──────┬─────────────┬──────────────────────────┬──▶ virtual time
//!         Δ      2Δ            4Δ                         8Δ     samples
//!         w(Δ)   w(2Δ)         w(4Δ)                      w(8Δ)  pages referenced since the clearing
//! ```
//!
//! For a stationary job, the mean over many cycles (clearings with their samples) is z, the mean size of
//! working sets, for these windows: windows that begin at a given time and windows that end there have the
//! same mean. One cycle needs one clearing, however many windows are sampled.
//!
//! The samples of a cycle do not fall exactly on the common windows of a [`History`](crate::History), so
//! they are interpolated along straight lines of z against ln T. w hardly bends between windows a factor of
//! two apart. If a count falls (pages freed between samples), the largest count so far replaces it.
//!
//! Source: Gregg's `wss -P` for cumulative reads; the estimate is ours.

/// `count` windows at Δ, 2Δ, 4Δ … (ticks).
#[must_use]
pub fn doubling_windows(delta: f64, count: u32) -> Vec<f64> {
    (0..count).map(|step| delta * f64::from(step).exp2()).collect()
}

/// The page counts of one cycle at `windows` (rising, in ticks), up to the end of the cycle.
///
/// `looks` are samples (ticks since the clearing, pages referenced since), in order. Windows before the first
/// or after the last sample, by a factor of at most `reach` (such as 1.25), are extrapolated from the nearest
/// two. If earlier windows are missing, there is no result.
#[must_use]
pub fn at_windows(looks: &[(f64, f64)], windows: &[f64], reach: f64) -> Vec<f64> {
    let mut most = 0.0f64;
    let known: Vec<(f64, f64)> = looks
        .iter()
        .filter(|(time, _)| *time > 0.0)
        .map(|(time, pages)| {
            most = most.max(*pages);
            (time.ln(), most)
        })
        .collect();
    if known.len() < 2 {
        return Vec::new();
    }
    let (first, last) = (known[0].0, known[known.len() - 1].0);
    let reach = reach.max(1.0).ln();
    let inside = |window: &&f64| (first - reach..=last + reach).contains(&window.ln());
    if windows.first().is_none_or(|window| !inside(&window)) {
        return Vec::new();
    }
    let at = |window: &f64| {
        let x = window.ln();
        let after = known.partition_point(|(time, _)| *time < x).clamp(1, known.len() - 1);
        let (left, right) = (known[after - 1], known[after]);
        let slope = if right.0 > left.0 { (right.1 - left.1) / (right.0 - left.0) } else { 0.0 };
        (left.1 + slope * (x - left.0)).max(0.0)
    };
    windows.iter().take_while(inside).map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_at_the_windows_are_unchanged() {
        let windows = doubling_windows(100.0, 4);
        assert_eq!(windows, [100.0, 200.0, 400.0, 800.0]);
        let looks = [(100.0, 10.0), (200.0, 15.0), (400.0, 18.0), (800.0, 20.0)];
        let pages = at_windows(&looks, &windows, 1.25);
        assert!(pages.iter().zip([10.0, 15.0, 18.0, 20.0]).all(|(a, b)| (a - b).abs() < 1e-9), "{pages:?}");
    }

    #[test]
    fn late_looks_are_carried_back_within_reach() {
        let smooth = |time: f64| 10.0 * time.ln();
        let looks: Vec<(f64, f64)> = [110.0, 230.0, 440.0].map(|time| (time, smooth(time))).to_vec();
        let pages = at_windows(&looks, &[100.0, 200.0, 400.0, 800.0], 1.25);
        assert_eq!(pages.len(), 3, "800 lies out of reach");
        for (pages, window) in pages.iter().zip([100.0, 200.0, 400.0]) {
            assert!((pages - smooth(window)).abs() < 1e-9);
        }
    }

    #[test]
    fn without_a_sample_near_the_first_window_there_is_no_result() {
        assert!(at_windows(&[(300.0, 5.0), (400.0, 6.0)], &[100.0, 400.0], 1.25).is_empty());
        assert!(at_windows(&[(100.0, 5.0)], &[100.0], 1.25).is_empty());
        assert!(at_windows(&[], &[100.0], 1.25).is_empty());
        assert!(at_windows(&[(0.0, 5.0), (100.0, 5.0)], &[100.0], 1.25).is_empty());
    }

    #[test]
    fn counts_that_fall_are_levelled() {
        let pages = at_windows(&[(100.0, 9.0), (200.0, 7.0), (400.0, 8.0)], &[100.0, 200.0, 400.0], 1.25);
        assert!(pages.iter().all(|pages| (pages - 9.0).abs() < 1e-9), "{pages:?}");
    }
}
