//! x86-64: the return address is at CFA−8, as every call leaves it.

use crate::SavedBp;
use gimli::{Register, RegisterRule, Vendor, X86_64};

pub(crate) const SP: Register = X86_64::RSP;
pub(crate) const BP: Register = X86_64::RBP;
pub(crate) const RA: Register = X86_64::RA;
/// Whose own instructions tables may have.
pub(crate) const VENDOR: Vendor = Vendor::Default;
/// `DW_OP_breg6`: the frame pointer plus an offset.
pub(crate) const OP_BREG_BP: u8 = 0x76;

/// Where the return address is, from the CFA.
const AT: i64 = -8;

/// The same for every frame.
#[inline(always)]
pub(crate) fn return_address(_bp: SavedBp) -> Option<i64> {
    Some(AT)
}

/// `bp`, if the return address is where it must be.
pub(crate) fn saved(bp: SavedBp, ra: &RegisterRule<usize>) -> Option<SavedBp> {
    (*ra == RegisterRule::Offset(AT)).then_some(bp)
}

/// A return address as it is.
#[inline(always)]
pub(crate) fn plain(pc: u64) -> u64 {
    pc
}
