//! aarch64: a call leaves the return address in a register. A function stores that address in its frame,
//! beside the caller's frame pointer or alone. If it is missing (in the innermost frame only), the walk ends.

use crate::SavedBp;
use gimli::{AArch64, Register, RegisterRule, Vendor};

pub(crate) const SP: Register = AArch64::SP;
pub(crate) const BP: Register = AArch64::X29;
pub(crate) const RA: Register = AArch64::X30;
/// The vendor whose instructions the tables may use: one of them marks return addresses as signed.
pub(crate) const VENDOR: Vendor = Vendor::AArch64;
/// `DW_OP_breg29`: the frame pointer plus an offset.
pub(crate) const OP_BREG_BP: u8 = 0x8d;

/// Bytes of a register on the stack.
const WORD: i64 = 8;
/// The bits of a code address; a signature lies above them.
const ADDRESS: u64 = (1 << 48) - 1;

/// The offset of the return address from the CFA; `None` if the frame has not saved it.
#[inline(always)]
pub(crate) fn return_address(bp: SavedBp) -> Option<i64> {
    match bp {
        SavedBp::AtCfa(offset) => Some(i64::from(offset) + WORD),
        SavedBp::Beside(offset) => Some(i64::from(offset)),
        SavedBp::Same | SavedBp::AtBp(_) => None,
    }
}

/// `bp`, if it determines the place `ra` of the return address.
pub(crate) fn saved(bp: SavedBp, ra: &RegisterRule<usize>) -> Option<SavedBp> {
    let RegisterRule::Offset(at) = *ra else { return None };
    let bp = if bp == SavedBp::Same { SavedBp::Beside(i32::try_from(at).ok()?) } else { bp };
    (return_address(bp) == Some(at)).then_some(bp)
}

/// A return address without its signature.
#[inline(always)]
pub(crate) fn plain(pc: u64) -> u64 {
    pc & ADDRESS
}

/// True if the last four bytes are a call: `bl` or `blr`.
pub(crate) fn is_call(bytes: [u8; 8]) -> bool {
    let word = u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
    word >> 26 == 0b10_0101 || word & 0xffff_fc1f == 0xd63f_0000
}
