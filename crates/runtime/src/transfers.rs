//! The C library's transfers, seen on their way when big blocks are paged without privilege.
//!
//! The kernel, told of user mode's faults only, fails a call that meets a missing page with `EFAULT`. The calls by which programs move data in and
//! out of big blocks are made with a buffer instead (`bounce`): `read` and `write` and their kin, messages, and stdio's `fread` and `fwrite`,
//! which hand large requests straight to the kernel. `setvbuf` with a paged buffer lets stdio use one of its own, as C allows.
//!
//! What is not seen: system calls a program makes by itself, and the other pointers that calls take (paths, `struct stat`, futexes) when they lie in a
//! big block. Where such a page is missing the call fails with `EFAULT`, never with other data.
//!
//! | call | in pieces |
//! | --- | --- |
//! | reads from files, `fread`, `fwrite`, writes to streams and files | yes, until all is done or one is short |
//! | reads from anything else | one piece: a second could wait where the whole call would not |
//! | messages | never: one buffer takes all of one |
//!
//! Without paging, or with privilege, each function is one comparison and a jump.

use crate::bounce::{Bounce, PIECE};
use crate::standing;
use core::arch::naked_asm;
use core::ffi::{CStr, c_int, c_void};
use core::mem::transmute;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use libc::{FILE, iovec, msghdr, off_t, size_t, sockaddr, socklen_t, ssize_t};
use vellum_malloc::paged::{self, GUARDED};
use vellum_malloc::set_errno;

/// Where the C library has no such function.
extern "C" fn nothing() -> isize {
    set_errno(libc::ENOSYS);
    -1
}

fn find(name: &CStr, found: &AtomicPtr<c_void>) -> *const c_void {
    let known = found.load(Relaxed);
    if !known.is_null() {
        return known;
    }
    let function = standing::next(name).unwrap_or(nothing as *const c_void);
    found.store(function.cast_mut(), Relaxed);
    function
}

/// Defines each function as a jump to the C library's, or, if big blocks are guarded, to the one in `guarded`; and in `plain` the C library's
/// own as something to be called.
macro_rules! transfers {
    ($($name:ident($($argument:ident: $kind:ty),*) -> $result:ty = $text:literal;)*) => {
        /// The C library's functions, as far as they have been looked up.
        mod found {
            use super::*;
            $(
                #[allow(non_upper_case_globals, reason = "named after its function")]
                pub(super) static $name: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
            )*
        }
        mod look_up {
            use super::*;
            $(
                pub(super) extern "C" fn $name() -> *const c_void {
                    find($text, &found::$name)
                }
            )*
        }
        mod plain {
            use super::*;
            $(
                /// # Safety
                /// As for the C library's.
                pub(super) unsafe fn $name($($argument: $kind),*) -> $result {
                    type Function = unsafe extern "C" fn($($kind),*) -> $result;
                    // SAFETY: the C library's function of this name has this signature.
                    let function = unsafe { transmute::<*const c_void, Function>(look_up::$name()) };
                    // SAFETY: passed on.
                    unsafe { function($($argument),*) }
                }
            )*
        }
        $(
            #[doc = concat!("`", stringify!($name), "`.")]
            ///
            /// # Safety
            /// As for the C library's.
            #[unsafe(naked)]
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name() {
                naked_asm!(
                    "cmp dword ptr [rip + {guarded}], 0",
                    "jne {slow}",
                    "mov rax, [rip + {next}]",
                    "test rax, rax",
                    "jz 2f",
                    "jmp rax",
                    "2:",
                    "push rdi",
                    "push rsi",
                    "push rdx",
                    "push rcx",
                    "push r8",
                    "push r9",
                    "sub rsp, 8",
                    "call {look_up}",
                    "add rsp, 8",
                    "pop r9",
                    "pop r8",
                    "pop rcx",
                    "pop rdx",
                    "pop rsi",
                    "pop rdi",
                    "jmp rax",
                    guarded = sym GUARDED,
                    slow = sym guarded::$name,
                    next = sym found::$name,
                    look_up = sym look_up::$name,
                )
            }
        )*
    };
}

