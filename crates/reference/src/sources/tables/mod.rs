//! Counts accessed bits in page tables, by a BPF program in the kernel.
//!
//! The kernel calls the program for each mapping of the process ([`program`]). Counting a page takes some
//! 3 ns; `smaps` takes 70 ns. A large job is therefore sampled two to four times as often for the same
//! budget.
//!
//! ```text
//! btf        reads the layout of this kernel's structures
//! assembler  makes BPF instructions
//! program    the BPF program, which walks over the page tables
//! reader     loads the program, tests it on our own process, and runs it for others
//! ```
//!
//! Other counts come from `/proc`. Swapped memory is read at each look (count of references). At every
//! 64th look, `smaps` gives two further counts: the shared part of text and libraries, and the memory that
//! processes of the job share ([`Aside`]).
//!
//! We wrote an assembler and a loader, instead of compiling the program from C and loading it by the crate
//! `aya`. `aya` 0.14 relocates no calls of kernel functions (the loop of `bpf_iter_num_new`) and cannot limit
//! an iterator to one process, and it brings 22 packages. Each change of the program would also need clang.

mod assembler;
pub(crate) mod btf;
mod program;
mod reader;

pub(super) use reader::Reader;

use super::aside::Aside;
use crate::source::{Count, SourceError};
use program::Counted;
use vellum_kernel::{Bytes, Pid};

/// Counts by a program in the kernel.
#[derive(Debug)]
pub(super) struct PageTables {
    reader: Reader,
    pub(super) aside: Aside,
}

impl PageTables {
    /// Loads the program into the kernel, where it stays for as long as this lives.
    pub(super) fn open() -> Result<PageTables, String> {
        Ok(PageTables { reader: Reader::open()?, aside: Aside::default() })
    }

    pub(super) fn count(&mut self, pid: Pid) -> Result<Count, SourceError> {
        let shared = self.aside.of(pid)?.shared;
        let failed = |operation, source| SourceError::of(operation, pid, source);
        let counted = self.reader.count(pid);
        let (of_program, other) = counted.map_err(|why| failed("read the page tables", why))?;
        if of_program == Counted::default() && other == Counted::default() {
            // A process that is ending has no memory left.
            return Err(SourceError::Ended(pid));
        }
        let status = pid.status().map_err(|why| failed("read the status", why.source))?;
        Ok(sum(of_program, other, shared, status.swapped))
    }
}

/// The sum of both counts, without the pages of the program's files that others share.
fn sum(of_program: Counted, other: Counted, shared: Bytes, swapped: Bytes) -> Count {
    let bytes = |pages: u64| Bytes(pages * vellum_sys::PAGE as u64);
    let shared = Bytes(shared.0.min(bytes(of_program.present).0));
    // How many of the shared pages were referenced is not known: references are taken to be spread evenly.
    let kept = of_program.present - shared.0 / vellum_sys::PAGE as u64;
    let referenced = of_program.referenced * kept / of_program.present.max(1);
    let huge_referenced = of_program.huge_referenced + other.huge_referenced;
    let huge = of_program.huge_present + other.huge_present;
    Count {
        referenced: bytes(referenced + other.referenced + huge_referenced),
        resident: bytes(of_program.present + other.present + huge),
        huge: bytes(huge),
        swapped,
        shared,
        twice: Bytes(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_pages_of_the_program_are_left_out_evenly() {
        let of_program = Counted { referenced: 40, present: 100, huge_referenced: 0, huge_present: 0 };
        let other = Counted { referenced: 7, present: 9, huge_referenced: 512, huge_present: 1024 };
        let page = vellum_sys::PAGE as u64;
        let count = sum(of_program, other, Bytes(75 * page), Bytes(3));
        assert_eq!(count.referenced, Bytes((10 + 7 + 512) * page));
        assert_eq!(count.resident, Bytes((100 + 9 + 1024) * page));
        assert_eq!([count.huge, count.shared, count.swapped], [1024 * page, 75 * page, 3].map(Bytes));
        assert_eq!(sum(of_program, other, Bytes(u64::MAX), Bytes(0)).referenced, Bytes(519 * page));
    }
}
