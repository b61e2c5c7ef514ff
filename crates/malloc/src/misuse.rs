//! Reports of a program's misuse of its memory, each of which ends the process.
//!
//! A report is one line on standard error, written without allocating, and the stack. Then the process
//! aborts, as memory with wrong records must not be used further.
//!
//! ```text
//! vellum: free(0x7f3c40010040): the block is already free (64-byte class)
//!   at libfoo.so+0x1234
//! ```
//!
//! These are always caught, and the hardened mode catches more (`harden`):
//! - a block freed, resized or measured after it was freed, until its address is handed out again;
//! - an address inside a block, or outside the memory of all blocks;
//! - an overwritten link of a free block.

use crate::backtrace;
use crate::class::SHAPES;
use crate::seal::Block;
use crate::space::Space;
use vellum_pages::{Misuse, Pages};
use vellum_sys::{Line, thread};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    AlreadyFree,
    /// No block starts there.
    NoStart,
    /// The link of a free block is not as it was written.
    Overwritten,
}

/// Ends the process for passing `address` to `function`.
#[cold]
#[inline(never)]
pub(crate) fn refuse(function: &str, address: *const u8, misuse: Misuse) -> ! {
    let mut line = begin(function, address);
    match misuse {
        Misuse::NotOurs => line.text("this address was never handed out, or its memory has gone back since"),
        Misuse::InsideBlock { start } => {
            line.text("the address lies inside the block at 0x").hex(start.get());
            if let Ok(extent) = Pages::global().extent_at(start.ptr()) {
                line.text(" (large, ").decimal(extent.bytes as u64).text(" bytes)");
            }
            &mut line
        }
        Misuse::AlreadyFree => line.text("the block is already free (large)"),
        Misuse::Mapping => line.text("this memory was mapped by mmap: munmap gives it back"),
    };
    end(&mut line)
}

/// Ends the process for passing `address`, which lies in a slab's unit, to `function`.
#[cold]
#[inline(never)]
pub(crate) fn refuse_small(function: &str, address: *const u8, fault: Fault) -> ! {
    let space = Space::get();
    let slab = space.slab_of(address).filter(|slab| slab.is_slab());
    let (bytes, carved, unit) = slab.map_or((0, 0, address as usize), |slab| {
        (
            SHAPES[usize::from(slab.class.get())].bytes as usize,
            slab.carved.get(),
            space.unit_of(slab) as usize,
        )
    });
    let mut line = begin(function, address);
    match fault {
        Fault::AlreadyFree => line.text("the block is already free"),
        Fault::Overwritten => line.text("the free list was overwritten at this block"),
        Fault::NoStart => match (address as usize - unit).checked_div(bytes) {
            Some(index) if index < usize::from(carved) => {
                line.text("the address lies inside the block at 0x").hex(unit + index * bytes)
            }
            _ => line.text("this address was never handed out, or its memory has gone back since"),
        },
    };
    if bytes > 0 {
        line.text(" (").decimal(bytes as u64).text("-byte class)");
    }
    end(&mut line)
}

/// Ends the process because the large block at `address` was written to after `function` had it.
#[cold]
#[inline(never)]
pub(crate) fn refuse_written(function: &str, address: *const u8) -> ! {
    let mut line = begin(function, address);
    line.text("the block was written to after it was freed (large");
    if let Ok(extent) = Pages::global().extent_at(address) {
        line.text(", ").decimal(extent.bytes as u64).text(" bytes");
    }
    end(line.text(")"))
}

/// Ends the process because a program frees the block of `has` bytes at `address` with the size `said`.
#[cold]
#[inline(never)]
pub(crate) fn refuse_size(address: *const u8, said: usize, has: usize) -> ! {
    let mut line = begin("free", address);
    line.text("the size given, ").decimal(said as u64).text(", is not that of the block, which has ");
    end(line.decimal(has as u64).text(" bytes"))
}

/// The start of a line about `address`, which `function` was called with.
pub(crate) fn begin(function: &str, address: *const u8) -> Line {
    let mut line = Line::new();
    line.text("vellum: ").text(function).text("(0x").hex(address as usize).text("): ");
    line
}

/// Writes the line and the stack, and ends the process.
pub(crate) fn end(line: &mut Line) -> ! {
    line.text("\n").write();
    if thread::is_helper() {
        // No thread of the C library's, and its stack says nothing.
        thread::abort();
    }
    backtrace::write();
    // SAFETY: abort has no preconditions.
    unsafe { libc::abort() }
}

impl Block {
    /// The next block of the list, or the end of the process if the seal is not valid.
    #[inline]
    pub(crate) fn next(&self) -> *mut Block {
        match self.sealed_next() {
            Some(next) => next,
            None => refuse_small("malloc", core::ptr::from_ref(self).cast(), Fault::Overwritten),
        }
    }
}
