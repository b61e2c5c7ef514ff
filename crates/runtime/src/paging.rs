//! Paging big blocks, if the user asks for it: the two environment variables.
//!
//! | variable | values | default |
//! | --- | --- | --- |
//! | `VELLUM_FRAMES` | bytes that big blocks may have in memory, with `K`, `M` or `G` if wanted | no limit: nothing is paged |
//! | `VELLUM_STORE` | a directory, or a file that does not exist yet | `TMPDIR`, else `/var/tmp` |
//!
//! The default is not `/tmp`, which is often memory itself.

use crate::knobs::variable;
use core::ffi::CStr;
use vellum_malloc::{Line, paged};
use vellum_sys::text;

/// Where the store is if nobody says.
const STORE: &CStr = c"/var/tmp";

/// Does what the environment asks.
pub(crate) fn heed() {
    let Some(asked) = variable(c"VELLUM_FRAMES") else { return };
    let store = variable(c"VELLUM_STORE").or_else(|| variable(c"TMPDIR")).unwrap_or(STORE);
    if !bytes(asked.to_bytes()).is_some_and(|bytes| paged::page_to(store.to_bytes(), bytes)) {
        let mut line = Line::new();
        line.text("vellum: VELLUM_FRAMES=")
            .raw(asked.to_bytes())
            .text(" is ignored: it must be from 256K to 256G, and the path of the store short\n");
        line.write();
    }
}

/// A number of bytes.
fn bytes(value: &[u8]) -> Option<u64> {
    let digits = value.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, unit) = value.split_at(digits);
    let shift = match unit {
        b"" => 0,
        b"K" | b"k" => 10,
        b"M" | b"m" => 20,
        b"G" | b"g" => 30,
        _ => return None,
    };
    (digits > 0).then(|| text::number(number)).flatten()?.checked_mul(1 << shift)
}
