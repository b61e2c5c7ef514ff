//! Stack frames, and the step from a frame to its caller's.
//!
//! Invariant: each step raises the stack pointer, by at most [`FRAME_BYTES_MAX`]. Every walk therefore ends,
//! and a wrong rule does not lead far.

use crate::{Cfa, Rule, SavedBp, arch};

/// The largest plausible frame.
pub const FRAME_BYTES_MAX: u64 = 1 << 20;
/// Bytes of a register on the stack.
const WORD: u64 = 8;

/// The registers of a frame, from which a walk computes those of the next frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The program counter: of the interruption in the first frame, the return address in all others.
    pub pc: u64,
    /// The stack pointer.
    pub sp: u64,
    /// The frame pointer, or any other value of that register.
    pub bp: u64,
}

impl Frame {
    /// The caller's frame by `rule`. `load` reads the word at an address of the stack, if there is one.
    #[inline]
    pub fn caller(self, rule: Rule, load: impl Fn(u64) -> Option<u64>) -> Option<Frame> {
        let plus = |base: u64, offset: i32| base.wrapping_add_signed(i64::from(offset));
        let cfa = match rule.cfa {
            Cfa::Sp(offset) => plus(self.sp, offset),
            Cfa::Bp(offset) => plus(self.bp, offset),
            Cfa::AtBp(offset) => {
                let at = plus(self.bp, offset);
                self.is_near(at).then(|| load(at))??
            }
        };
        let at = cfa.wrapping_add_signed(arch::return_address(rule.bp)?);
        if cfa <= self.sp || cfa < WORD || !self.is_near(cfa - WORD) || cfa % WORD != 0 {
            return None;
        }
        let pc = arch::plain(self.saved(at, &load)?);
        let bp = match rule.bp {
            SavedBp::Same | SavedBp::Beside(_) => self.bp,
            SavedBp::AtCfa(offset) => self.saved(plus(cfa, offset), &load)?,
            SavedBp::AtBp(offset) => self.saved(plus(self.bp, offset), &load)?,
        };
        (pc != 0).then_some(Frame { pc, sp: cfa, bp })
    }

    /// The caller's frame without a rule, by the frame pointer, which most code compiled at run time keeps.
    /// `load` reads a word if it is on the stack, and `code` the bytes before an address. The result is valid
    /// only if it follows a call.
    pub fn caller_by_pointer(
        self,
        load: impl Fn(u64) -> Option<u64>,
        code: impl Fn(u64) -> Option<[u8; 8]>,
    ) -> Option<Frame> {
        let caller = self.caller(Rule::BY_FRAME_POINTER, load)?;
        arch::is_call(code(caller.pc)?).then_some(caller)
    }

    fn saved(self, at: u64, load: &impl Fn(u64) -> Option<u64>) -> Option<u64> {
        self.is_near(at).then(|| load(at))?
    }

    /// True if `at` may lie in this frame.
    fn is_near(self, at: u64) -> bool {
        at.wrapping_sub(self.sp) < FRAME_BYTES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stack with these words from address 1000 on.
    fn stack(words: &[u64]) -> impl Fn(u64) -> Option<u64> + '_ {
        |at| words.get(usize::try_from(at.checked_sub(1000)? / 8).ok()?).copied()
    }

    #[test]
    fn steps_by_either_register() {
        let load = stack(&[1, 2, 0xbbbb, 0x4444, 5]);
        let frame = Frame { pc: 1, sp: 1000, bp: 1016 };
        let by_sp = Rule::new(Cfa::Sp(32), SavedBp::AtCfa(-16)).unwrap();
        let by_bp = Rule::new(Cfa::Bp(16), SavedBp::AtCfa(-16)).unwrap();
        let caller = Some(Frame { pc: 0x4444, sp: 1032, bp: 0xbbbb });
        assert_eq!(frame.caller(by_sp, &load), caller);
        assert_eq!(frame.caller(by_bp, &load), caller);
    }

    #[test]
    fn a_realigned_stack_is_left_by_the_saved_address() {
        // The word at bp-8 is the CFA; the caller's bp is at bp.
        let load = stack(&[1024, 0xbbbb, 0x4444]);
        let rule = Rule::new(Cfa::AtBp(-8), SavedBp::AtBp(0)).unwrap();
        let frame = Frame { pc: 1, sp: 1000, bp: 1008 };
        assert_eq!(frame.caller(rule, &load), Some(Frame { pc: 0x4444, sp: 1024, bp: 0xbbbb }));
    }

    #[test]
    fn a_frame_pointer_counts_only_behind_a_call() {
        let load = stack(&[1, 2, 0xbbbb, 0x4444, 5]);
        let frame = Frame { pc: 1, sp: 1000, bp: 1016 };
        // A call on either machine.
        let call = |at| (at == 0x4444).then_some([0, 0, 0, 0xe8, 0, 0, 0, 0x94]);
        let caller = Some(Frame { pc: 0x4444, sp: 1032, bp: 0xbbbb });
        assert_eq!(frame.caller_by_pointer(&load, call), caller);
        assert_eq!(frame.caller_by_pointer(&load, |_| Some([0; 8])), None);
        assert_eq!(frame.caller_by_pointer(&load, |_| None), None);
    }

    #[test]
    fn nonsense_ends_the_walk() {
        let load = stack(&[1, 2, 3, 0]);
        let step = |cfa, bp, frame: Frame| frame.caller(Rule::new(cfa, bp).unwrap(), &load);
        let frame = Frame { pc: 1, sp: 1000, bp: 7 };
        assert_eq!(step(Cfa::Sp(0), SavedBp::Same, frame), None, "no progress");
        assert_eq!(step(Cfa::Sp(32), SavedBp::Same, frame), None, "a return address of 0");
        assert_eq!(step(Cfa::Sp(12), SavedBp::Same, frame), None, "misaligned");
        assert_eq!(step(Cfa::Sp(4096), SavedBp::Same, frame), None, "beyond the stack");
        assert_eq!(step(Cfa::Bp(16), SavedBp::Same, frame), None, "bp points below the stack");
        let wild = Frame { bp: 1000 + 2 * FRAME_BYTES_MAX, ..frame };
        assert_eq!(step(Cfa::Bp(16), SavedBp::Same, wild), None, "bp points far above it");
    }
}
