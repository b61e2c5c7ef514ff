//! Asynchronous input and output (POSIX's), repaired when big blocks are guarded.
//!
//! The C library makes these transfers in threads of its own, by calls that cannot be seen: where a page is
//! missing one ends early, or with `EFAULT`. The call that asks how it ended then makes the rest of it, so
//! that the result is the one that would have been.
//!
//! Both C libraries keep error and result at the same places of the control block, and change them no more
//! once the request has ended.

use crate::jump::functions;
use crate::pieces::{is_paged, is_regular};
use crate::transfers::guarded::{pread64, pwrite64};
use core::ffi::c_int;
use core::sync::atomic::{AtomicI32, Ordering};
use libc::{aiocb, off_t, ssize_t};
use vellum_sys::lock::Guarded;

functions! {
    aio_read(request: *mut aiocb) -> c_int = c"aio_read";
    aio_read64(request: *mut aiocb) -> c_int = c"aio_read64";
    aio_write(request: *mut aiocb) -> c_int = c"aio_write";
    aio_write64(request: *mut aiocb) -> c_int = c"aio_write64";
    aio_error(request: *const aiocb) -> c_int = c"aio_error";
    aio_error64(request: *const aiocb) -> c_int = c"aio_error64";
    aio_return(request: *mut aiocb) -> ssize_t = c"aio_return";
    aio_return64(request: *mut aiocb) -> ssize_t = c"aio_return64";
}

/// Where the error and the result are.
const ERROR: usize = 112;
const RESULT: usize = 120;
const _: () = assert!(
    core::mem::offset_of!(aiocb, aio_offset) == 128 && core::mem::offset_of!(aiocb, aio_sigevent) == 32
);

/// Requests are repaired by one thread at a time.
static REPAIR: Guarded<()> = Guarded::new(());

/// Makes what is missing of a request that met a missing page. A read from anything but files could have
/// waited, so its shortness is its own.
///
/// # Safety
/// A control block.
unsafe fn repair(request: *const aiocb) {
    // SAFETY: by this function's condition: the C library's words, which are not written to after the
    // request's end; the buffer is the caller's.
    unsafe {
        let error = AtomicI32::from_ptr(request.byte_add(ERROR).cast_mut().cast());
        let result = request.byte_add(RESULT).cast_mut().cast::<ssize_t>();
        let (buffer, bytes) = ((*request).aio_buf.cast::<u8>(), (*request).aio_nbytes);
        if !is_paged(buffer, bytes) {
            return;
        }
        let _one = REPAIR.lock();
        let done = match error.load(Ordering::Acquire) {
            libc::EFAULT => 0,
            0 => usize::try_from(*result).unwrap_or(bytes),
            _ => return,
        };
        let (file, at) = ((*request).aio_fildes, (*request).aio_offset + done as off_t);
        if done >= bytes || !is_regular(file) {
            return;
        }
        let more = match (*request).aio_lio_opcode {
            libc::LIO_READ => pread64(file, buffer.add(done), bytes - done, at),
            libc::LIO_WRITE => pwrite64(file, buffer.add(done), bytes - done, at),
            _ => return,
        };
        if more >= 0 {
            *result = done as ssize_t + more;
            error.store(0, Ordering::Release);
        } else if done == 0 {
            error.store(*libc::__errno_location(), Ordering::Release);
        }
    }
}

/// What the functions do when big blocks must not be handed to the kernel. Each has the conditions of the C
/// library's function.
mod guarded {
    #![allow(clippy::missing_safety_doc, reason = "said of all of them above")]
    use super::*;

    macro_rules! begin {
        ($($name:ident as $what:expr;)*) => { $(
            pub(super) unsafe extern "C" fn $name(request: *mut aiocb) -> c_int {
                // SAFETY: the caller's control block, of which this part is glibc's to set; the C library's
                // own call.
                unsafe {
                    (*request).aio_lio_opcode = $what;
                    plain::$name(request)
                }
            }
        )* };
    }
    begin! { aio_read as libc::LIO_READ; aio_read64 as libc::LIO_READ; aio_write as libc::LIO_WRITE; aio_write64 as libc::LIO_WRITE; }

    macro_rules! ask {
        ($($name:ident($request:ty) -> $result:ty;)*) => { $(
            pub(super) unsafe extern "C" fn $name(request: $request) -> $result {
                // SAFETY: the caller's control block; the C library's own call.
                unsafe {
                    repair(request);
                    plain::$name(request)
                }
            }
        )* };
    }
    ask! {
        aio_error(*const aiocb) -> c_int;
        aio_error64(*const aiocb) -> c_int;
        aio_return(*mut aiocb) -> ssize_t;
        aio_return64(*mut aiocb) -> ssize_t;
    }
}