transfers! {
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
    recv(file: c_int, to: *mut u8, len: size_t, flags: c_int) -> ssize_t = c"recv";
    __recv_chk(file: c_int, to: *mut u8, len: size_t, room: size_t, flags: c_int) -> ssize_t = c"__recv_chk";
    recvfrom(file: c_int, to: *mut u8, len: size_t, flags: c_int, who: *mut sockaddr, size: *mut socklen_t) -> ssize_t = c"recvfrom";
    send(file: c_int, from: *const u8, len: size_t, flags: c_int) -> ssize_t = c"send";
    sendto(file: c_int, from: *const u8, len: size_t, flags: c_int, who: *const sockaddr, size: socklen_t) -> ssize_t = c"sendto";
    recvmsg(file: c_int, message: *mut msghdr, flags: c_int) -> ssize_t = c"recvmsg";
    sendmsg(file: c_int, message: *const msghdr, flags: c_int) -> ssize_t = c"sendmsg";
    fread(to: *mut u8, size: size_t, count: size_t, stream: *mut FILE) -> size_t = c"fread";
    fread_unlocked(to: *mut u8, size: size_t, count: size_t, stream: *mut FILE) -> size_t = c"fread_unlocked";
    __fread_chk(to: *mut u8, room: size_t, size: size_t, count: size_t, stream: *mut FILE) -> size_t = c"__fread_chk";
    __fread_unlocked_chk(to: *mut u8, room: size_t, size: size_t, count: size_t, stream: *mut FILE) -> size_t = c"__fread_unlocked_chk";
    fwrite(from: *const u8, size: size_t, count: size_t, stream: *mut FILE) -> size_t = c"fwrite";
    fwrite_unlocked(from: *const u8, size: size_t, count: size_t, stream: *mut FILE) -> size_t = c"fwrite_unlocked";
    setvbuf(stream: *mut FILE, buffer: *mut u8, mode: c_int, size: size_t) -> c_int = c"setvbuf";
}

/// Whether a transfer that begins at `start` may meet a missing page. A block that is paged is so from its first byte to its last.
fn is_paged(start: *const u8, len: usize) -> bool {
    len > 0 && paged::owns(start)
}

fn is_regular(file: c_int) -> bool {
    let mut found = core::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the kernel fills the structure in if it returns 0.
    unsafe {
        libc::fstat(file, found.as_mut_ptr()) == 0
            && found.assume_init().st_mode & libc::S_IFMT == libc::S_IFREG
    }
}

/// Whether what is sent to `file` has no boundaries. What is no socket has none.
fn is_stream(file: c_int) -> bool {
    let (mut kind, mut size): (c_int, socklen_t) = (libc::SOCK_STREAM, size_of::<c_int>() as socklen_t);
    // SAFETY: the kernel writes at most `size` bytes.
    unsafe { libc::getsockopt(file, libc::SOL_SOCKET, libc::SO_TYPE, (&raw mut kind).cast(), &raw mut size) };
    kind == libc::SOCK_STREAM
}

fn no_memory() -> ssize_t {
    set_errno(libc::ENOMEM);
    -1
}

/// Fetches up to `len` bytes to `to` by `fetch`, which is given a buffer, a length and how much there is already. After a piece that was
/// filled goes on if `goes_on` says that this waits for nothing.
///
/// # Safety
/// `len` bytes at `to` can be written.
unsafe fn take_in(
    to: *mut u8,
    len: usize,
    goes_on: impl Fn() -> bool,
    mut fetch: impl FnMut(*mut u8, usize, usize) -> ssize_t,
) -> ssize_t {
    let Some(bounce) = Bounce::new(len.min(PIECE)) else { return no_memory() };
    let mut done = 0;
    loop {
        let piece = (len - done).min(bounce.len());
        let got = fetch(bounce.start(), piece, done);
        let Ok(filled) = usize::try_from(got) else { return if done > 0 { done as ssize_t } else { got } };
        // SAFETY: the piece lies within the buffer, and within what can be written. More than the piece is told where a message was cut.
        unsafe { to.add(done).copy_from_nonoverlapping(bounce.start(), filled.min(piece)) };
        done += filled;
        if filled != piece || done >= len || !goes_on() {
            return done as ssize_t;
        }
    }
}

