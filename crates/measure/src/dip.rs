//! The dip statistic: how far a distribution is from having one mode.
//!
//! A distribution has one mode if its cumulative distribution function is convex up to some point and
//! concave from there. The dip is the largest distance between the empirical distribution function of the
//! values and the nearest function of this kind. The smallest dip is 1/(2n), the largest ¼.
//!
//! ```text
//! share │                    ┌──╴          GCM: the greatest convex curve below, up to the modal interval
//!       │               ┌────┘╱            LCM: the least concave curve above, from there on
//!       │       ┌───────┘ ╱
//!       │    ┌──┘   ╱
//!       └────┴──────────────────▶ x
//! ```
//!
//! The modal interval first spans all values. In each round it shrinks to the points where GCM and LCM are
//! farthest apart within it. The rounds end when the curves' distance from the data outside the interval is
//! larger than their distance from each other inside.
//!
//! Of all distributions with one mode, the uniform one has the largest dips by chance. The test uses the
//! quantiles of the uniform distribution, so its false-alarm rate is never higher than stated.
//!
//! Source: Hartigan and Hartigan, "The dip test of unimodality" (1985). Departure: each round computes both
//! curves anew, without chains of indices, as rounds are few. We simulated the table of quantiles ourselves
//! (`tests/vectors/dip_table.py`).

/// The probabilities for which the table holds quantiles, falling.
const CHANCES: [f64; 10] = [0.5, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005, 0.0002];

/// By number of uniform values: the bounds that √n times their dip exceeds with these probabilities.
const TABLE: [(u32, [f64; 10]); 11] = [
    (4, [0.2500, 0.3745, 0.4142, 0.4474, 0.4633, 0.4746, 0.4840, 0.4890, 0.4919, 0.4953]),
    (6, [0.3016, 0.3896, 0.4033, 0.4383, 0.4691, 0.4943, 0.5200, 0.5359, 0.5491, 0.5608]),
    (9, [0.3126, 0.4089, 0.4392, 0.4713, 0.4930, 0.5190, 0.5489, 0.5659, 0.5812, 0.5958]),
    (15, [0.3236, 0.4258, 0.4596, 0.4997, 0.5266, 0.5527, 0.5816, 0.6022, 0.6205, 0.6435]),
    (30, [0.3373, 0.4468, 0.4838, 0.5261, 0.5552, 0.5826, 0.6174, 0.6412, 0.6589, 0.6836]),
    (60, [0.3481, 0.4630, 0.5010, 0.5468, 0.5781, 0.6085, 0.6460, 0.6748, 0.6987, 0.7303]),
    (120, [0.3566, 0.4746, 0.5141, 0.5611, 0.5933, 0.6226, 0.6603, 0.6885, 0.7159, 0.7492]),
    (250, [0.3636, 0.4837, 0.5242, 0.5726, 0.6051, 0.6377, 0.6784, 0.7076, 0.7342, 0.7611]),
    (500, [0.3682, 0.4892, 0.5305, 0.5793, 0.6126, 0.6479, 0.6888, 0.7142, 0.7420, 0.7660]),
    (1000, [0.3717, 0.4942, 0.5357, 0.5844, 0.6208, 0.6530, 0.6948, 0.7268, 0.7556, 0.7925]),
    (4000, [0.3753, 0.4983, 0.5398, 0.5870, 0.6212, 0.6527, 0.6939, 0.7258, 0.7694, 0.8033]),
];

/// The dip of sorted values without NaN; 0 if there are none.
pub(crate) fn dip(sorted: &[f64]) -> f64 {
    if sorted.is_empty() {
        return 0.0;
    }
    // Heights are in steps of the curve: the value at place i lifts it from i to i + 1.
    let (mut first, mut last, mut dip) = (0, sorted.len() - 1, 1.0f64);
    loop {
        let below = hull(sorted, first, last, |turn| turn <= 0.0);
        let above = hull(sorted, first, last, |turn| turn >= 0.0);
        let Some((apart, left, right)) = farthest(sorted, &below, &above) else { break };
        if apart <= dip {
            break;
        }
        for pair in below.windows(2).take_while(|pair| pair[0] < left) {
            dip = dip.max(inner(sorted, pair, |place, line| place as f64 + 1.0 - line));
        }
        for pair in above.windows(2).skip_while(|pair| pair[0] < right) {
            dip = dip.max(inner(sorted, pair, |place, line| line + 1.0 - place as f64));
        }
        if (left, right) == (first, last) {
            break;
        }
        (first, last) = (left, right);
    }
    dip / (2.0 * sorted.len() as f64)
}

