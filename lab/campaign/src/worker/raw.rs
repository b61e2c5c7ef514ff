//! Calls of the C memory interface that an optimiser cannot remove.
//!
//! The workloads measure the allocator that the dynamic linker found, so they call the C symbols and never
//! Rust's own allocator. Compilers recognise `malloc` and delete a pair whose block is never read. Every
//! pointer therefore passes through an empty assembly block, which costs no instruction and hides the
//! pointer's origin.
//!
//! Out of memory ends the worker with one line: the campaign reports it as a failed arm.

use std::arch::asm;

/// Hides the origin of `p` from the compiler. No instruction is emitted.
#[inline(always)]
#[must_use]
pub fn opaque<T>(mut p: *mut T) -> *mut T {
    // SAFETY: the block holds no instruction; it claims to read and write memory and the register, which only
    // restrains the compiler.
    unsafe { asm!("/* {0} */", inout(reg) p, options(nostack, preserves_flags)) };
    p
}

/// A block of `bytes`.
#[inline(always)]
#[must_use]
pub fn malloc(bytes: usize) -> *mut u8 {
    // SAFETY: malloc has no precondition.
    given("malloc", bytes, unsafe { libc::malloc(bytes) })
}

/// The block `p`, with its contents, at the new size.
///
/// # Safety
/// `p` is null or a live block of this interface; the old pointer is dead afterwards.
#[inline(always)]
#[must_use]
pub unsafe fn realloc(p: *mut u8, bytes: usize) -> *mut u8 {
    // SAFETY: `p` is null or a live block, by this function's `# Safety`; the assembly block returns it
    // unchanged.
    given("realloc", bytes, unsafe { libc::realloc(opaque(p).cast(), bytes) })
}

/// Frees the block.
///
/// # Safety
/// `p` is null or a live block of this interface, dead afterwards.
#[inline(always)]
pub unsafe fn free(p: *mut u8) {
    // SAFETY: `p` is null or a live block, by this function's `# Safety`; the assembly block returns it
    // unchanged.
    unsafe { libc::free(opaque(p).cast()) };
}

#[inline(always)]
fn given(call: &str, bytes: usize, p: *mut libc::c_void) -> *mut u8 {
    let p = opaque(p.cast::<u8>());
    if p.is_null() && bytes > 0 {
        exhausted(call, bytes);
    }
    p
}

#[cold]
#[inline(never)]
fn exhausted(call: &str, bytes: usize) -> ! {
    panic!(
        "{call} of {bytes} bytes returned null: the workload needs more memory than this machine or limit gives"
    );
}

/// A live block and its requested size.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Block {
    /// Null without a block.
    pub at: *mut u8,
    /// Its size.
    pub bytes: usize,
}

// SAFETY: a block is plain memory; workloads move it between threads, and one thread owns it at a time.
unsafe impl Send for Block {}

impl Block {
    /// Whether there is a block.
    #[inline(always)]
    #[must_use]
    pub fn is_some(&self) -> bool {
        !self.at.is_null()
    }

    /// Writes a word (a byte in a smaller block) that depends on the block's address and size.
    #[inline(always)]
    pub fn stamp(&self) {
        // SAFETY: the block is live and holds at least the bytes written.
        unsafe {
            if self.bytes >= 8 {
                self.at.cast::<usize>().write_unaligned(self.at.addr() ^ self.bytes);
            } else if self.bytes > 0 {
                self.at.write(self.bytes as u8 ^ 0xa5);
            }
        }
    }

    /// Whether the stamp is intact: no other block has overlapped this one.
    #[inline(always)]
    #[must_use]
    pub fn intact(&self) -> bool {
        // SAFETY: the block is live and holds at least the bytes read.
        unsafe {
            if self.bytes >= 8 {
                self.at.cast::<usize>().read_unaligned() == self.at.addr() ^ self.bytes
            } else {
                self.bytes == 0 || self.at.read() == self.bytes as u8 ^ 0xa5
            }
        }
    }

    /// Checks the stamp and frees the block, if there is one.
    #[inline(always)]
    pub fn release(self) {
        if self.is_some() {
            if !self.intact() {
                corrupted(self);
            }
            // SAFETY: blocks are made by `new` and each workload releases each once.
            unsafe { free(self.at) };
        }
    }
}

#[cold]
#[inline(never)]
fn corrupted(block: Block) -> ! {
    panic!("the block of {} bytes at {:p} lost its stamp: two live blocks overlap", block.bytes, block.at);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_detect_damage() {
        for bytes in [1, 7, 8, 9, 4096] {
            let block = Block { at: malloc(bytes), bytes };
            block.stamp();
            assert!(block.intact());
            // SAFETY: the first byte of a live block.
            unsafe { *block.at ^= 1 };
            assert!(!block.intact(), "{bytes} bytes");
            block.stamp();
            block.release();
        }
        Block { at: std::ptr::null_mut(), bytes: 0 }.release();
    }

    #[test]
    #[should_panic(expected = "returned null")]
    fn impossible_sizes_end_the_worker() {
        let _ = malloc(usize::MAX / 2);
    }
}
