//! The exported C++ `operator new` and `operator delete`: every form, under its mangled name.
//!
//! The throwing forms are written entirely in assembly: an exception passes through them, which Rust frames
//! do not allow. A personality routine then lifts the thread's guard, which marks an operation in progress
//! (`thread`); otherwise no further operation of that thread would be recorded.
//!
//! ```text
//! new:  count_new ─ fast path ─▶ jump to the next operator new
//!           └─ begin_new ─ next operator new ─ end_new ─ ret
//!                                └─ throws ─▶ personality: guard lifted ─▶ the program's handler
//! ```

use crate::asked::Asked;
use crate::entry::{entries, give_back, plain, plain_malloc, quickly, recorded};
use crate::next::{Next, next};
use crate::thread;
use crate::walk::{self, Caller, Token};
use core::arch::naked_asm;
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use vellum_wire::operation::Kind;

/// `_UA_CLEANUP_PHASE` of the unwinding interface: frames are being left.
const CLEANUP_PHASE: c_int = 2;
/// `_URC_CONTINUE_UNWIND`: this frame does not handle the exception.
const CONTINUE: c_int = 8;

/// Bytes of [`Token`] on the stack of a throwing `new`.
const TOKEN_BYTES: usize = 24;
const _: () = assert!(size_of::<Token>() == TOKEN_BYTES);

extern "C" fn personality(_: c_int, actions: c_int, _: u64, _: *mut c_void, _: *mut c_void) -> c_int {
    if actions & CLEANUP_PHASE != 0 {
        thread::this().open();
    }
    CONTINUE
}

static NEW: Next = Next::of(c"_Znwm");
static NEW_ARRAY: Next = Next::of(c"_Znam");
static NEW_ALIGNED: Next = Next::of(c"_ZnwmSt11align_val_t");
static NEW_ARRAY_ALIGNED: Next = Next::of(c"_ZnamSt11align_val_t");

/// Stands in for `new` if no C++ library is reachable: a C program may load one with local scope only.
extern "C" fn new_without_cxx(bytes: usize, _align: usize) -> *mut c_void {
    let block = plain_malloc(bytes);
    if block.is_null() {
        crate::process::say(b"vellum cost: operator new: out of memory, and no C++ runtime to throw\n");
        // SAFETY: abort has no preconditions.
        unsafe { libc::abort() }
    }
    block
}

/// Begins recording a `new` of `bytes` bytes; returns the function to call.
///
/// # Safety
/// `token` can be written.
#[inline(always)]
unsafe fn begin_new(next: &'static Next, bytes: usize, caller: Caller, token: *mut Token) -> *const c_void {
    next.look();
    let found = next.get();
    let found = if found.is_null() { new_without_cxx as *const c_void } else { found };
    // SAFETY: `token` can be written, by `# Safety`.
    unsafe { token.write(walk::begin(Asked::sized(Kind::New, bytes), caller)) };
    found
}

extern "C" fn end_new(token: &Token) {
    walk::end(*token);
}

