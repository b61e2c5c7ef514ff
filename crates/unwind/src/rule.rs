//! A rule describes, in eight bytes, the step from one instruction's frame to the caller's. The head of the
//! crate (`lib.rs`) defines the CFA.
//!
//! ```text
//! bits  0..2   the base of the CFA (1 sp, 2 bp, 3 the word at bp+offset; 0: no rule)
//! bits  2..4   the place of the caller's bp (0 unchanged, 1 at CFA+n, 2 at bp+n; 3 unchanged, and the return
//!              address at CFA+n)
//! bits 16..32  n / 8, signed
//! bits 32..64  the offset of the CFA from its base, signed
//! ```
//!
//! Invariants: the place of the caller's bp determines that of the return address (`arch`);
//! `Rule::from_bits(rule.bits()) == Some(rule)`.

/// The place of the CFA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cfa {
    /// The stack pointer plus this many bytes.
    Sp(i32),
    /// The frame pointer plus this many bytes.
    Bp(i32),
    /// The word at this offset from the frame pointer (functions that realign their stack).
    AtBp(i32),
}

/// The place of the caller's frame pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SavedBp {
    /// Still in the register.
    Same,
    /// In the word at this offset from the CFA.
    AtCfa(i32),
    /// In the word at this offset from the frame pointer.
    AtBp(i32),
    /// Still in the register, while the return address was saved at this offset from the CFA.
    Beside(i32),
}

/// The rule to leave one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The place of the CFA.
    pub cfa: Cfa,
    /// The place of the caller's frame pointer.
    pub bp: SavedBp,
}

/// The unit of saved registers' offsets.
const WORD: i32 = 8;

impl Rule {
    /// The rule for `cfa` and `bp`, or `None` if it does not fit in eight bytes.
    pub fn new(cfa: Cfa, bp: SavedBp) -> Option<Rule> {
        let fits = match bp {
            SavedBp::Same => true,
            SavedBp::AtCfa(offset) | SavedBp::AtBp(offset) | SavedBp::Beside(offset) => {
                offset % WORD == 0 && i16::try_from(offset / WORD).is_ok()
            }
        };
        fits.then_some(Rule { cfa, bp })
    }

    /// The rule of code that keeps a frame pointer: [`Frame::caller_by_pointer`](crate::Frame).
    pub(crate) const BY_FRAME_POINTER: Rule = Rule { cfa: Cfa::Bp(16), bp: SavedBp::AtCfa(-16) };

    /// The rule as a number that is never 0.
    pub const fn bits(self) -> u64 {
        let (base, offset) = match self.cfa {
            Cfa::Sp(offset) => (1, offset),
            Cfa::Bp(offset) => (2, offset),
            Cfa::AtBp(offset) => (3, offset),
        };
        let (kind, saved) = match self.bp {
            SavedBp::Same => (0, 0),
            SavedBp::AtCfa(offset) => (1, offset),
            SavedBp::AtBp(offset) => (2, offset),
            SavedBp::Beside(offset) => (3, offset),
        };
        base | kind << 2 | ((saved / WORD) as u16 as u64) << 16 | (offset as u32 as u64) << 32
    }

    /// The rule with these `bits`, if they are valid.
    pub const fn from_bits(bits: u64) -> Option<Rule> {
        let offset = (bits >> 32) as u32 as i32;
        let cfa = match bits & 3 {
            1 => Cfa::Sp(offset),
            2 => Cfa::Bp(offset),
            3 => Cfa::AtBp(offset),
            _ => return None,
        };
        let saved = (bits >> 16) as u16 as i16 as i32 * WORD;
        let bp = match bits >> 2 & 3 {
            0 => SavedBp::Same,
            1 => SavedBp::AtCfa(saved),
            2 => SavedBp::AtBp(saved),
            _ => SavedBp::Beside(saved),
        };
        Some(Rule { cfa, bp })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_convert_to_bits_and_back() {
        for cfa in [Cfa::Sp(8), Cfa::Sp(1 << 20), Cfa::Bp(16), Cfa::AtBp(-8)] {
            for bp in [
                SavedBp::Same,
                SavedBp::AtCfa(-16),
                SavedBp::AtBp(0),
                SavedBp::AtCfa(-32768),
                SavedBp::Beside(-16),
            ] {
                let rule = Rule::new(cfa, bp).unwrap();
                assert_eq!(Rule::from_bits(rule.bits()), Some(rule));
                assert_ne!(rule.bits(), 0);
                assert_eq!(rule.bits() >> 4 & 0xfff, 0, "bits left to a cache's own use");
            }
        }
        assert_eq!(Rule::from_bits(0), None);
        assert_eq!(Rule::new(Cfa::Sp(8), SavedBp::AtCfa(-12)), None);
        assert_eq!(Rule::new(Cfa::Sp(8), SavedBp::AtCfa(-(1 << 20))), None);
    }
}
