//! Flags of the kernel facilities that are still usable here, as far as is known.
//!
//! All flags are set at first. The first call that the kernel refuses clears its flag, so no process tests
//! facilities that it does not use. `VELLUM_MASK=lazy_free,move,...` clears flags from the start; the names
//! are those of [`Caps::NAMES`].

use core::sync::atomic::{AtomicU16, AtomicU32, Ordering::Relaxed};
use rustix::io::Errno;

bitflags::bitflags! {
    /// Kernel facilities Vellum uses when they are there, and does without otherwise.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Caps: u32 {
        /// `MADV_FREE`, Linux 4.5. Without it a discardable page is flushed at once.
        const LAZY_FREE = 1 << 0;
        /// `MADV_HUGEPAGE`. Without it only the system's own policy makes huge pages.
        const HUGE_PAGES = 1 << 1;
        /// `MADV_POPULATE_WRITE`, Linux 5.14. Without it frames arrive by faults.
        const POPULATE = 1 << 2;
        /// `UFFDIO_MOVE`, Linux 6.8. Without it page tables move by `mremap`.
        const MOVE = 1 << 3;
        /// `mremap`. Without it a block moves by copying.
        const REMAP = 1 << 4;
        /// A helper thread. Without it memory decays only when the program allocates.
        const HELPER = 1 << 5;
        /// Reading control-group limits.
        const CGROUP = 1 << 6;
        /// `mincore`. Without it huge pages are not extended over blocks whose density is unknown.
        const RESIDENCY = 1 << 7;
        /// Pressure-stall triggers, Linux 5.2. Without them limits are only polled.
        const PRESSURE = 1 << 8;
        /// `MAP_FIXED_NOREPLACE`, Linux 4.17. Without it placement trusts the address hint.
        const NOREPLACE = 1 << 9;
        /// `membarrier`, Linux 4.14. Without it idle threads keep their free small blocks.
        const MEMBARRIER = 1 << 10;
        /// Asynchronous write-protection and `PAGEMAP_SCAN`, Linux 6.7. Without them pages are protected.
        const TRACK = 1 << 11;
        /// Finding writes by page protection and SIGSEGV. Without both, a collection stops the world once.
        const PROTECT = 1 << 12;
    }
}

impl Caps {
    /// The names accepted by `VELLUM_MASK`.
    pub const NAMES: &'static [(&'static str, Caps)] = &[
        ("lazy_free", Caps::LAZY_FREE),
        ("huge_pages", Caps::HUGE_PAGES),
        ("populate", Caps::POPULATE),
        ("move", Caps::MOVE),
        ("remap", Caps::REMAP),
        ("helper", Caps::HELPER),
        ("cgroup", Caps::CGROUP),
        ("residency", Caps::RESIDENCY),
        ("pressure", Caps::PRESSURE),
        ("noreplace", Caps::NOREPLACE),
        ("membarrier", Caps::MEMBARRIER),
        ("track", Caps::TRACK),
        ("protect", Caps::PROTECT),
    ];

    /// The flag called `name`.
    pub fn by_name(name: &[u8]) -> Option<Caps> {
        Caps::NAMES.iter().find(|(known, _)| known.as_bytes() == name).map(|&(_, caps)| caps)
    }

    /// The flags of comma-separated names; `None` if a name is unknown.
    pub fn by_names(names: &[u8]) -> Option<Caps> {
        let names = names.split(|&byte| byte == b',').filter(|name| !name.is_empty());
        names.map(Caps::by_name).try_fold(Caps::empty(), |all, one| Some(all | one?))
    }
}

static AVAILABLE: AtomicU32 = AtomicU32::new(Caps::all().bits());

/// True if everything in `caps` may still be tried.
#[inline]
pub fn has(caps: Caps) -> bool {
    AVAILABLE.load(Relaxed) & caps.bits() == caps.bits()
}

/// Gives up on `caps` for the life of this process.
pub fn drop(caps: Caps) {
    AVAILABLE.fetch_and(!caps.bits(), Relaxed);
}

/// The errno that each flag was dropped for; 0 if there was none.
static REFUSALS: [AtomicU16; Caps::NAMES.len()] = [const { AtomicU16::new(0) }; Caps::NAMES.len()];

/// Gives up on the flag `one`, which the kernel has refused with `errno`.
pub fn refuse(one: Caps, errno: Errno) {
    if let Some(refusal) = REFUSALS.get(one.bits().trailing_zeros() as usize) {
        refusal.store(errno.raw_os_error() as u16, Relaxed);
    }
    drop(one);
}

/// The errno with which the kernel refused the flag `one`, if it did.
pub fn refusal(one: Caps) -> Option<Errno> {
    let errno = REFUSALS.get(one.bits().trailing_zeros() as usize)?.load(Relaxed);
    (errno != 0).then(|| Errno::from_raw_os_error(errno.into()))
}

/// The capabilities that may be tried now.
pub fn available() -> Caps {
    Caps::from_bits_truncate(AVAILABLE.load(Relaxed))
}

/// True if `errno` means that a facility is missing or forbidden, not only this request refused.
pub fn means_missing(errno: Errno) -> bool {
    [Errno::NOSYS, Errno::INVAL, Errno::PERM, Errno::OPNOTSUPP, Errno::ACCESS, Errno::NOTTY].contains(&errno)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flag_has_one_name() {
        let named = Caps::NAMES.iter().fold(Caps::empty(), |all, &(_, caps)| all | caps);
        assert_eq!(named, Caps::all());
        assert_eq!(Caps::NAMES.len(), Caps::all().bits().count_ones() as usize, "each has a bit of its own");
        assert_eq!(Caps::by_name(b"move"), Some(Caps::MOVE));
        assert_eq!(Caps::by_name(b"nothing"), None);
        assert_eq!(Caps::by_names(b"move,,track"), Some(Caps::MOVE | Caps::TRACK));
        assert_eq!((Caps::by_names(b""), Caps::by_names(b"move,nothing")), (Some(Caps::empty()), None));
    }
}
