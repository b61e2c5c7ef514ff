//! The exit status of what writes observations: grep(1)'s.

use crate::failure::FAILED;

/// The exit status when there was nothing to write.
const NOTHING: u8 = 1;

const _: () = assert!(NOTHING != FAILED);

/// 0 if something was written, also if its reader had enough of it.
pub(crate) fn status(written: Option<usize>) -> u8 {
    if written == Some(0) { NOTHING } else { 0 }
}