/// The probability that `n` values with one mode have a dip of at least this; `n` need not be whole. The
/// result is at least the smallest probability in the table.
pub(crate) fn dip_chance(dip: f64, n: f64) -> f64 {
    let (row, statistic) = (quantiles(n), n.sqrt() * dip);
    if statistic <= row[0] {
        return 1.0 - (1.0 - CHANCES[0]) * (statistic / row[0]).clamp(0.0, 1.0);
    }
    let Some(place) = row.iter().position(|quantile| statistic < *quantile) else {
        return CHANCES[CHANCES.len() - 1];
    };
    let weight = (statistic - row[place - 1]) / (row[place] - row[place - 1]);
    (CHANCES[place - 1].ln() * (1.0 - weight) + CHANCES[place].ln() * weight).exp()
}

/// The dip that `n` values with one mode exceed with probability `chance`: the nearest in the table that is
/// not larger.
pub(crate) fn dip_beyond(chance: f64, n: f64) -> f64 {
    let place = CHANCES.iter().position(|listed| *listed <= chance).unwrap_or(CHANCES.len() - 1);
    quantiles(n)[place] / n.max(1.0).sqrt()
}

/// The table's row for a number of values. Between two rows it is interpolated linearly over 1/√n; beyond the
/// ends it is the last row.
fn quantiles(n: f64) -> [f64; 10] {
    let at = |size: u32| 1.0 / f64::from(size).sqrt();
    let n = n.clamp(f64::from(TABLE[0].0), f64::from(TABLE[TABLE.len() - 1].0));
    let above = TABLE.iter().position(|(size, _)| f64::from(*size) >= n).unwrap_or(TABLE.len() - 1).max(1);
    let ((small, low), (large, high)) = (TABLE[above - 1], TABLE[above]);
    let weight = (at(small) - 1.0 / n.sqrt()) / (at(small) - at(large));
    std::array::from_fn(|i| low[i] + weight * (high[i] - low[i]))
}

/// The places, from `first` to `last`, where the hull of the curve bends; `leave` selects the turns to omit.
fn hull(x: &[f64], first: usize, last: usize, leave: impl Fn(f64) -> bool) -> Vec<usize> {
    let mut bends: Vec<usize> = Vec::new();
    for place in first..=last {
        while let [.., a, b] = bends[..] {
            let turn = (x[b] - x[a]) * (place - b) as f64 - (x[place] - x[b]) * (b - a) as f64;
            if !leave(turn) {
                break;
            }
            bends.pop();
        }
        bends.push(place);
    }
    bends
}

/// The bend at which the two hulls are farthest apart: the distance, and the modal interval that follows.
fn farthest(x: &[f64], below: &[usize], above: &[usize]) -> Option<(f64, usize, usize)> {
    let at_below = below.iter().map(|place| {
        let after = above.partition_point(|bend| bend < place);
        (height(x, above, *place, after) + 1.0 - *place as f64, *place, above[after])
    });
    let at_above = above.iter().map(|place| {
        let after = below.partition_point(|bend| bend < place);
        let before = if below[after] == *place { after } else { after - 1 };
        (*place as f64 + 1.0 - height(x, below, *place, after), below[before], *place)
    });
    at_below.chain(at_above).max_by(|a, b| a.0.total_cmp(&b.0))
}

/// The height of a hull at a place; `after` is its first bend not before that.
fn height(x: &[f64], hull: &[usize], place: usize, after: usize) -> f64 {
    let right = hull[after];
    if right == place || after == 0 {
        return right as f64;
    }
    line(x, hull[after - 1], right, place)
}

