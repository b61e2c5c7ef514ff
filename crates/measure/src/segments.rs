//! Segmentation: the best division of a series into stretches of equal level.
//!
//! The best division has the least cost: the squared distances of all points from the mean of their stretch,
//! plus a penalty for each change. The search visits each point once, and stores the best division of the
//! points up to there. A candidate for the last change is dropped if it costs more than the best one even
//! without a further penalty: it can never become the best. This is PELT (Killick, Fearnhead and Eckley
//! 2012): exact, and fast if there are many changes. With few changes its time grows with the square of the
//! number of points, so this number is limited to [`POINTS_MAX`].

/// The most points of a series to divide; in the worst case, half its square of stretches are examined.
pub(crate) const POINTS_MAX: usize = 1024;

/// Sums from which the cost of any stretch follows.
struct Costs {
    sums: Vec<f64>,
    squares: Vec<f64>,
}

impl Costs {
    /// The sums of `points`. The points are best near zero, because the cost is a difference of sums of
    /// squares.
    fn new(points: &[f64]) -> Self {
        let running = |of: fn(f64) -> f64| {
            let mut sum = 0.0;
            let sums = points.iter().map(|point| {
                sum += of(*point);
                sum
            });
            std::iter::once(0.0).chain(sums).collect()
        };
        Self { sums: running(|point| point), squares: running(|point| point * point) }
    }

    /// The squared distances of the points `from..to` from their mean.
    fn of(&self, from: usize, to: usize) -> f64 {
        let sum = self.sums[to] - self.sums[from];
        (self.squares[to] - self.squares[from] - sum * sum / (to - from).max(1) as f64).max(0.0)
    }
}

/// The starts of the stretches, in order, without 0. The division has the least cost among those whose
/// stretches have at least `shortest` points.
pub(crate) fn changes(points: &[f64], penalty: f64, shortest: usize) -> Vec<usize> {
    let (costs, n, shortest) = (Costs::new(points), points.len(), shortest.max(1));
    // best[t]: the least cost of the first t points, and where the last stretch of that division begins.
    let mut best = vec![(f64::INFINITY, 0); n + 1];
    best[0] = (-penalty, 0);
    // Candidates for the start of the last stretch, each with the end from which on it is dropped: its
    // replacement needs `shortest` points first.
    let mut starts: Vec<(usize, usize)> = vec![(0, usize::MAX)];
    for to in shortest..=n {
        starts.retain(|(_, until)| to < *until);
        let cost = |from: usize| best[from].0 + costs.of(from, to);
        let through = starts.iter().map(|(from, _)| (cost(*from), *from));
        let (least, from) = through.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((f64::INFINITY, 0));
        for (from, until) in &mut starts {
            if cost(*from) > least + penalty {
                *until = (to + shortest).min(*until);
            }
        }
        best[to] = (least + penalty, from);
        // A stretch may begin here that ends at least `shortest` points later.
        let next = to + 1 - shortest;
        if next >= shortest {
            starts.push((next, usize::MAX));
        }
    }
    let mut changes = Vec::new();
    let mut at = n;
    while at > 0 {
        at = best[at].1;
        changes.push(at);
    }
    changes.pop();
    changes.reverse();
    changes
}

/// The cost of a division whose stretches begin at 0 and at `starts`.
#[cfg(test)]
pub(crate) fn total_cost(points: &[f64], starts: &[usize], penalty: f64) -> f64 {
    let costs = Costs::new(points);
    let ends = starts.iter().copied().chain([points.len()]);
    let mut from = 0;
    let total: f64 = ends.map(|to| costs.of(std::mem::replace(&mut from, to), to)).sum();
    total + penalty * starts.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The least cost, by trying every division.
    fn least(points: &[f64], penalty: f64, shortest: usize) -> f64 {
        let costs = Costs::new(points);
        let mut best = vec![f64::INFINITY; points.len() + 1];
        best[0] = -penalty;
        for to in shortest..=points.len() {
            let starts = 0..=to - shortest;
            best[to] =
                starts.map(|from| best[from] + costs.of(from, to) + penalty).fold(f64::INFINITY, f64::min);
        }
        best[points.len()]
    }

    proptest! {
        #[test]
        fn no_division_costs_less(
            points in proptest::collection::vec(-3.0f64..3.0, 8..60), penalty in 0.5f64..10.0, shortest in 1usize..8,
        ) {
            let starts = changes(&points, penalty, shortest);
            let ends: Vec<usize> = starts.iter().copied().chain([points.len()]).collect();
            prop_assert!(std::iter::once(&0).chain(&ends).zip(&ends).all(|(from, to)| to - from >= shortest));
            let total = total_cost(&points, &starts, penalty);
            let best = least(&points, penalty, shortest);
            prop_assert!(total <= best + 1e-6, "{} and {}", total, best);
        }
    }
}
