//! Calls `vel_malloc_batch` and `vel_free_batch`, which only Vellum has, and looks them up at run time.
//!
//! The worker is the same program under every allocator, so it must not need symbols that most allocators
//! lack.

use super::WorkError;
use std::ffi::{CStr, c_void};

/// Finds a function of the preloaded library, by the program's search order.
fn find(name: &'static CStr) -> Result<*mut c_void, WorkError> {
    // SAFETY: `dlsym` gets a C string and the pseudo-handle for the program's own search order.
    let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if symbol.is_null() {
        return Err(WorkError::Lacks(name.to_str().unwrap_or("such function")));
    }
    Ok(symbol)
}

type MallocBatch = unsafe extern "C" fn(usize, usize, *mut *mut c_void) -> usize;
type FreeBatch = unsafe extern "C" fn(*const *mut c_void, usize);

/// `vel_malloc_batch` and `vel_free_batch`: many blocks in one call.
#[derive(Debug, Clone, Copy)]
pub struct Batch {
    malloc: MallocBatch,
    free: FreeBatch,
}

impl Batch {
    /// The calls of the preloaded library.
    ///
    /// # Errors
    /// [`WorkError::Lacks`] if it does not have them.
    pub fn find() -> Result<Self, WorkError> {
        let (malloc, free) = (find(c"vel_malloc_batch")?, find(c"vel_free_batch")?);
        // SAFETY: vellum.h declares these functions with these types.
        unsafe {
            Ok(Self {
                malloc: std::mem::transmute::<*mut c_void, MallocBatch>(malloc),
                free: std::mem::transmute::<*mut c_void, FreeBatch>(free),
            })
        }
    }

    /// Fills `out` with blocks of `bytes`; ends the worker if there are not enough.
    ///
    /// # Panics
    /// If there are not enough.
    pub fn malloc(self, bytes: usize, out: &mut [*mut u8]) {
        // SAFETY: `out` has as many places as pointers are requested.
        let got = unsafe { (self.malloc)(bytes, out.len(), out.as_mut_ptr().cast()) };
        assert!(got == out.len(), "vel_malloc_batch gave {got} of {} blocks of {bytes} bytes", out.len());
    }

    /// Frees all `blocks`.
    ///
    /// # Safety
    /// Each is live, there once, and dead afterwards.
    pub unsafe fn free(self, blocks: &[*mut u8]) {
        // SAFETY: `find` checked the function's address; every block is live and listed once by this
        // function's `# Safety`.
        unsafe { (self.free)(blocks.as_ptr().cast(), blocks.len()) };
    }
}
