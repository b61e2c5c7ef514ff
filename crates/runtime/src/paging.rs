//! The two environment variables by which the user limits physical memory and pages the rest.
//!
//! | variable | values | default |
//! | --- | --- | --- |
//! | `VELLUM_FRAMES` | a size such as `512M`, `512MiB` or `1.5G`: the most physical memory for the program | no limit: nothing is paged |
//! | `VELLUM_STORE` | a directory, or a file that does not exist yet | `TMPDIR`, else `/var/tmp` |
//!
//! The default is not `/tmp`, which is often a file system in memory.

use crate::knobs::variable;
use core::ffi::CStr;
use vellum_malloc::{Line, paged};
use vellum_sys::text;

/// The default directory of the store.
const STORE: &CStr = c"/var/tmp";

/// Starts paging if the environment requests it.
pub(crate) fn heed() {
    let Some(asked) = variable(c"VELLUM_FRAMES") else { return };
    let store = variable(c"VELLUM_STORE").or_else(|| variable(c"TMPDIR")).unwrap_or(STORE);
    if !text::size(asked.to_bytes()).is_some_and(|bytes| paged::page_to(store.to_bytes(), bytes)) {
        let mut line = Line::new();
        line.text("vellum: VELLUM_FRAMES=")
            .raw(asked.to_bytes())
            .text(" is ignored: it must be from 256K to 256G, and the path of the store short\n");
        line.write();
    }
}
