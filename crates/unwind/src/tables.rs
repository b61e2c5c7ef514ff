//! A module's unwind tables: `.eh_frame_hdr` (a sorted index) and `.eh_frame` (the entries).
//!
//! The parser is the crate gimli. Its working memory lies on the stack: about [`RULES_MAX`] register rules
//! times [`ROWS_MAX`] saved rows, a few kilobytes during a call.

use crate::{Cfa, Rule, SavedBp, arch};
use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, EndianSlice, Expression, NativeEndian, RegisterRule,
    UnwindContext, UnwindContextStorage, UnwindExpression, UnwindSection,
};

/// The most register rules in a row: those of the callee-saved registers and the return address. They lie on
/// the stack of the allocating thread, which can be small.
const RULES_MAX: usize = if cfg!(target_arch = "x86_64") { 8 } else { 24 };
/// The most rows: the current one, and those that a function saves and restores around an early return.
const ROWS_MAX: usize = 3;
/// `DW_OP_deref`.
const OP_DEREF: u8 = 0x06;

type Bytes<'a> = EndianSlice<'a, NativeEndian>;

/// Storage of gimli's rows on the stack.
struct OnStack;

impl UnwindContextStorage<usize> for OnStack {
    type Rules = [(gimli::Register, RegisterRule<usize>); RULES_MAX];
    type Stack = [gimli::UnwindTableRow<usize, Self>; ROWS_MAX];
}

/// The unwinding tables of one module. All addresses are either as loaded, or as in the file.
#[derive(Clone, Copy, Debug)]
pub struct Tables<'a> {
    index: &'a [u8],
    index_at: u64,
    entries: &'a [u8],
    entries_at: u64,
}

impl<'a> Tables<'a> {
    /// The tables in `index` (`.eh_frame_hdr`, at address `index_at`) and `entries` (`.eh_frame`, at
    /// `entries_at`). Both slices may extend beyond the section's end.
    pub fn new(index: &'a [u8], index_at: u64, entries: &'a [u8], entries_at: u64) -> Tables<'a> {
        Tables { index, index_at, entries, entries_at }
    }

    /// The address of `.eh_frame` in the index at `index_at`.
    pub fn entries_of(index: &[u8], index_at: u64) -> Option<u64> {
        let bases = BaseAddresses::default().set_eh_frame_hdr(index_at);
        EhFrameHdr::new(index, NativeEndian).parse(&bases, 8).ok()?.eh_frame_ptr().direct().ok()
    }

    /// The rule to leave the frame of the instruction at `pc`. `index_at` is the address of the tables' index
    /// (0: none); both are as loaded. `mapped` returns the bytes from an address on.
    pub fn rule_in(index_at: u64, pc: u64, mapped: impl Fn(u64) -> Option<&'a [u8]>) -> Option<Rule> {
        if index_at == 0 {
            return None;
        }
        let index = mapped(index_at)?;
        let entries_at = Tables::entries_of(index, index_at)?;
        Tables::new(index, index_at, mapped(entries_at)?, entries_at).rule_at(pc)
    }

    /// The rule to leave the frame of the instruction at `pc`. For a return address, pass the address of one
    /// byte before it.
    pub fn rule_at(&self, pc: u64) -> Option<Rule> {
        let bases = BaseAddresses::default().set_eh_frame_hdr(self.index_at).set_eh_frame(self.entries_at);
        let index = EhFrameHdr::new(self.index, NativeEndian).parse(&bases, 8).ok()?;
        let mut entries = EhFrame::new(self.entries, NativeEndian);
        entries.set_vendor(arch::VENDOR);
        let table = index.table()?;
        let entry = table.lookup(pc, &bases).ok()?;
        // A malformed index may refer to a place before the table, where the table's own arithmetic would
        // overflow.
        if entry.direct().ok()? < index.eh_frame_ptr().direct().ok()? {
            return None;
        }
        let offset = table.pointer_to_offset(entry).ok()?;
        let entry = entries.fde_from_offset(&bases, offset, EhFrame::cie_from_offset).ok()?;
        if !entry.contains(pc) || entry.is_signal_trampoline() {
            return None;
        }
        let mut context = UnwindContext::<usize, OnStack>::new_in();
        let row = entry.unwind_info_for_address(&entries, &bases, &mut context, pc).ok()?;
        let small = |offset: i64| i32::try_from(offset).ok();
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register: arch::SP, offset } => Cfa::Sp(small(*offset)?),
            CfaRule::RegisterAndOffset { register: arch::BP, offset } => Cfa::Bp(small(*offset)?),
            CfaRule::RegisterAndOffset { .. } => return None,
            CfaRule::Expression(expression) => Cfa::AtBp(at_bp(expression, &entries, true)?),
        };
        let bp = match row.register(arch::BP) {
            None | Some(RegisterRule::SameValue | RegisterRule::Undefined) => SavedBp::Same,
            Some(RegisterRule::Offset(offset)) => SavedBp::AtCfa(small(offset)?),
            Some(RegisterRule::Expression(expression)) => SavedBp::AtBp(at_bp(&expression, &entries, false)?),
            Some(_) => return None,
        };
        Rule::new(cfa, arch::saved(bp, &row.register(arch::RA)?)?)
    }
}

/// The offset in an expression that is only "the frame pointer plus an offset", followed by a load if
/// `deref`.
fn at_bp(expression: &UnwindExpression<usize>, entries: &EhFrame<Bytes<'_>>, deref: bool) -> Option<i32> {
    let Expression(bytes) = expression.get(entries).ok()?;
    let (first, rest) = bytes.slice().split_first()?;
    let (offset, rest) = signed(rest)?;
    let expected: &[u8] = if deref { &[OP_DEREF] } else { &[] };
    (*first == arch::OP_BREG_BP && rest == expected).then_some(offset)
}

/// A signed LEB128 number of at most two bytes, and the bytes after it.
fn signed(bytes: &[u8]) -> Option<(i32, &[u8])> {
    let (&low, rest) = bytes.split_first()?;
    if low & 0x80 == 0 {
        return Some((i32::from((low << 1) as i8 >> 1), rest));
    }
    let (&high, rest) = rest.split_first()?;
    let bits = i16::from_ne_bytes((u16::from(low & 0x7f) | u16::from(high) << 7).to_ne_bytes());
    (high & 0x80 == 0).then_some((i32::from(bits << 2 >> 2), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_numbers_are_read() {
        assert_eq!(signed(&[0x78, 6]), Some((-8, &[6][..])));
        assert_eq!(signed(&[0x10]), Some((16, &[][..])));
        assert_eq!(signed(&[0x80, 0x7f, 1]), Some((-128, &[1][..])));
        assert_eq!(signed(&[0xff, 0x01]), Some((255, &[][..])));
        assert_eq!(signed(&[0x80, 0x80, 1]), None);
        assert_eq!(signed(&[]), None);
    }

    #[test]
    fn rubbish_has_no_rules() {
        let rubbish = [0xffu8; 64];
        assert_eq!(Tables::new(&rubbish, 0, &rubbish, 64).rule_at(16), None);
        assert_eq!(Tables::new(&[], 0, &[], 0).rule_at(0), None);
        assert_eq!(Tables::entries_of(&rubbish, 0), None);
    }
}