/// The height at `place` of the line between two places; between equal values, the height of the right one.
fn line(x: &[f64], left: usize, right: usize, place: usize) -> f64 {
    let width = x[right] - x[left];
    let share = if width > 0.0 { (x[place] - x[left]) / width } else { 1.0 };
    left as f64 + (right - left) as f64 * share
}

/// The largest distance of the curve from a piece of a hull.
fn inner(x: &[f64], piece: &[usize], apart: impl Fn(usize, f64) -> f64) -> f64 {
    let (left, right) = (piece[0], piece[1]);
    if right - left < 2 || x[left] == x[right] {
        return 1.0;
    }
    (left..=right).map(|place| apart(place, line(x, left, right, place))).fold(1.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::Noise;
    use proptest::prelude::*;

    #[test]
    fn closed_forms() {
        assert_eq!(dip(&[]), 0.0);
        assert_eq!(dip(&[3.0]), 0.5);
        let even: Vec<f64> = (0..50).map(f64::from).collect();
        assert!((dip(&even) - 0.01).abs() < 1e-12, "evenly spaced values lie on a line");
        // Two clusters far apart, each with half of the values, have the largest possible dip.
        let mut apart: Vec<f64> = (0..50).map(|i| f64::from(i) * 1e-9).collect();
        apart.extend((0..50).map(|i| 1.0 + f64::from(i) * 1e-9));
        assert!((dip(&apart) - 0.25).abs() < 0.006, "{}", dip(&apart));
    }

    #[test]
    fn chances_are_those_of_the_table_and_between() {
        for (size, row) in TABLE {
            let n = f64::from(size);
            for (chance, quantile) in CHANCES.iter().zip(row) {
                assert!((dip_chance(quantile / n.sqrt(), n) / chance - 1.0).abs() < 1e-9);
                assert!((dip_beyond(*chance, n) - quantile / n.sqrt()).abs() < 1e-12);
            }
        }
        assert!(dip_chance(0.0, 77.0) > 0.99 && dip_chance(0.25, 1e6) == 0.0002);
        let (small, large) = (dip_beyond(0.01, 250.0), dip_beyond(0.01, 500.0));
        assert!((large..small).contains(&dip_beyond(0.01, 350.0)));
    }

    #[test]
    fn one_mode_is_rejected_no_more_often_than_stated() {
        let (mut uniform, mut normal) = (0, 0);
        for seed in 0..300 {
            let mut noise = Noise::new(seed);
            for (rejected, value) in [(&mut uniform, true), (&mut normal, false)] {
                let mut values: Vec<f64> =
                    (0..170).map(|_| if value { noise.unit() } else { noise.normal() }).collect();
                values.sort_by(f64::total_cmp);
                *rejected += usize::from(dip_chance(dip(&values), 170.0) <= 0.05);
            }
        }
        // 5 % of 300 is 15 (deviation 3.8) for the uniform; the normal is far from the least favourable.
        assert!((4..=30).contains(&uniform) && normal <= 3, "{uniform} and {normal} (seeds 0..300)");
    }

    proptest! {
        #[test]
        fn neither_unit_nor_direction_matters(values in proptest::collection::vec(0i32..1000, 1..60)) {
            let mut values: Vec<f64> = values.into_iter().map(f64::from).collect();
            values.sort_by(f64::total_cmp);
            let scaled: Vec<f64> = values.iter().map(|v| v * 4.0 + 64.0).collect();
            let mirrored: Vec<f64> = values.iter().rev().map(|v| -v).collect();
            let d = dip(&values);
            prop_assert!((dip(&scaled) - d).abs() < 1e-12);
            prop_assert!((dip(&mirrored) - d).abs() < 1e-9, "{} {}", dip(&mirrored), d);
            prop_assert!(d >= 0.5 / values.len() as f64 - 1e-12 && d <= 0.5 + 1e-12);
        }
    }
}
