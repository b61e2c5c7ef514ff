//! Facts about the machine: whether it is a virtual machine that returns free memory, and its page size.

use crate::text;
use core::ffi::CStr;

/// From which power of two pages free memory is reported to the host (`CONFIG_PAGE_REPORTING`).
pub const REPORTING: &CStr = c"/sys/module/page_reporting/parameters/page_reporting_order";
/// The largest power of two pages that Linux keeps in one piece. A setting beyond it reports nothing.
const ORDER_MAX: u64 = 10;

/// True if this is a virtual machine that reports free memory to its host, which takes the frames. The first
/// touch of such memory waits until the host has found others. Detected on Linux 5.14 or later.
pub fn takes_free_pages() -> bool {
    let mut buffer = [0; 16];
    let order = text::read(REPORTING, &mut buffer).and_then(text::number);
    order.is_some_and(|order| order <= ORDER_MAX)
}

/// Bytes of the kernel's pages: 4096, but on some kernels of aarch64.
pub fn page_bytes() -> usize {
    // SAFETY: `getauxval` takes a number and reads the kernel's vector, which stays.
    let said = unsafe { libc::getauxval(libc::AT_PAGESZ) } as usize;
    if said == 0 { crate::PAGE } else { said }
}
