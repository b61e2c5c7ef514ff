//! Parses quantities of memory in Kubernetes' notation: `64Mi`, `1.5G`, `1e9`, `128974848`, `500m`.
//!
//! Vellum's options use another notation (`64MiB`), whose parser cannot read these.
//!
//! Source: Kubernetes' documentation, "Quantity".

/// Parses bytes, rounded up; `None` if the quantity is invalid, negative or too large.
pub fn bytes(text: &str) -> Option<u64> {
    const UNITS: [(&str, f64); 14] = [
        ("Ki", 1024.0),
        ("Mi", 1048576.0),
        ("Gi", 1073741824.0),
        ("Ti", 1099511627776.0),
        ("Pi", 1125899906842624.0),
        ("Ei", 1152921504606846976.0),
        ("m", 1e-3),
        ("k", 1e3),
        ("M", 1e6),
        ("G", 1e9),
        ("T", 1e12),
        ("P", 1e15),
        ("E", 1e18),
        ("", 1.0),
    ];
    let (number, unit) = UNITS.iter().find_map(|(suffix, unit)| Some((text.strip_suffix(suffix)?, unit)))?;
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
