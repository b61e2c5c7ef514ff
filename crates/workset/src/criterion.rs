//! The two criteria for choosing a window T: the space-time products X and Y, to be minimised.
//!
//! A page occupies memory not only while the program runs, but also while the program waits for another
//! page. With z pages held, f faults per tick and a delay of S ticks per fault, one tick of virtual time
//! costs, by either criterion:
//!
//! - Y = S · f · z (2.2): memory held during waits;
//! - X = z + Y (2.1): memory held during waits and while running.
//!
//! The least X is the knee of the processor-efficiency curve (2.3), the least Y the knee of the lifetime
//! curve (2.4): at these points rays from the origin touch the curves. X and Y are in pages, that is
//! page-ticks per tick.
//!
//! Source: Nishigaki 1981 (see the crate's documentation), section 2, with its numbers of equations.

use serde::{Deserialize, Serialize};

/// The product to minimise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Criterion {
    /// The PE-knee: least X = z + S·f·z, the whole cost of memory.
    #[default]
    ProcessorEfficiency,
    /// The LT-knee: least Y = S·f·z. In most programs it needs more memory.
    Lifetime,
}

impl Criterion {
    /// The product, in pages, of `pages` held on average, `faults` per tick, and a delay of `delay` ticks for
    /// each fault.
    #[must_use]
    pub fn product(self, pages: f64, faults: f64, delay: f64) -> f64 {
        let waiting = delay * faults * pages;
        match self {
            Self::ProcessorEfficiency => pages + waiting,
            Self::Lifetime => waiting,
        }
    }

    /// `PE` or `LT`.
    #[must_use]
    pub fn short(self) -> &'static str {
        match self {
            Self::ProcessorEfficiency => "PE",
            Self::Lifetime => "LT",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_row_of_s1() {
        // Table 1: at the PE optimum 34.2 pages give X = 48.1, so f must be 5.08·10⁻⁶ an instruction at S =
        // 80,000.
        let x = Criterion::ProcessorEfficiency.product(34.2, 5.08e-6, 80_000.0);
        let y = Criterion::Lifetime.product(34.2, 5.08e-6, 80_000.0);
        assert!((x - 48.1).abs() < 0.01 && (x - y - 34.2).abs() < 1e-12, "{x} {y}");
    }
}
