//! Messages, seen on their way when big blocks are guarded: their data, names, control data, and headers.
//!
//! A message is never cut: one buffer takes all of one. `sendmmsg` and `recvmmsg` with anything in a big
//! block are made one message at a time.

use crate::bounce::{Bounce, PIECE};
use crate::jump::functions;
use crate::pieces::{gather, give_out, is_paged, is_stream, no_memory, paged_parts, scatter, take_in};
use core::ffi::{c_int, c_uint};
use core::mem::MaybeUninit;
use libc::{iovec, mmsghdr, msghdr, size_t, sockaddr, sockaddr_storage, socklen_t, ssize_t, timespec};

functions! {
    recv(file: c_int, to: *mut u8, len: size_t, flags: c_int) -> ssize_t = c"recv";
    __recv_chk(file: c_int, to: *mut u8, len: size_t, room: size_t, flags: c_int) -> ssize_t = c"__recv_chk";
    recvfrom(file: c_int, to: *mut u8, len: size_t, flags: c_int, who: *mut sockaddr, size: *mut socklen_t) -> ssize_t = c"recvfrom";
    send(file: c_int, from: *const u8, len: size_t, flags: c_int) -> ssize_t = c"send";
    sendto(file: c_int, from: *const u8, len: size_t, flags: c_int, who: *const sockaddr, size: socklen_t) -> ssize_t = c"sendto";
    recvmsg(file: c_int, message: *mut msghdr, flags: c_int) -> ssize_t = c"recvmsg";
    sendmsg(file: c_int, message: *const msghdr, flags: c_int) -> ssize_t = c"sendmsg";
    recvmmsg(file: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int, limit: *mut timespec) -> c_int = c"recvmmsg";
    sendmmsg(file: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int) -> c_int = c"sendmmsg";
}

/// No name is longer.
const NAME_MAX: usize = size_of::<sockaddr_storage>();

/// Whether the kernel may meet a missing page in what `message` names.
///
/// # Safety
/// The header and its vector can be read.
unsafe fn is_any_paged(message: *const msghdr) -> bool {
    // SAFETY: by this function's condition.
    unsafe {
        is_paged(message.cast(), 1)
            || is_paged((*message).msg_name.cast(), 1)
            || is_paged((*message).msg_control.cast(), 1)
            || paged_parts((*message).msg_iov, (*message).msg_iovlen).is_some()
    }
}

/// Calls `call` with places for a name and its length that are not paged.
///
/// # Safety
/// As for `recvfrom`'s last arguments.
unsafe fn with_name(
    who: *mut sockaddr,
    size: *mut socklen_t,
    call: impl FnOnce(*mut sockaddr, *mut socklen_t) -> ssize_t,
) -> ssize_t {
    let mut name = MaybeUninit::<sockaddr_storage>::uninit();
    // SAFETY: by this function's condition.
    unsafe {
        if who.is_null() || size.is_null() {
            return call(who, size);
        }
        let room = *size;
        let mut len = room.min(NAME_MAX as socklen_t);
        let got = call(name.as_mut_ptr().cast(), &raw mut len);
        if got >= 0 {
            who.cast::<u8>().copy_from_nonoverlapping(
                name.as_ptr().cast(),
                len.min(room).min(NAME_MAX as socklen_t) as usize,
            );
            *size = len;
        }
        got
    }
}

/// What the functions do when big blocks must not be handed to the kernel. Each has the conditions of the C
/// library's function.
pub(crate) mod guarded {
    #![allow(clippy::missing_safety_doc, reason = "said of all of them above")]
    use super::*;

    /// Whether `recv` is to wait for all that was asked for.
    fn waits(flags: c_int) -> bool {
        flags & libc::MSG_WAITALL != 0 && flags & libc::MSG_PEEK == 0
    }

    /// How long a buffer one `recv` needs: a message longer than [`PIECE`] would be cut, a stream is only
    /// read in more calls.
    fn most(file: c_int, len: usize) -> usize {
        if len <= PIECE || is_stream(file) { len.min(PIECE) } else { len }
    }

    pub(crate) unsafe extern "C" fn recv(file: c_int, to: *mut u8, len: size_t, flags: c_int) -> ssize_t {
        // SAFETY: passed on.
        unsafe {
            if !is_paged(to, len) {
                return plain::recv(file, to, len, flags);
            }
            recvfrom(file, to, len, flags, core::ptr::null_mut(), core::ptr::null_mut())
        }
    }

