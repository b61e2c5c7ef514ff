//! Facts about an instruction, packed in one word: whether it belongs to the user's source, and how to step
//! from its frame to the caller's.
//!
//! ```text
//! bits 4 to 7: the flags READY (always set), USERS, KNOWN_RULE, INTERPRETS; other bits: the number of a Rule
//! ```

use vellum_unwind::Rule;

const READY: u64 = 1 << 4;
const USERS: u64 = 1 << 5;
const KNOWN_RULE: u64 = 1 << 6;
const INTERPRETS: u64 = 1 << 7;
const FLAGS: u64 = READY | USERS | KNOWN_RULE | INTERPRETS;
/// Bits of an address below the number of its mapping.
const ADDRESS_BITS: u32 = 47;

/// Facts about an instruction. The word is never 0.
#[derive(Clone, Copy, Debug)]
pub struct Known(pub u64);

/// The key of the instruction that returns to `pc`. `mapping` tells modules apart that had the same address:
/// an epoch, or a module's number.
#[inline(always)]
pub fn key(pc: u64, mapping: u32) -> u64 {
    pc ^ u64::from(mapping) << ADDRESS_BITS
}

impl Known {
    /// Packs the facts into a word.
    pub fn new(is_users: bool, interprets: bool, rule: Option<Rule>) -> Known {
        let rule = rule.map_or(0, |rule| rule.bits() | KNOWN_RULE);
        let flag = |is_set: bool, flag: u64| if is_set { flag } else { 0 };
        Known(READY | rule | flag(is_users, USERS) | flag(interprets, INTERPRETS))
    }

    /// Returns whether the instruction belongs to the user's source.
    #[inline]
    pub fn is_users(self) -> bool {
        self.0 & USERS != 0
    }

    /// Returns whether the instruction is an interpreter's, which runs lines of a program.
    #[inline]
    pub fn interprets(self) -> bool {
        self.0 & INTERPRETS != 0
    }

    /// The rule for leaving the instruction's frame.
    #[inline]
    pub fn rule(self) -> Option<Rule> {
        (self.0 & KNOWN_RULE != 0).then(|| Rule::from_bits(self.0 & !FLAGS))?
    }
}
