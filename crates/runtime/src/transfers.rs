//! The C library's transfers, seen on their way when big blocks are paged without privilege.
//!
//! The kernel, told of user mode's faults only, fails a call that meets a missing page with `EFAULT`. The
//! calls by which programs move data in and out of big blocks are made with a buffer instead (`bounce`).
//! Small arguments of other calls are dealt with in `calls`, messages in `messages`, stdio in `streams`.
//!
//! | call | in pieces |
//! | --- | --- |
//! | reads from files, random bytes, writes to streams and files | yes, until all is done or one is short |
//! | reads from anything else | one piece: a second could wait where the whole call would not |
//! | vectors | never: one buffer takes all of one |
//!
//! `process_vm_readv` and its counterpart name memory of this process by its address, so its pages are
//! brought instead; `vmsplice`, which would lend its pages to a pipe, copies.
//!
//! Without paging, or with privilege, each function is one comparison and a jump.

use crate::bounce::PIECE;
use crate::jump::{find, functions};
use crate::pieces::{gather, give_out, is_paged, is_regular, is_stream, paged_parts, scatter, take_in};
use crate::shadow;
use core::ffi::{c_int, c_uint, c_ulong, c_void};
use core::sync::atomic::AtomicPtr;
use libc::{iovec, off_t, pid_t, size_t, ssize_t};

functions! {
    read(file: c_int, to: *mut u8, len: size_t) -> ssize_t = c"read";
    __read_chk(file: c_int, to: *mut u8, len: size_t, room: size_t) -> ssize_t = c"__read_chk";
    write(file: c_int, from: *const u8, len: size_t) -> ssize_t = c"write";
    pread(file: c_int, to: *mut u8, len: size_t, at: off_t) -> ssize_t = c"pread";
    pread64(file: c_int, to: *mut u8, len: size_t, at: off_t) -> ssize_t = c"pread64";
    __pread_chk(file: c_int, to: *mut u8, len: size_t, at: off_t, room: size_t) -> ssize_t = c"__pread_chk";
    __pread64_chk(file: c_int, to: *mut u8, len: size_t, at: off_t, room: size_t) -> ssize_t = c"__pread64_chk";
    pwrite(file: c_int, from: *const u8, len: size_t, at: off_t) -> ssize_t = c"pwrite";
    pwrite64(file: c_int, from: *const u8, len: size_t, at: off_t) -> ssize_t = c"pwrite64";
    readv(file: c_int, parts: *const iovec, count: c_int) -> ssize_t = c"readv";
    writev(file: c_int, parts: *const iovec, count: c_int) -> ssize_t = c"writev";
    preadv(file: c_int, parts: *const iovec, count: c_int, at: off_t) -> ssize_t = c"preadv";
    preadv64(file: c_int, parts: *const iovec, count: c_int, at: off_t) -> ssize_t = c"preadv64";
    pwritev(file: c_int, parts: *const iovec, count: c_int, at: off_t) -> ssize_t = c"pwritev";
    pwritev64(file: c_int, parts: *const iovec, count: c_int, at: off_t) -> ssize_t = c"pwritev64";
    preadv2(file: c_int, parts: *const iovec, count: c_int, at: off_t, flags: c_int) -> ssize_t = c"preadv2";
    preadv64v2(file: c_int, parts: *const iovec, count: c_int, at: off_t, flags: c_int) -> ssize_t = c"preadv64v2";
    pwritev2(file: c_int, parts: *const iovec, count: c_int, at: off_t, flags: c_int) -> ssize_t = c"pwritev2";
    pwritev64v2(file: c_int, parts: *const iovec, count: c_int, at: off_t, flags: c_int) -> ssize_t = c"pwritev64v2";
    getrandom(to: *mut u8, len: size_t, flags: c_uint) -> ssize_t = c"getrandom";
    arc4random_buf(to: *mut u8, len: size_t) -> () = c"arc4random_buf";
    process_vm_readv(pid: pid_t, here: *const iovec, count: c_ulong, there: *const iovec, many: c_ulong, flags: c_ulong) -> ssize_t = c"process_vm_readv";
    process_vm_writev(pid: pid_t, here: *const iovec, count: c_ulong, there: *const iovec, many: c_ulong, flags: c_ulong) -> ssize_t = c"process_vm_writev";
}

