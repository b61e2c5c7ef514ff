//! Writes lines on standard error, and warnings, which a program may redirect (`GC_set_warn_proc`).
//!
//! Lines are written without allocating, because most are written when memory is short.

use crate::variables;
use core::arch::naked_asm;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicI32, AtomicPtr, Ordering::Relaxed};

/// `GC_warn_proc`: a message in the manner of `printf` with one place for a word, and the word.
pub type WarnProc = unsafe extern "C" fn(message: *mut c_char, argument: usize);

/// Null: warnings go to standard error.
static WARN: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
/// The file descriptor of the log.
static LOG: AtomicI32 = AtomicI32::new(libc::STDERR_FILENO);

/// Writes the parts and a line end, in one call.
pub(crate) fn line(parts: &[&[u8]]) {
    let mut text = [0; 256];
    let mut length = 0;
    for part in parts.iter().copied().chain([&b"\n"[..]]) {
        let room = text.len() - length;
        let taken = part.len().min(room);
        text[length..length + taken].copy_from_slice(&part[..taken]);
        length += taken;
    }
    // SAFETY: `text` has `length` bytes. Bytes that cannot be written are lost.
    unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), length) };
}

/// The bytes of a C string; none for null.
pub(crate) fn bytes<'a>(text: *const c_char) -> &'a [u8] {
    if text.is_null() {
        return b"";
    }
    // SAFETY: the callers pass C strings of the program, which exist during the call.
    unsafe { CStr::from_ptr(text) }.to_bytes()
}

/// Warns the program's user; `message` ends with a zero.
pub(crate) fn warn(message: &'static CStr, argument: usize) {
    match warn_proc() {
        // SAFETY: a `WarnProc` accepts a message and a word.
        Some(procedure) => unsafe { procedure(message.as_ptr().cast_mut(), argument) },
        None => to_standard_error(message.as_ptr().cast_mut(), argument),
    }
}

fn warn_proc() -> Option<WarnProc> {
    // SAFETY: `GC_set_warn_proc` alone stores here, null or a `WarnProc`.
    unsafe { variables::function::<WarnProc>(&WARN) }
}

/// Sets the procedure that receives warnings.
#[unsafe(no_mangle)]
pub extern "C" fn GC_set_warn_proc(procedure: Option<WarnProc>) {
    WARN.store(procedure.map_or(null_mut(), |procedure| procedure as *mut c_void), Relaxed);
}

/// The procedure that receives warnings.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_warn_proc() -> WarnProc {
    warn_proc().unwrap_or(to_standard_error)
}

/// A procedure for `GC_set_warn_proc` that ignores warnings.
#[unsafe(no_mangle)]
pub extern "C" fn GC_ignore_warn_proc(_message: *mut c_char, _argument: usize) {}

extern "C" fn to_standard_error(message: *mut c_char, argument: usize) {
    // SAFETY: the message is a format of printf with at most one place, for a word.
    unsafe { dprintf(libc::STDERR_FILENO, message, argument) };
}

/// Sets the file descriptor of the log.
#[unsafe(no_mangle)]
pub extern "C" fn GC_set_log_fd(descriptor: c_int) {
    LOG.store(descriptor, Relaxed);
}

unsafe extern "C" {
    fn dprintf(descriptor: c_int, format: *const c_char, ...) -> c_int;
    fn vdprintf(descriptor: c_int, format: *const c_char, arguments: *mut c_void) -> c_int;
}

/// The common implementation of the three printing functions; `arguments` is a `va_list`.
unsafe extern "C" fn print_to_output(format: *const c_char, arguments: *mut c_void) {
    // SAFETY: the asm of `variadic` passes a valid `va_list` for `format`.
    unsafe { vdprintf(libc::STDOUT_FILENO, format, arguments) };
}

/// Like [`print_to_output`].
unsafe extern "C" fn print_to_standard_error(format: *const c_char, arguments: *mut c_void) {
    // SAFETY: the asm of `variadic` passes a valid `va_list` for `format`.
    unsafe { vdprintf(libc::STDERR_FILENO, format, arguments) };
}

/// Like [`print_to_output`].
unsafe extern "C" fn print_to_log(format: *const c_char, arguments: *mut c_void) {
    // SAFETY: the asm of `variadic` passes a valid `va_list` for `format`.
    unsafe { vdprintf(LOG.load(Relaxed), format, arguments) };
}

// Rust cannot define functions with variable arguments. These functions therefore build a `va_list` of the
// System V ABI (used part of the saved registers, address of the rest, address of saved registers) and pass
// it.
macro_rules! variadic {
    ($($(#[$doc:meta])* $name:ident => $to:path;)*) => { $(
        $(#[$doc])*
        ///
        /// # Safety
        /// The conditions of `printf` apply.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(format: *const c_char) {
            naked_asm!(
                "sub rsp, 216",
                "mov [rsp + 40], rsi",
                "mov [rsp + 48], rdx",
                "mov [rsp + 56], rcx",
                "mov [rsp + 64], r8",
                "mov [rsp + 72], r9",
                "test al, al",
                "je 2f",
                "movaps [rsp + 80], xmm0",
                "movaps [rsp + 96], xmm1",
                "movaps [rsp + 112], xmm2",
                "movaps [rsp + 128], xmm3",
                "movaps [rsp + 144], xmm4",
                "movaps [rsp + 160], xmm5",
                "movaps [rsp + 176], xmm6",
                "movaps [rsp + 192], xmm7",
                "2:",
                "mov dword ptr [rsp], 8",
                "mov dword ptr [rsp + 4], 48",
                "lea rax, [rsp + 224]",
                "mov [rsp + 8], rax",
                "lea rax, [rsp + 32]",
                "mov [rsp + 16], rax",
                "mov rsi, rsp",
                "call {to}",
                "add rsp, 216",
                "ret",
                to = sym $to,
            )
        }
    )* };
}

variadic! {
    GC_printf => print_to_output;
    /// `printf` to standard error.
    GC_err_printf => print_to_standard_error;
    /// `printf` to the descriptor of [`GC_set_log_fd`].
    GC_log_printf => print_to_log;
}

/// The decimal digits of `number`.
pub(crate) fn decimal(mut number: u64, digits: &mut [u8; 20]) -> &[u8] {
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[first..];
        }
    }
}

/// The hexadecimal digits of `number`.
pub(crate) fn hex(mut number: usize, digits: &mut [u8; 16]) -> &[u8] {
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b"0123456789abcdef"[number % 16];
        number /= 16;
        if number == 0 {
            return &digits[first..];
        }
    }
}
