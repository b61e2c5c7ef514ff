//! Limits huge pages by their cost on this machine, as this process has measured it.
//!
//! A huge page costs one fault and the clearing of 2 MiB, a quarter or less of the cost of 512 base pages.
//! This holds while the host has the frames. A virtual machine that **reports its free pages** has returned
//! every free piece of 2 MiB to its host. The first touch of such a piece waits until the host has found
//! each of its frames again, and costs some twenty times as much. Base pages come from smaller free pieces,
//! which are not reported. On such a machine huge pages are **tried**:
//!
//! * No huge page is granted before [`FIRST_TRIAL`] bytes have proved dense (touched nearly everywhere, see
//!   `huge_window`), so short programs pay no trial.
//! * Then little is granted at a time. The first huge page of each grant is fetched at once and timed.
//! * After a page that took longer than [`DEAR_NS`], none is granted until [`AGAIN`] times as many bytes have
//!   proved dense as had by then.
//!
//! Huge pages by the program's request (`MADV_HUGEPAGE`) and by [`HugePolicy::Always`] are not tried.
//!
//! [`HugePolicy::Always`]: crate::HugePolicy::Always

use crate::units::HUGE;
use vellum_sys::host;

/// Bytes to prove dense before the first trial: their base pages cost a few times a dear huge page.
const FIRST_TRIAL: usize = 16 << 20;
/// A trial that shows huge pages to be dear is repeated when this many times as much has proved dense.
const AGAIN: usize = 4;
/// The most that one trial speaks for: memory lent to the host can begin anywhere.
const SPOKEN_FOR: usize = 3 * HUGE;
/// About the price of 512 base pages on a slow machine: a huge page that costs more is not worth it.
const DEAR_NS: u64 = 1_000_000;

#[derive(Debug)]
pub(crate) struct Price {
    /// True if huge pages must be tried; `None` before the first query.
    is_tried: Option<bool>,
    /// Bytes proved dense from which they are tried.
    from: usize,
}

impl Price {
    pub(crate) const fn new() -> Price {
        Price { is_tried: None, from: FIRST_TRIAL }
    }

    /// True if huge pages must show that they are cheap.
    pub(crate) fn is_tried(&mut self) -> bool {
        *self.is_tried.get_or_insert_with(host::takes_free_pages)
    }

    /// Bytes that may be granted at a time to a process of which `proved` bytes are dense.
    pub(crate) fn limit(&mut self, proved: usize) -> usize {
        match self.is_tried() {
            false => usize::MAX,
            true if proved < self.from => 0,
            true => SPOKEN_FOR,
        }
    }

    /// A huge page took `ns` of processor time. Returns true if that was too much.
    pub(crate) fn paid(&mut self, ns: u64, proved: usize) -> bool {
        let is_dear = ns > DEAR_NS;
        if is_dear {
            self.from = proved.max(FIRST_TRIAL).saturating_mul(AGAIN);
        }
        is_dear
    }

    #[cfg(test)]
    pub(crate) fn try_for_test(&mut self) {
        self.is_tried = Some(true);
    }

    #[cfg(test)]
    pub(crate) fn trust_for_test(&mut self) {
        self.is_tried = Some(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_program_tries_none() {
        let mut price = Price::new();
        price.try_for_test();
        assert_eq!(price.limit(FIRST_TRIAL - 1), 0);
        assert_eq!(price.limit(FIRST_TRIAL), SPOKEN_FOR);
    }

    #[test]
    fn cheap_ones_go_on_and_dear_ones_end_it_for_long() {
        let mut price = Price::new();
        price.try_for_test();
        let (mut proved, mut dear) = (0, 0);
        // Each huge page proved: one that is tried costs as if all free memory were the host's.
        while proved < 4 << 30 {
            proved += HUGE;
            if price.limit(proved) > 0 {
                dear += usize::from(price.paid(5 * DEAR_NS, proved));
            }
        }
        assert_eq!(dear, 5, "at 16 and 64 and 256 MiB, 1 and 4 GiB");
        assert!(!price.paid(DEAR_NS / 4, usize::MAX));
        assert_eq!(price.limit(usize::MAX), SPOKEN_FOR, "cheap again");
    }
}