    pub(crate) unsafe extern "C" fn __recv_chk(
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

    pub(crate) unsafe extern "C" fn recvfrom(
        file: c_int,
        to: *mut u8,
        len: size_t,
        flags: c_int,
        who: *mut sockaddr,
        size: *mut socklen_t,
    ) -> ssize_t {
        // SAFETY: passed on, or the caller's memory through a buffer.
        unsafe {
            if is_paged(who.cast(), 1) || is_paged(size.cast(), 1) {
                return with_name(who, size, |who, size| recvfrom(file, to, len, flags, who, size));
            }
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

    pub(super) unsafe extern "C" fn send(file: c_int, from: *const u8, len: size_t, flags: c_int) -> ssize_t {
        // SAFETY: passed on.
        unsafe {
            if !is_paged(from, len) {
                return plain::send(file, from, len, flags);
            }
            sendto(file, from, len, flags, core::ptr::null(), 0)
        }
    }

    pub(crate) unsafe extern "C" fn sendto(
        file: c_int,
        from: *const u8,
        len: size_t,
        flags: c_int,
        who: *const sockaddr,
        size: socklen_t,
    ) -> ssize_t {
        let mut name = MaybeUninit::<sockaddr_storage>::uninit();
        let mut who = who;
        // SAFETY: passed on, or the caller's memory, by pieces; a name that is too long is the kernel's to
        // refuse.
        unsafe {
            if is_paged(who.cast(), size as usize) && size as usize <= NAME_MAX {
                name.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(who.cast(), size as usize);
                who = name.as_ptr().cast();
            }
            if !is_paged(from, len) {
                return plain::sendto(file, from, len, flags, who, size);
            }
            give_out(
                from,
                len,
                if len <= PIECE || is_stream(file) { PIECE } else { len },
                |buffer, piece, _| plain::sendto(file, buffer, piece, flags, who, size),
            )
        }
    }

    /// A copy of control data, if there is any in a big block; `Err` if there is no memory for it.
    unsafe fn control_of(message: &msghdr) -> Result<Option<Bounce>, ()> {
        if !is_paged(message.msg_control.cast(), message.msg_controllen) {
            return Ok(None);
        }
        let control = Bounce::new(message.msg_controllen).ok_or(())?;
        // SAFETY: the caller's memory, and the buffer is as long.
        unsafe {
            control.start().copy_from_nonoverlapping(message.msg_control.cast(), message.msg_controllen);
        };
        Ok(Some(control))
    }

    pub(crate) unsafe extern "C" fn recvmsg(file: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
        let mut name = MaybeUninit::<sockaddr_storage>::uninit();
        // SAFETY: passed on, or the caller's memory through buffers.
        unsafe {
            if !is_any_paged(message) {
                return plain::recvmsg(file, message, flags);
            }
            let asked = *message;
            let mut through = asked;
            if is_paged(asked.msg_name.cast(), asked.msg_namelen as usize) {
                through.msg_name = name.as_mut_ptr().cast();
                through.msg_namelen = asked.msg_namelen.min(NAME_MAX as socklen_t);
            }
            let Ok(control) = control_of(&asked) else { return no_memory() };
            if let Some(control) = &control {
                through.msg_control = control.start().cast();
            }
            let got = match paged_parts(asked.msg_iov, asked.msg_iovlen) {
                None => plain::recvmsg(file, &raw mut through, flags),
                Some((parts, total)) => scatter(parts, total, |buffer, len| {
                    let mut one = iovec { iov_base: buffer.cast(), iov_len: len };
                    (through.msg_iov, through.msg_iovlen) = (&raw mut one, 1);
                    plain::recvmsg(file, &raw mut through, flags)
                }),
            };
            if got < 0 {
                return got;
            }
            if through.msg_name != asked.msg_name {
                let len = (through.msg_namelen.min(asked.msg_namelen) as usize).min(NAME_MAX);
                asked.msg_name.cast::<u8>().copy_from_nonoverlapping(name.as_ptr().cast(), len);
            }
            if let Some(control) = &control {
                let len = through.msg_controllen.min(asked.msg_controllen);
                asked.msg_control.cast::<u8>().copy_from_nonoverlapping(control.start(), len);
            }
            (*message).msg_namelen = through.msg_namelen;
            (*message).msg_controllen = through.msg_controllen;
            (*message).msg_flags = through.msg_flags;
            got
        }
    }

    pub(crate) unsafe extern "C" fn sendmsg(file: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
        let mut name = MaybeUninit::<sockaddr_storage>::uninit();
        // SAFETY: passed on, or the caller's memory through buffers; a name that is too long is the kernel's
        // to refuse.
        unsafe {
            if !is_any_paged(message) {
                return plain::sendmsg(file, message, flags);
            }
            let mut through = *message;
            let len = through.msg_namelen as usize;
            if is_paged(through.msg_name.cast(), len) && len <= NAME_MAX {
                name.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(through.msg_name.cast(), len);
                through.msg_name = name.as_mut_ptr().cast();
            }
            let Ok(control) = control_of(&through) else { return no_memory() };
            if let Some(control) = &control {
                through.msg_control = control.start().cast();
            }
            match paged_parts(through.msg_iov, through.msg_iovlen) {
                None => plain::sendmsg(file, &raw const through, flags),
                Some((parts, total)) => gather(parts, total, |buffer, len| {
                    let mut one = iovec { iov_base: buffer.cast(), iov_len: len };
                    (through.msg_iov, through.msg_iovlen) = (&raw mut one, 1);
                    plain::sendmsg(file, &raw const through, flags)
                }),
            }
        }
    }

    /// Whether any of `count` messages must not be handed to the kernel. More than it takes at a time are its
    /// to cut.
    unsafe fn are_any_paged(messages: *mut mmsghdr, count: c_uint) -> bool {
        let all = 0..count.min(libc::UIO_MAXIOV as c_uint) as usize;
        // SAFETY: the caller's headers.
        all.into_iter().any(|index| unsafe { is_any_paged(&raw const (*messages.add(index)).msg_hdr) })
    }

    /// Makes `one` of each of `count` messages until one fails. How many there were, or the first's failure.
    unsafe fn one_by_one(
        messages: *mut mmsghdr,
        count: c_uint,
        mut one: impl FnMut(*mut msghdr, c_int) -> Option<ssize_t>,
    ) -> c_int {
        for index in 0..count.min(libc::UIO_MAXIOV as c_uint) as c_int {
            // SAFETY: the caller's headers.
            let message = unsafe { &raw mut *messages.add(index as usize) };
            // SAFETY: as above.
            let Some(done) = one(unsafe { &raw mut (*message).msg_hdr }, index) else { return index };
            if done < 0 {
                return if index > 0 { index } else { -1 };
            }
            // SAFETY: as above.
            unsafe { (*message).msg_len = done as c_uint };
        }
        count.min(libc::UIO_MAXIOV as c_uint) as c_int
    }

    pub(crate) unsafe extern "C" fn sendmmsg(
        file: c_int,
        messages: *mut mmsghdr,
        count: c_uint,
        flags: c_int,
    ) -> c_int {
        // SAFETY: passed on, or one by one.
        unsafe {
            if !are_any_paged(messages, count) {
                return plain::sendmmsg(file, messages, count, flags);
            }
            one_by_one(messages, count, |message, _| Some(sendmsg(file, message, flags)))
        }
    }

    pub(crate) unsafe extern "C" fn recvmmsg(
        file: c_int,
        messages: *mut mmsghdr,
        count: c_uint,
        flags: c_int,
        limit: *mut timespec,
    ) -> c_int {
        // SAFETY: passed on, or one by one.
        unsafe {
            if !are_any_paged(messages, count) && !is_paged(limit.cast(), 1) {
                return plain::recvmmsg(file, messages, count, flags, limit);
            }
            // The limit is looked at after each message, as the kernel does.
            let until = limit.as_ref().map(|limit| now_ns() + nanoseconds(limit));
            let got = one_by_one(messages, count, |message, index| {
                if index > 0 && until.is_some_and(|until| now_ns() >= until) {
                    return None;
                }
                let then =
                    if index > 0 && flags & libc::MSG_WAITFORONE != 0 { libc::MSG_DONTWAIT } else { 0 };
                Some(recvmsg(file, message, flags & !libc::MSG_WAITFORONE | then))
            });
            if let Some(until) = until {
                let rest = (until - now_ns()).max(0);
                *limit = timespec { tv_sec: rest / SECOND_NS, tv_nsec: rest % SECOND_NS };
            }
            got
        }
    }
}

const SECOND_NS: i64 = 1_000_000_000;

fn nanoseconds(time: &timespec) -> i64 {
    time.tv_sec.saturating_mul(SECOND_NS).saturating_add(time.tv_nsec).clamp(0, i64::MAX / 2)
}

fn now_ns() -> i64 {
    let mut now = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the place is here.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    nanoseconds(&now)
}
