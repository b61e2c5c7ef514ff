//! x86-64: the return address is at CFA−8, the word that every call pushes.

use crate::SavedBp;
use gimli::{Register, RegisterRule, Vendor, X86_64};

pub(crate) const SP: Register = X86_64::RSP;
pub(crate) const BP: Register = X86_64::RBP;
pub(crate) const RA: Register = X86_64::RA;
/// The vendor whose instructions the tables may use.
pub(crate) const VENDOR: Vendor = Vendor::Default;
/// `DW_OP_breg6`: the frame pointer plus an offset.
pub(crate) const OP_BREG_BP: u8 = 0x76;

/// The offset of the return address from the CFA.
const AT: i64 = -8;

/// The offset of the return address from the CFA, the same for every frame.
#[inline(always)]
pub(crate) fn return_address(_bp: SavedBp) -> Option<i64> {
    Some(AT)
}

/// `bp`, if the return address is at its usual place.
pub(crate) fn saved(bp: SavedBp, ra: &RegisterRule<usize>) -> Option<SavedBp> {
    (*ra == RegisterRule::Offset(AT)).then_some(bp)
}

/// A return address, unchanged.
#[inline(always)]
pub(crate) fn plain(pc: u64) -> u64 {
    pc
}

/// True if the last bytes can be a call: `e8` and a distance, or `ff /2` with an operand of any length.
pub(crate) fn is_call(bytes: [u8; 8]) -> bool {
    bytes[3] == 0xe8 || [1, 2, 4, 5, 6].map(|at| [bytes[at], bytes[at + 1] >> 3 & 7]).contains(&[0xff, 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_differ_from_other_instructions() {
        let calls: [&[u8]; 6] = [
            &[0xe8, 1, 2, 3, 4],
            &[0xff, 0xd0],
            &[0x41, 0xff, 0x54, 0x24, 8],
            &[0xff, 0x90, 0, 1, 0, 0],
            &[0xff, 0x15, 0, 1, 0, 0],
            &[0xff, 0x94, 0x24, 0, 1, 0, 0],
        ];
        let others: [&[u8]; 3] = [&[0xff, 0xe0], &[0x48, 0x89, 0xe5], &[0xeb, 1, 2, 3, 4]];
        let is_one = |end: &&[u8]| {
            let mut bytes = [0x90; 8];
            bytes[8 - end.len()..].copy_from_slice(end);
            is_call(bytes)
        };
        assert!(calls.iter().all(is_one));
        assert!(!others.iter().any(is_one));
    }
}