/// Hands `len` bytes from `from` out by `hand`, which is given a buffer, a length and how much is done already, in pieces of at most
/// `most` bytes.
///
/// # Safety
/// `len` bytes at `from` can be read.
unsafe fn give_out(
    from: *const u8,
    len: usize,
    most: usize,
    mut hand: impl FnMut(*const u8, usize, usize) -> ssize_t,
) -> ssize_t {
    let Some(bounce) = Bounce::new(len.min(most)) else { return no_memory() };
    let mut done = 0;
    loop {
        let piece = (len - done).min(bounce.len());
        // SAFETY: the piece lies within what can be read, and within the buffer.
        unsafe { bounce.start().copy_from_nonoverlapping(from.add(done), piece) };
        let got = hand(bounce.start(), piece, done);
        let Ok(taken) = usize::try_from(got) else { return if done > 0 { done as ssize_t } else { got } };
        done += taken;
        if taken != piece || done >= len {
            return done as ssize_t;
        }
    }
}

/// The parts of a vector, if one of them may meet a missing page, and the bytes of all.
///
/// # Safety
/// `count` parts lie at `parts`, if `count` is positive.
unsafe fn paged_parts<'a>(parts: *const iovec, count: usize) -> Option<(&'a [iovec], usize)> {
    if parts.is_null() || count == 0 || count > libc::UIO_MAXIOV as usize {
        return None;
    }
    // SAFETY: by this function's condition.
    let parts = unsafe { core::slice::from_raw_parts(parts, count) };
    let is_any = parts.iter().any(|part| is_paged(part.iov_base.cast(), part.iov_len));
    let total = parts.iter().try_fold(0usize, |sum, part| sum.checked_add(part.iov_len))?;
    is_any.then_some((parts, total.min(VECTOR_MAX)))
}

/// The most bytes of a vector transferred by one call; more is a short transfer.
const VECTOR_MAX: usize = 64 << 20;

/// Makes a transfer into `parts` by `fetch`, into one buffer.
///
/// # Safety
/// The parts can be written.
unsafe fn scatter(parts: &[iovec], total: usize, fetch: impl FnOnce(*mut u8, usize) -> ssize_t) -> ssize_t {
    let Some(bounce) = Bounce::new(total) else { return no_memory() };
    let got = fetch(bounce.start(), total);
    let mut rest = usize::try_from(got).unwrap_or(0).min(total);
    let mut from = bounce.start().cast_const();
    for part in parts {
        let len = part.iov_len.min(rest);
        // SAFETY: by this function's condition; `from` stays within the buffer.
        unsafe {
            part.iov_base.cast::<u8>().copy_from_nonoverlapping(from, len);
            from = from.add(len);
        }
        rest -= len;
    }
    got
}

/// Makes a transfer out of `parts` by `hand`, from one buffer.
///
/// # Safety
/// The parts can be read.
unsafe fn gather(parts: &[iovec], total: usize, hand: impl FnOnce(*mut u8, usize) -> ssize_t) -> ssize_t {
    let Some(bounce) = Bounce::new(total) else { return no_memory() };
    let mut filled = 0;
    for part in parts {
        let len = part.iov_len.min(total - filled);
        // SAFETY: by this function's condition; the sum of the lengths is at most the buffer's.
        unsafe { bounce.start().add(filled).copy_from_nonoverlapping(part.iov_base.cast(), len) };
        filled += len;
    }
    hand(bounce.start(), filled)
}

/// `items` of `size` bytes, transferred in bytes.
fn items(transferred: ssize_t, size: usize) -> size_t {
    usize::try_from(transferred).unwrap_or(0) / size
}

