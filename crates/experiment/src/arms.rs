//! The three arms of a duel.
//!
//! Of two things compared, A runs twice a round: A against its double A' is the control, and must show
//! nothing.

use crate::ArmOrder;
use vellum_measure::{Arms, CompareError, Comparison, Options, Series};
use vellum_timing::clock::Clock;
use vellum_timing::machine;

/// The arms, by place in a round's times: A, its double, B.
pub const ARMS: [&str; 3] = ["A", "A'", "B"];
/// Which of the two things each arm is.
pub(crate) const THING: [usize; 3] = [0, 0, 1];

/// The head of one arm's series, `arm` a place in [`ARMS`]: its name, its clock, and on what it ran.
pub(crate) fn series(name: &str, arm: usize, order: ArmOrder, clock: &Clock) -> Series {
    Series {
        name: name.to_owned(),
        labels: vec![format!("arm={}", ARMS[arm]), format!("order={}", order.name())],
        clock: Some(clock.kind().name().to_owned()),
        machine: Some(machine::read()),
        ..Series::default()
    }
}

/// B against A, with A' against A beside it.
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
