//! Numbers in the file formats.

use std::fmt;

/// Sizes of numbers written without an exponent. Outside, a number would have up to 300 zeros.
const PLAIN: std::ops::Range<f64> = 1e-6..1e16;

/// A finite number, written in the fewest digits that are read back as the same number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Number(pub(crate) f64);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.0.abs();
        let plain = size == 0.0 || PLAIN.contains(&size);
        if plain { write!(f, "{}", self.0) } else { write!(f, "{:e}", self.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn few_digits() {
        for (value, text) in [
            (486.0, "486"),
            (0.1, "0.1"),
            (-0.0, "-0"),
            (1e15, "1000000000000000"),
            (1e16, "1e16"),
            (1e300, "1e300"),
            (-2.5e-9, "-2.5e-9"),
        ] {
            assert_eq!(Number(value).to_string(), text);
        }
    }

    proptest! {
        #[test]
        fn every_number_comes_back(value in prop::num::f64::ANY.prop_filter("finite", |v| v.is_finite())) {
            let back: f64 = Number(value).to_string().parse().unwrap();
            prop_assert_eq!(back.to_bits(), value.to_bits());
        }
    }
}