macro_rules! throwing {
    ($($(#[$doc:meta])* $name:ident = $next:ident;)*) => { $(
        $(#[$doc])*
        ///
        /// # Safety
        /// The C++ standard's conditions for this operator; there are no others.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        #[allow(non_snake_case)]
        pub unsafe extern "C" fn $name() {
            unsafe extern "C" fn begin(bytes: usize, _: usize, frame: *const u64, bp: u64, token: *mut Token) -> *const c_void {
                // SAFETY: the token is on the stack frame of the assembly function below, which is active.
                unsafe { begin_new(&$next, bytes, Caller { frame, bp }, token) }
            }
            /// The function to jump to if counting is all there is to do; else null.
            extern "C" fn quick(bytes: usize, _: usize, frame: *const u64, bp: u64) -> *const c_void {
                let found = $next.get_quiet();
                let (asked, caller) = (Asked::sized(Kind::New, bytes), Caller { frame, bp });
                let counted = !found.is_null()
                    && (walk::counted(asked, caller) || walk::counted_by_stack(asked, caller));
                if counted { found } else { core::ptr::null() }
            }
            naked_asm!(
                ".cfi_startproc",
                // Encoded relative to its own position, in four bytes.
                ".cfi_personality 0x1b, {personality}",
                "sub rsp, 56",
                ".cfi_adjust_cfa_offset 56",
                "mov [rsp + 24], rdi",
                "mov [rsp + 32], rsi",
                "lea rdx, [rsp + 56]",
                "mov rcx, rbp",
                "call {quick}",
                "mov rdi, [rsp + 24]",
                "mov rsi, [rsp + 32]",
                "test rax, rax",
                "jz 2f",
                ".cfi_remember_state",
                "add rsp, 56",
                ".cfi_adjust_cfa_offset -56",
                "jmp rax",
                "2:",
                ".cfi_restore_state",
                "lea rdx, [rsp + 56]",
                "mov rcx, rbp",
                "mov r8, rsp",
                "call {begin}",
                "mov rdi, [rsp + 24]",
                "mov rsi, [rsp + 32]",
                "call rax",
                "mov [rsp + 24], rax",
                "mov rdi, rsp",
                "call {end}",
                "mov rax, [rsp + 24]",
                "add rsp, 56",
                ".cfi_adjust_cfa_offset -56",
                "ret",
                ".cfi_endproc",
                personality = sym personality,
                quick = sym quick,
                begin = sym begin,
                end = sym end_new,
            )
        }
    )* };
}

throwing! {
    /// `operator new(size_t)`
    _Znwm = NEW;
    /// `operator new[](size_t)`
    _Znam = NEW_ARRAY;
    /// `operator new(size_t, align_val_t)`
    _ZnwmSt11align_val_t = NEW_ALIGNED;
    /// `operator new[](size_t, align_val_t)`
    _ZnamSt11align_val_t = NEW_ARRAY_ALIGNED;
}

plain! {
    /// `operator new(size_t, nothrow)`
    _ZnwmRKSt9nothrow_t(bytes: usize, tag: *const c_void) -> *mut c_void = Asked::sized(Kind::New, bytes), null_mut();
    /// `operator new[](size_t, nothrow)`
    _ZnamRKSt9nothrow_t(bytes: usize, tag: *const c_void) -> *mut c_void = Asked::sized(Kind::New, bytes), null_mut();
    /// `operator new(size_t, align_val_t, nothrow)`
    _ZnwmSt11align_val_tRKSt9nothrow_t(bytes: usize, align: usize, tag: *const c_void) -> *mut c_void = Asked::sized(Kind::New, bytes), null_mut();
    /// `operator new[](size_t, align_val_t, nothrow)`
    _ZnamSt11align_val_tRKSt9nothrow_t(bytes: usize, align: usize, tag: *const c_void) -> *mut c_void = Asked::sized(Kind::New, bytes), null_mut();
}

macro_rules! deletes {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) = $text:literal;)*) => {
        entries! { $(
            $(#[$doc])*
            fn $name(block: *mut c_void $(, $argument: $type)*; caller) = {
                static NEXT: Next = Next::of($text);
                #[inline(never)]
                extern "C" fn slowly(block: *mut c_void, $($argument: $type,)* frame: *const u64, bp: u64) {
                    let caller = Caller { frame, bp };
                    if block.is_null() || NEXT.get().is_null() {
                        return give_back(block, Kind::Delete, frame, bp);
                    }
                    let asked = Asked::of(Kind::Delete);
                    quickly!(walk::counted_by_stack, NEXT, Delete, (block $(, $argument)*), asked, caller);
                    NEXT.look();
                    recorded(asked, caller, || next!(NEXT, Delete, (block $(, $argument)*), ()));
                }
                type Delete = unsafe extern "C" fn(*mut c_void $(, $type)*);
                if !block.is_null() {
                    let asked = Asked::of(Kind::Delete);
                    quickly!(walk::counted, NEXT, Delete, (block $(, $argument)*), asked, caller);
                }
                slowly(block, $($argument,)* caller.frame, caller.bp)
            };
        )* }
    };
}

deletes! {
    /// `operator delete(void*)`
    _ZdlPv() = c"_ZdlPv";
    /// `operator delete[](void*)`
    _ZdaPv() = c"_ZdaPv";
    /// `operator delete(void*, size_t)`
    _ZdlPvm(bytes: usize) = c"_ZdlPvm";
    /// `operator delete[](void*, size_t)`
    _ZdaPvm(bytes: usize) = c"_ZdaPvm";
    /// `operator delete(void*, nothrow)`
    _ZdlPvRKSt9nothrow_t(tag: *const c_void) = c"_ZdlPvRKSt9nothrow_t";
    /// `operator delete[](void*, nothrow)`
    _ZdaPvRKSt9nothrow_t(tag: *const c_void) = c"_ZdaPvRKSt9nothrow_t";
    /// `operator delete(void*, align_val_t)`
    _ZdlPvSt11align_val_t(align: usize) = c"_ZdlPvSt11align_val_t";
    /// `operator delete[](void*, align_val_t)`
    _ZdaPvSt11align_val_t(align: usize) = c"_ZdaPvSt11align_val_t";
    /// `operator delete(void*, size_t, align_val_t)`
    _ZdlPvmSt11align_val_t(bytes: usize, align: usize) = c"_ZdlPvmSt11align_val_t";
    /// `operator delete[](void*, size_t, align_val_t)`
    _ZdaPvmSt11align_val_t(bytes: usize, align: usize) = c"_ZdaPvmSt11align_val_t";
    /// `operator delete(void*, align_val_t, nothrow)`
    _ZdlPvSt11align_val_tRKSt9nothrow_t(align: usize, tag: *const c_void) = c"_ZdlPvSt11align_val_tRKSt9nothrow_t";
    /// `operator delete[](void*, align_val_t, nothrow)`
    _ZdaPvSt11align_val_tRKSt9nothrow_t(align: usize, tag: *const c_void) = c"_ZdaPvSt11align_val_tRKSt9nothrow_t";
}
