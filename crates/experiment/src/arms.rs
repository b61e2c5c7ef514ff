//! The arms of a duel: the operations or programs that are compared. Each runs once in every round.
//!
//! The first operation has two arms: `A`, and the control `A'`, which must show no difference from `A`. Two
//! operations `A` and `B` give the three arms [`ARMS`]; duels of programs may have more.

use vellum_measure::{Arms, CompareError, Comparison, Options, Series};
use vellum_timing::clock::Clock;
use vellum_timing::machine;

/// The names of the arms, by their index in a round's times: A, its double A', and B.
pub const ARMS: [&str; 3] = ["A", "A'", "B"];

/// The name of the arm at this place in a round: A, A', B, C and so on to Z, then P27, P28.
#[must_use]
pub fn arm_name(arm: usize) -> String {
    match (ARMS.get(arm), thing_of(arm)) {
        (Some(name), _) => (*name).to_owned(),
        (None, thing) => u8::try_from(thing)
            .ok()
            .filter(|thing| *thing < 26)
            .map_or_else(|| format!("P{}", thing + 1), |thing| char::from(b'A' + thing).to_string()),
    }
}

/// The number of the operation or program that the arm at this place runs, for any number of arms.
#[inline(always)]
pub(crate) fn thing_of(arm: usize) -> usize {
    arm.saturating_sub(1)
}

/// An arm's series without observations: its name, its clock, and the machine.
pub(crate) fn series(name: &str, arm: usize, order: &str, clock: &Clock) -> Series {
    Series {
        name: name.to_owned(),
        labels: vec![format!("arm={}", arm_name(arm)), format!("order={order}")],
        clock: Some(clock.kind().name().to_owned()),
        machine: Some(machine::read()),
        ..Series::default()
    }
}

/// Compares B with A, with A' against A as the control.
pub(crate) fn compare(
    rounds: impl Iterator<Item = [f64; 3]>,
    step: f64,
    options: &Options,
) -> Result<Comparison, CompareError> {
    let (mut a, mut control, mut b) = (Vec::new(), Vec::new(), Vec::new());
    for [first, double, second] in rounds {
        a.push(first);
        control.push(double);
        b.push(second);
    }
    Comparison::of(Arms { a: &a, control: &control, b: &b }, &Options { step, ..*options })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arms_are_named_by_letters_then_numbers() {
        let names: Vec<String> = (0..ARMS.len()).map(arm_name).collect();
        assert_eq!(names, ARMS);
        assert_eq!([3, 26, 27, 28].map(arm_name), ["C", "Z", "P27", "P28"]);
        assert_eq!([0, 1, 2, 3].map(thing_of), [0, 0, 1, 2]);
    }
}