/// What the functions do when big blocks must not be handed to the kernel. Each has the conditions of the C library's function.
mod guarded {
    #![allow(clippy::missing_safety_doc, reason = "said of all of them above")]
    use super::*;

    macro_rules! reads {
        ($($name:ident($($more:ident: $kind:ty),*) at $offset:expr;)*) => { $(
            pub(super) unsafe extern "C" fn $name(file: c_int, to: *mut u8, len: size_t, $($more: $kind),*) -> ssize_t {
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
            pub(super) unsafe extern "C" fn $name(file: c_int, from: *const u8, len: size_t, $($more: $kind),*) -> ssize_t {
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
        send(flags: c_int) at |_, flags| (flags,);
        sendto(flags: c_int, who: *const sockaddr, size: socklen_t) at |_, flags, who, size| (flags, who, size);
    }

    macro_rules! vectors {
        ($($name:ident($($at:ident)?) by $way:ident($one:ident) as $pointer:ty;)*) => { $(
            pub(super) unsafe extern "C" fn $name(file: c_int, parts: *const iovec, count: c_int $(, $at: off_t)?) -> ssize_t {
                // SAFETY: passed on, or the caller's memory through a buffer.
                unsafe {
                    match paged_parts(parts, usize::try_from(count).unwrap_or(0)) {
                        None => plain::$name(file, parts, count $(, $at)?),
                        Some((parts, total)) => {
                            $way(parts, total, |buffer, len| plain::$one(file, buffer as $pointer, len $(, $at)?))
                        }
                    }
                }
            }
        )* };
    }
    vectors! {
        readv() by scatter(read) as *mut u8;
        preadv(at) by scatter(pread) as *mut u8;
        preadv64(at) by scatter(pread64) as *mut u8;
        writev() by gather(write) as *const u8;
        pwritev(at) by gather(pwrite) as *const u8;
        pwritev64(at) by gather(pwrite64) as *const u8;
    }

    /// Whether `recv` is to wait for all that was asked for.
    fn waits(flags: c_int) -> bool {
        flags & libc::MSG_WAITALL != 0 && flags & libc::MSG_PEEK == 0
    }

    /// How long a buffer one `recv` needs: a message longer than [`PIECE`] would be cut, a stream is only read in more calls.
    fn most(file: c_int, len: usize) -> usize {
        if len <= PIECE || is_stream(file) { len.min(PIECE) } else { len }
    }

    pub(super) unsafe extern "C" fn recv(file: c_int, to: *mut u8, len: size_t, flags: c_int) -> ssize_t {
        // SAFETY: passed on.
        unsafe {
            if !is_paged(to, len) {
                return plain::recv(file, to, len, flags);
            }
            recvfrom(file, to, len, flags, core::ptr::null_mut(), core::ptr::null_mut())
        }
    }

    pub(super) unsafe extern "C" fn __recv_chk(
        file: c_int,
        to: *mut u8,
        len: size_t,
        room: size_t,
        flags: c_int,
    ) -> ssize_t {
        // SAFETY: passed on, or the caller's memory through a buffer.
        unsafe {
            if len > room || !is_paged(to, len) {
                plain::__recv_chk(file, to, len, room, flags)
            } else {
                recv(file, to, len, flags)
            }
        }
    }

    pub(super) unsafe extern "C" fn recvfrom(
        file: c_int,
        to: *mut u8,
        len: size_t,
        flags: c_int,
        who: *mut sockaddr,
        size: *mut socklen_t,
    ) -> ssize_t {
        // SAFETY: passed on, or the caller's memory through a buffer.
        unsafe {
            if !is_paged(to, len) {
                return plain::recvfrom(file, to, len, flags, who, size);
            }
            let one = iovec { iov_base: to.cast(), iov_len: most(file, len) };
            if one.iov_len > PIECE {
                return scatter(&[one], one.iov_len, |buffer, len| {
                    plain::recvfrom(file, buffer, len, flags, who, size)
                });
            }
            take_in(
                to,
                len,
                || waits(flags),
                |buffer, piece, _| plain::recvfrom(file, buffer, piece, flags, who, size),
            )
        }
    }

    pub(super) unsafe extern "C" fn recvmsg(file: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
        // SAFETY: passed on, or the caller's memory through a buffer.
        unsafe {
            let Some((parts, total)) = paged_parts((*message).msg_iov, (*message).msg_iovlen) else {
                return plain::recvmsg(file, message, flags);
            };
            scatter(parts, total, |buffer, len| {
                let mut one = iovec { iov_base: buffer.cast(), iov_len: len };
                let mut through = *message;
                (through.msg_iov, through.msg_iovlen) = (&raw mut one, 1);
                let got = plain::recvmsg(file, &raw mut through, flags);
                (through.msg_iov, through.msg_iovlen) = ((*message).msg_iov, (*message).msg_iovlen);
                *message = through;
                got
            })
        }
    }

    pub(super) unsafe extern "C" fn sendmsg(file: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
        // SAFETY: passed on, or the caller's memory through a buffer.
        unsafe {
            let Some((parts, total)) = paged_parts((*message).msg_iov, (*message).msg_iovlen) else {
                return plain::sendmsg(file, message, flags);
            };
            gather(parts, total, |buffer, len| {
                let mut one = iovec { iov_base: buffer.cast(), iov_len: len };
                let mut through = *message;
                (through.msg_iov, through.msg_iovlen) = (&raw mut one, 1);
                plain::sendmsg(file, &raw const through, flags)
            })
        }
    }

    macro_rules! streams_in {
        ($($name:ident;)*) => { $(
            pub(super) unsafe extern "C" fn $name(to: *mut u8, size: size_t, count: size_t, stream: *mut FILE) -> size_t {
                // SAFETY: passed on, or the caller's memory, by pieces.
                unsafe {
                    match size.checked_mul(count) {
                        Some(len) if is_paged(to, len) => {
                            items(take_in(to, len, || true, |buffer, piece, _| plain::$name(buffer, 1, piece, stream) as ssize_t), size)
                        }
                        _ => plain::$name(to, size, count, stream),
                    }
                }
            }
        )* };
    }
    streams_in! { fread; fread_unlocked; }

    macro_rules! checked_streams_in {
        ($($name:ident = $unchecked:ident;)*) => { $(
            pub(super) unsafe extern "C" fn $name(
                to: *mut u8,
                room: size_t,
                size: size_t,
                count: size_t,
                stream: *mut FILE,
            ) -> size_t {
                // SAFETY: passed on.
                unsafe {
                    match size.checked_mul(count) {
                        Some(len) if is_paged(to, len) && len <= room => $unchecked(to, size, count, stream),
                        _ => plain::$name(to, room, size, count, stream),
                    }
                }
            }
        )* };
    }
    checked_streams_in! { __fread_chk = fread; __fread_unlocked_chk = fread_unlocked; }

    macro_rules! streams_out {
        ($($name:ident;)*) => { $(
            pub(super) unsafe extern "C" fn $name(from: *const u8, size: size_t, count: size_t, stream: *mut FILE) -> size_t {
                // SAFETY: passed on, or the caller's memory, by pieces.
                unsafe {
                    match size.checked_mul(count) {
                        Some(len) if is_paged(from, len) => {
                            items(give_out(from, len, PIECE, |buffer, piece, _| plain::$name(buffer, 1, piece, stream) as ssize_t), size)
                        }
                        _ => plain::$name(from, size, count, stream),
                    }
                }
            }
        )* };
    }
    streams_out! { fwrite; fwrite_unlocked; }

    pub(super) unsafe extern "C" fn setvbuf(
        stream: *mut FILE,
        buffer: *mut u8,
        mode: c_int,
        size: size_t,
    ) -> c_int {
        let (buffer, size) = if is_paged(buffer, size) { (core::ptr::null_mut(), 0) } else { (buffer, size) };
        // SAFETY: passed on.
        unsafe { plain::setvbuf(stream, buffer, mode, size) }
    }
}
