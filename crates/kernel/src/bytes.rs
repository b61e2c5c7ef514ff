//! A number of bytes, as a type.
//!
//! Files of the kernel give sizes in pages, in KiB or in bytes. Readers convert all to [`Bytes`].

use std::iter::Sum;
use std::ops::{Add, AddAssign};

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

impl Bytes {
    /// `kib` times 1024 bytes.
    pub const fn from_kib(kib: u64) -> Bytes {
        Bytes(kib.saturating_mul(1 << 10))
    }

    /// `pages` pages of this machine.
    pub fn from_pages(pages: u64) -> Bytes {
        Bytes(pages.saturating_mul(rustix::param::page_size() as u64))
    }
}

impl Add for Bytes {
    type Output = Bytes;
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Bytes) {
        self.0 = self.0.saturating_add(other.0);
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Bytes>>(iter: I) -> Bytes {
        iter.fold(Bytes(0), Add::add)
    }
}
