//! Parses quantities of memory in Kubernetes' notation: `64Mi`, `1.5G`, `1e9`, `128974848`, `500m`.
//!
//! Vellum's options use another notation (`64MiB`), whose parser cannot read these.
//!
//! Source: Kubernetes' documentation, "Quantity".

/// Parses bytes, rounded up; `None` if the quantity is invalid, negative or too large.
pub fn bytes(text: &str) -> Option<u64> {
    /// The prefixes of the powers of 1024 and of 1000, from the first on.
    const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    const DECIMAL: [&str; 6] = ["k", "M", "G", "T", "P", "E"];
    let powers = |base: f64| (1..).map(move |power| base.powi(power));
    let units = BINARY.into_iter().zip(powers(1024.0)).chain(DECIMAL.into_iter().zip(powers(1000.0)));
    let mut units = units.chain([("m", 1e-3), ("", 1.0)]);
    let (number, unit) = units.find_map(|(suffix, unit)| Some((text.strip_suffix(suffix)?, unit)))?;
    // Excludes "inf" and "nan".
    if !number.ends_with(|last: char| last.is_ascii_digit() || last == '.') {
        return None;
    }
    let bytes = (number.parse::<f64>().ok()? * unit).ceil();
    (bytes >= 0.0 && bytes <= (1_u64 << 60) as f64).then_some(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_parsed_like_kubernetes() {
        for (text, meant) in [
            ("0", 0),
            ("128974848", 128974848),
            ("64Mi", 64 << 20),
            ("1.5Gi", 3 << 29),
            ("2k", 2000),
            ("129e6", 129_000_000),
            ("1E3", 1000),
            ("500m", 1),
            ("1Ei", 1 << 60),
            ("1E", 1_000_000_000_000_000_000),
        ] {
            assert_eq!(bytes(text), Some(meant), "{text}");
        }
        for wrong in ["", "Mi", "-1", "64MiB", "inf", "nan", "1e99", "x", "1 Mi", "2Ei", "Infinity"] {
            assert_eq!(bytes(wrong), None, "{wrong}");
        }
    }
}
