//! stdio's transfers that hand large requests straight to the kernel, and directories that are read into big
//! blocks, seen on their way when big blocks are guarded.
//!
//! `setvbuf` with a paged buffer lets stdio use one of its own, as C allows. `printf` and its kin are not
//! here: they copy their texts, or (glibc before 2.37) write those longer than a buffer right after measuring
//! them, whose pages are then there.

use crate::bounce::PIECE;
use crate::jump::functions;
use crate::pieces::{give_out, is_paged, items, take_in};
use crate::shadow;
use core::ffi::{c_char, c_int};
use libc::{FILE, size_t, ssize_t};
use vellum_malloc::set_errno;

functions! {
    fread(to: *mut u8, size: size_t, count: size_t, stream: *mut FILE) -> size_t = c"fread";
    fread_unlocked(to: *mut u8, size: size_t, count: size_t, stream: *mut FILE) -> size_t = c"fread_unlocked";
    __fread_chk(to: *mut u8, room: size_t, size: size_t, count: size_t, stream: *mut FILE) -> size_t = c"__fread_chk";
    __fread_unlocked_chk(to: *mut u8, room: size_t, size: size_t, count: size_t, stream: *mut FILE) -> size_t = c"__fread_unlocked_chk";
    fwrite(from: *const u8, size: size_t, count: size_t, stream: *mut FILE) -> size_t = c"fwrite";
    fwrite_unlocked(from: *const u8, size: size_t, count: size_t, stream: *mut FILE) -> size_t = c"fwrite_unlocked";
    setvbuf(stream: *mut FILE, buffer: *mut u8, mode: c_int, size: size_t) -> c_int = c"setvbuf";
    fputs(text: *const c_char, stream: *mut FILE) -> c_int = c"fputs";
    fputs_unlocked(text: *const c_char, stream: *mut FILE) -> c_int = c"fputs_unlocked";
    readdir(directory: *mut libc::DIR) -> *mut libc::dirent = c"readdir";
    readdir64(directory: *mut libc::DIR) -> *mut libc::dirent64 = c"readdir64";
}

/// What the functions do when big blocks must not be handed to the kernel. Each has the conditions of the C
/// library's function.
mod guarded {
    #![allow(clippy::missing_safety_doc, reason = "said of all of them above")]
    use super::*;

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

    macro_rules! texts_out {
        ($($name:ident by $whole:ident;)*) => { $(
            pub(super) unsafe extern "C" fn $name(text: *const c_char, stream: *mut FILE) -> c_int {
                // SAFETY: the caller's text, by pieces, or passed on.
                unsafe {
                    if !is_paged(text.cast(), 1) {
                        return plain::$name(text, stream);
                    }
                    let len = libc::strlen(text);
                    if $whole(text.cast(), 1, len, stream) == len { 1 } else { libc::EOF }
                }
            }
        )* };
    }
    texts_out! { fputs by fwrite; fputs_unlocked by fwrite_unlocked; }

    macro_rules! directories {
        ($($name:ident as $entry:ty;)*) => { $(
            pub(super) unsafe extern "C" fn $name(directory: *mut libc::DIR) -> *mut $entry {
                // SAFETY: passed on; a directory that is opened has its buffer behind it, in the same block,
                // and nothing is read twice, as none was read.
                unsafe {
                    let mut tries = 0;
                    loop {
                        let entry = plain::$name(directory);
                        let is_fault = entry.is_null() && is_paged(directory.cast(), 1) && *libc::__errno_location() == libc::EFAULT;
                        tries += 1;
                        if !is_fault || tries == shadow::TRIES {
                            return entry;
                        }
                        // Only errno distinguishes the end from an error.
                        set_errno(0);
                        shadow::touch(directory.addr(), DIRECTORY_MAX);
                    }
                }
            }
        )* };
    }
    directories! { readdir as libc::dirent; readdir64 as libc::dirent64; }
}

/// The longest buffer a directory has, and what stands before it.
const DIRECTORY_MAX: usize = (1 << 20) + (4 << 10);