/// What the functions do when big blocks must not be handed to the kernel. Each has the conditions of the C
/// library's function.
pub(crate) mod guarded {
    #![allow(clippy::missing_safety_doc, reason = "said of all of them above")]
    use super::*;

    macro_rules! reads {
        ($($name:ident($($more:ident: $kind:ty),*) at $offset:expr;)*) => { $(
            pub(crate) unsafe extern "C" fn $name(file: c_int, to: *mut u8, len: size_t, $($more: $kind),*) -> ssize_t {
                // SAFETY: passed on, or the caller's memory, by pieces.
                unsafe {
                    if !is_paged(to, len) {
                        return plain::$name(file, to, len, $($more),*);
                    }
                    let offset: fn(usize, $($kind),*) -> ($($kind,)*) = $offset;
                    take_in(to, len, || is_regular(file), |buffer, piece, done| {
                        let ($($more,)*) = offset(done, $($more),*);
                        plain::$name(file, buffer, piece, $($more),*)
                    })
                }
            }
        )* };
    }
    reads! {
        read() at |_| ();
        __read_chk(room: size_t) at |done, room| (room - done,);
        pread(at: off_t) at |done, at| (at + done as off_t,);
        pread64(at: off_t) at |done, at| (at + done as off_t,);
        __pread_chk(at: off_t, room: size_t) at |done, at, room| (at + done as off_t, room - done);
        __pread64_chk(at: off_t, room: size_t) at |done, at, room| (at + done as off_t, room - done);
    }

    macro_rules! writes {
        ($($name:ident($($more:ident: $kind:ty),*) at $offset:expr;)*) => { $(
            pub(crate) unsafe extern "C" fn $name(file: c_int, from: *const u8, len: size_t, $($more: $kind),*) -> ssize_t {
                // SAFETY: passed on, or the caller's memory, by pieces.
                unsafe {
                    if !is_paged(from, len) {
                        return plain::$name(file, from, len, $($more),*);
                    }
                    let most = if len <= PIECE || is_stream(file) { PIECE } else { len };
                    let offset: fn(usize, $($kind),*) -> ($($kind,)*) = $offset;
                    give_out(from, len, most, |buffer, piece, done| {
                        let ($($more,)*) = offset(done, $($more),*);
                        plain::$name(file, buffer, piece, $($more),*)
                    })
                }
            }
        )* };
    }
    writes! {
        write() at |_| ();
        pwrite(at: off_t) at |done, at| (at + done as off_t,);
        pwrite64(at: off_t) at |done, at| (at + done as off_t,);
    }

    macro_rules! vectors {
        ($($name:ident($($more:ident: $kind:ty),*) by $way:ident;)*) => { $(
            pub(crate) unsafe extern "C" fn $name(file: c_int, parts: *const iovec, count: c_int $(, $more: $kind)*) -> ssize_t {
                // SAFETY: passed on, or the caller's memory through a buffer.
                unsafe {
                    match paged_parts(parts, usize::try_from(count).unwrap_or(0)) {
                        None => plain::$name(file, parts, count $(, $more)*),
                        Some((parts, total)) => $way(parts, total, |buffer, len| {
                            let one = iovec { iov_base: buffer.cast(), iov_len: len };
                            plain::$name(file, &raw const one, 1 $(, $more)*)
                        }),
                    }
                }
            }
        )* };
    }
    vectors! {
        readv() by scatter;
        preadv(at: off_t) by scatter;
        preadv64(at: off_t) by scatter;
        preadv2(at: off_t, flags: c_int) by scatter;
        preadv64v2(at: off_t, flags: c_int) by scatter;
        writev() by gather;
        pwritev(at: off_t) by gather;
        pwritev64(at: off_t) by gather;
        pwritev2(at: off_t, flags: c_int) by gather;
        pwritev64v2(at: off_t, flags: c_int) by gather;
    }

