//! Facts about an instruction in one word: whether it belongs to the user's source, and how to leave its
//! frame.
//!
//! ```text
//! bits 4 to 7 of a Rule's number, which a rule leaves free: READY, USERS, KNOWN_RULE, INTERPRETS
//! ```

use vellum_unwind::Rule;

const READY: u64 = 1 << 4;
const USERS: u64 = 1 << 5;
const KNOWN_RULE: u64 = 1 << 6;
const INTERPRETS: u64 = 1 << 7;
const FLAGS: u64 = READY | USERS | KNOWN_RULE | INTERPRETS;

/// Facts about an instruction.
#[derive(Clone, Copy)]
pub(crate) struct Known(u64);

impl Known {
    /// Packs the facts into a word.
    pub(crate) fn new(is_users: bool, interprets: bool, rule: Option<Rule>) -> Known {
        let rule = rule.map_or(0, |rule| rule.bits() | KNOWN_RULE);
        let flag = |is_set: bool, flag: u64| if is_set { flag } else { 0 };
        Known(READY | rule | flag(is_users, USERS) | flag(interprets, INTERPRETS))
    }

    /// Returns whether the instruction belongs to the user's source.
    #[inline]
    pub(crate) fn is_users(self) -> bool {
        self.0 & USERS != 0
    }

    /// Returns whether the instruction is an interpreter's, which runs lines of a program
    /// ([`crate::python`]).
    #[inline]
    pub(crate) fn interprets(self) -> bool {
        self.0 & INTERPRETS != 0
    }

    /// The rule for leaving the instruction's frame.
    #[inline]
    pub(crate) fn rule(self) -> Option<Rule> {
        (self.0 & KNOWN_RULE != 0).then(|| Rule::from_bits(self.0 & !FLAGS))?
    }

    /// The word, which is never 0.
    #[inline]
    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    /// Unpacks a word.
    #[inline]
    pub(crate) fn from_bits(bits: u64) -> Known {
        Known(bits)
    }
}