    pub(crate) unsafe extern "C" fn getrandom(to: *mut u8, len: size_t, flags: c_uint) -> ssize_t {
        // SAFETY: passed on, or the caller's memory, by pieces.
        unsafe {
            if !is_paged(to, len) {
                return plain::getrandom(to, len, flags);
            }
            take_in(to, len, || true, |buffer, piece, _| plain::getrandom(buffer, piece, flags))
        }
    }

    pub(super) unsafe extern "C" fn arc4random_buf(to: *mut u8, len: size_t) {
        // SAFETY: passed on, or the caller's memory, by pieces.
        unsafe {
            if !is_paged(to, len) {
                return plain::arc4random_buf(to, len);
            }
            let all = take_in(
                to,
                len,
                || true,
                |buffer, piece, _| {
                    plain::arc4random_buf(buffer, piece);
                    piece as ssize_t
                },
            );
            // It cannot fail, so without a buffer it is done on the stack.
            let mut few = [0; FEW];
            let mut done = usize::try_from(all).unwrap_or(0);
            while done < len {
                let piece = (len - done).min(FEW);
                plain::arc4random_buf(few.as_mut_ptr(), piece);
                to.add(done).copy_from_nonoverlapping(few.as_ptr(), piece);
                done += piece;
            }
        }
    }

    macro_rules! other_processes {
        ($($name:ident;)*) => { $(
            pub(crate) unsafe extern "C" fn $name(
                pid: pid_t,
                here: *const iovec,
                count: c_ulong,
                there: *const iovec,
                many: c_ulong,
                flags: c_ulong,
            ) -> ssize_t {
                let mut tries = 0;
                loop {
                    // SAFETY: the caller's vectors.
                    let (asked, is_any) = unsafe { bring(pid, here, count, there, many) };
                    // SAFETY: passed on.
                    let got = unsafe { plain::$name(pid, here, count, there, many, flags) };
                    tries += 1;
                    // SAFETY: the C library's own function; it has no conditions.
                    let is_fault = got == -1 && unsafe { *libc::__errno_location() } == libc::EFAULT;
                    let is_short = usize::try_from(got).is_ok_and(|got| got < asked);
                    if !is_any || tries == FEW_TRIES || !(is_fault || is_short) {
                        return got;
                    }
                }
            }
        )* };
    }
    other_processes! { process_vm_readv; process_vm_writev; }
}

/// `vmsplice`, which copies from big blocks and into them, with privilege too: a page that a pipe holds would
/// be taken from under the block all the same, and its frame get other contents before the pipe is read.
///
/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vmsplice(file: c_int, parts: *const iovec, count: size_t, flags: c_uint) -> ssize_t {
    type Function = unsafe extern "C" fn(c_int, *const iovec, size_t, c_uint) -> ssize_t;
    static FOUND: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
    // SAFETY: the program's own call, or the caller's memory through a buffer.
    unsafe {
        if !vellum_malloc::paged::is_paging() || paged_parts(parts, count).is_none() {
            // The C library's function of this name has this signature.
            let theirs = core::mem::transmute::<*const c_void, Function>(find(c"vmsplice", &FOUND));
            let given = theirs(file, parts, count, flags);
            if given >= 0 {
                crate::attributes::taint_parts(parts as usize, count);
            }
            return given;
        }
        let at_once = if flags & libc::SPLICE_F_NONBLOCK != 0 { libc::RWF_NOWAIT } else { 0 };
        // The pipe's end says which way. There are at most as many parts as an `int` can say.
        if libc::fcntl(file, libc::F_GETFL) & libc::O_ACCMODE == libc::O_RDONLY {
            guarded::preadv2(file, parts, count as c_int, -1, at_once)
        } else {
            guarded::pwritev2(file, parts, count as c_int, -1, at_once)
        }
    }
}

/// Bytes on the stack.
const FEW: usize = 256;
/// How often a transfer is tried that ends early, perhaps for good reason: the program may be asking what it
/// has.
const FEW_TRIES: u32 = 8;

/// Brings what two vectors name, the second if it is this process's. How much is to be transferred, and
/// whether any of it is paged.
///
/// # Safety
/// The vectors can be read, if they are not too long for the kernel.
unsafe fn bring(
    pid: pid_t,
    here: *const iovec,
    count: c_ulong,
    there: *const iovec,
    many: c_ulong,
) -> (usize, bool) {
    let mut is_any = false;
    let mut lens = [0usize; 2];
    // SAFETY: the C library's own function; it has no conditions.
    let is_own = pid == unsafe { libc::getpid() };
    for (which, (vector, count)) in [(here, count), (there, many)].into_iter().enumerate() {
        let count = count as usize;
        if vector.is_null() || count > libc::UIO_MAXIOV as usize {
            return (0, false);
        }
        is_any |= shadow::touch(vector.addr(), count * size_of::<iovec>());
        // SAFETY: by this function's condition.
        for part in unsafe { core::slice::from_raw_parts(vector, count) } {
            lens[which] = lens[which].saturating_add(part.iov_len);
            if which == 0 || is_own {
                is_any |= shadow::touch(part.iov_base.addr(), part.iov_len);
            }
        }
    }
    (lens[0].min(lens[1]), is_any)
}

/// The system calls that are transfers; `None` for others. They may be cancelled as the C library's
/// functions, and write to streams in pieces as those.
///
/// # Safety
/// As for the system call.
pub(crate) unsafe fn by_number(number: usize, args: &[usize; 6]) -> Option<usize> {
    use crate::messages::guarded as messages;
    let &[a, b, c, d, e, f] = args;
    let (file, flags) = (a as c_int, d as c_int);
    // SAFETY: by this function's condition.
    let result = unsafe {
        match number as libc::c_long {
            libc::SYS_read => guarded::read(file, b as *mut u8, c),
            libc::SYS_write => guarded::write(file, b as *const u8, c),
            libc::SYS_pread64 => guarded::pread64(file, b as *mut u8, c, d as off_t),
            libc::SYS_pwrite64 => guarded::pwrite64(file, b as *const u8, c, d as off_t),
            libc::SYS_readv => guarded::readv(file, b as *const iovec, c as c_int),
            libc::SYS_writev => guarded::writev(file, b as *const iovec, c as c_int),
            libc::SYS_preadv => guarded::preadv64(file, b as *const iovec, c as c_int, d as off_t),
            libc::SYS_pwritev => guarded::pwritev64(file, b as *const iovec, c as c_int, d as off_t),
            // The offset has a second half, for other architectures.
            libc::SYS_preadv2 => {
                guarded::preadv2(file, b as *const iovec, c as c_int, d as off_t, f as c_int)
            }
            libc::SYS_pwritev2 => {
                guarded::pwritev2(file, b as *const iovec, c as c_int, d as off_t, f as c_int)
            }
            libc::SYS_getrandom => guarded::getrandom(a as *mut u8, b, c as c_uint),
            libc::SYS_vmsplice => vmsplice(file, b as *const iovec, c, d as c_uint),
            libc::SYS_process_vm_readv => guarded::process_vm_readv(
                file,
                b as *const iovec,
                c as c_ulong,
                d as *const iovec,
                e as c_ulong,
                f as c_ulong,
            ),
            libc::SYS_process_vm_writev => guarded::process_vm_writev(
                file,
                b as *const iovec,
                c as c_ulong,
                d as *const iovec,
                e as c_ulong,
                f as c_ulong,
            ),
            libc::SYS_recvfrom => messages::recvfrom(file, b as *mut u8, c, flags, e as *mut _, f as *mut _),
            libc::SYS_sendto => messages::sendto(file, b as *const u8, c, flags, e as *const _, f as _),
            libc::SYS_recvmsg => messages::recvmsg(file, b as *mut _, c as c_int),
            libc::SYS_sendmsg => messages::sendmsg(file, b as *const _, c as c_int),
            libc::SYS_recvmmsg => {
                messages::recvmmsg(file, b as *mut _, c as c_uint, flags, e as *mut _) as ssize_t
            }
            libc::SYS_sendmmsg => messages::sendmmsg(file, b as *mut _, c as c_uint, flags) as ssize_t,
            _ => return None,
        }
    };
    Some(result as usize)
}
