//! The exported C functions, and the way each finds its caller.
//!
//! A Rust function cannot read its return address. Each exported function is therefore a few instructions of
//! assembly that add two arguments. One is the stack pointer, at which the return address lies; the other is
//! the frame pointer. The assembly then jumps to a Rust function of the same name, which returns to the
//! caller directly:
//!
//! ```text
//! malloc(bytes)  ──▶  mov rsi, rsp · mov rdx, rbp · jmp ──▶  inner(bytes, frame, bp)
//! ```
//!
//! Functions of five and six arguments have no registers left: the added arguments are pushed, and passed by
//! address.
//!
//! A function behaves as the next definition of its name, in a later library. Functions that only Vellum
//! defines (`vel_*`) report that memory is exhausted if there is no next definition.

use crate::asked::{Asked, possible};
use crate::next::{Next, next};
use crate::walk::{self, Caller};
use crate::{early, moved};
use core::arch::naked_asm;
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use vellum_wire::operation::{Kind, Operation};

/// By this symbol Vellum's runtime recognizes that the `malloc` before its own one forwards every call.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static vellum_cost_recorder: u8 = 1;

/// Defines an exported name of one to four arguments and the Rust function behind it.
macro_rules! entries {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $type:ty),* ; $caller:ident) $(-> $result:ty)? = $body:expr;)*) => { $(
        $(#[$doc])*
        ///
        /// # Safety
        /// The conditions of the function of this name in the C library.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        #[allow(non_snake_case)]
        pub unsafe extern "C" fn $name() {
            #[allow(non_snake_case)]
            extern "C" fn inner($($argument: $type,)* frame: *const u64, bp: u64) $(-> $result)? {
                let $caller = Caller { frame, bp };
                $body
            }
            $crate::entry::with_caller!(inner, $($argument)*)
        }
    )* };
}
pub(crate) use entries;

/// Jumps to `$inner` with the caller's frame and frame pointer behind its arguments.
macro_rules! with_caller {
    ($inner:ident, $a:ident) => {
        core::arch::naked_asm!("mov rsi, rsp", "mov rdx, rbp", "jmp {inner}", inner = sym $inner)
    };
    ($inner:ident, $a:ident $b:ident) => {
        core::arch::naked_asm!("mov rdx, rsp", "mov rcx, rbp", "jmp {inner}", inner = sym $inner)
    };
    ($inner:ident, $a:ident $b:ident $c:ident) => {
        core::arch::naked_asm!("mov rcx, rsp", "mov r8, rbp", "jmp {inner}", inner = sym $inner)
    };
    ($inner:ident, $a:ident $b:ident $c:ident $d:ident) => {
        core::arch::naked_asm!("mov r8, rsp", "mov r9, rbp", "jmp {inner}", inner = sym $inner)
    };
}
pub(crate) use with_caller;

type Allocate = unsafe extern "C" fn(usize) -> *mut c_void;
type AllocateTwo = unsafe extern "C" fn(usize, usize) -> *mut c_void;
type Free = unsafe extern "C" fn(*mut c_void);
type Resize = unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
type ResizeArray = unsafe extern "C" fn(*mut c_void, usize, usize) -> *mut c_void;
type Usable = unsafe extern "C" fn(*mut c_void) -> usize;
/// `mmap` and `mremap`. Registers pass integers of every length alike.
type Map = unsafe extern "C" fn(usize, usize, usize, usize, usize, usize) -> *mut c_void;

static MALLOC: Next = Next::of(c"malloc");
static CALLOC: Next = Next::of(c"calloc");
static REALLOC: Next = Next::of(c"realloc");
static REALLOCARRAY: Next = Next::of(c"reallocarray");
static FREE: Next = Next::of(c"free");
static USABLE: Next = Next::of(c"malloc_usable_size");
static MMAP: Next = Next::of(c"mmap");
static MREMAP: Next = Next::of(c"mremap");
static DLCLOSE: Next = Next::of(c"dlclose");

/// Runs `what`, recorded as `asked`.
#[inline(always)]
pub(crate) fn recorded<T>(asked: Asked, caller: Caller, what: impl FnOnce() -> T) -> T {
    let token = walk::begin(asked, caller);
    let result = what();
    walk::end(token);
    result
}

/// The fast paths of the most frequent operations: `$counted` counts, then the next definition is called.
macro_rules! quickly {
    ($counted:path, $next:expr, $type:ty, ($($argument:expr),*), $asked:expr, $caller:expr) => {
        let found = $next.get_quiet();
        if !found.is_null() && $counted($asked, $caller) {
            // SAFETY: the symbol of that name in the C library or the allocator has this signature.
            let function = unsafe { core::mem::transmute::<*const c_void, $type>(found) };
            // SAFETY: the program makes this call; its arguments are passed on unchanged.
            return unsafe { function($($argument),*) };
        }
    };
}
pub(crate) use quickly;

#[inline(never)]
extern "C" fn allocate_further(bytes: usize, frame: *const u64, bp: u64) -> *mut c_void {
    let asked = Asked::sized(Kind::Malloc, bytes);
    quickly!(walk::counted_further, MALLOC, Allocate, (bytes), asked, Caller { frame, bp });
    allocate(bytes, frame, bp)
}

#[inline(never)]
extern "C" fn allocate(bytes: usize, frame: *const u64, bp: u64) -> *mut c_void {
    let (asked, caller) = (Asked::sized(Kind::Malloc, bytes), Caller { frame, bp });
    quickly!(walk::counted_by_stack, MALLOC, Allocate, (bytes), asked, caller);
    MALLOC.look();
    recorded(asked, caller, || next!(MALLOC, Allocate, (bytes), early::alloc(bytes)))
}

#[inline(never)]
extern "C" fn allocate_cleared(count: usize, bytes: usize, frame: *const u64, bp: u64) -> *mut c_void {
    let whole = count.saturating_mul(bytes);
    let (asked, caller) = (Asked::sized(Kind::Calloc, whole), Caller { frame, bp });
    quickly!(walk::counted_by_stack, CALLOC, AllocateTwo, (count, bytes), asked, caller);
    CALLOC.look();
    recorded(asked, caller, || next!(CALLOC, AllocateTwo, (count, bytes), early::alloc(whole)))
}

/// Frees `block`, recorded as `kind`.
#[inline(never)]
pub(crate) extern "C" fn give_back(block: *mut c_void, kind: Kind, frame: *const u64, bp: u64) {
    if early::owns(block) {
        return;
    }
    let kind = if block.is_null() { Kind::FreeNull } else { kind };
    let (asked, caller) = (Asked::of(kind), Caller { frame, bp });
    quickly!(walk::counted_by_stack, FREE, Free, (block), asked, caller);
    FREE.look();
    recorded(asked, caller, || next!(FREE, Free, (block), ()));
}

#[inline(always)]
fn free_quickly(block: *mut c_void, caller: Caller) {
    if !block.is_null() && !early::owns(block) {
        quickly!(walk::counted, FREE, Free, (block), Asked::of(Kind::Free), caller);
    }
    free_further(block, caller.frame, caller.bp);
}

#[inline(never)]
extern "C" fn free_further(block: *mut c_void, frame: *const u64, bp: u64) {
    if !block.is_null() && !early::owns(block) {
        quickly!(walk::counted_further, FREE, Free, (block), Asked::of(Kind::Free), Caller { frame, bp });
    }
    give_back(block, Kind::Free, frame, bp);
}

/// The next `malloc`, unrecorded.
pub(crate) fn plain_malloc(bytes: usize) -> *mut c_void {
    next!(MALLOC, Allocate, (bytes), early::alloc(bytes))
}

/// Resizes `block` to `bytes` by `resize`; the result determines which operation it was.
#[inline(always)]
fn resized(
    block: *mut c_void,
    bytes: usize,
    caller: Caller,
    resize: impl FnOnce() -> *mut c_void,
) -> *mut c_void {
    if block.is_null() {
        return recorded(Asked::sized(Kind::Malloc, bytes), caller, resize);
    }
    if early::owns(block) {
        return out_of_early(block, bytes);
    }
    if bytes == 0 {
        return recorded(Asked::of(Kind::Free), caller, resize);
    }
    let fits = bytes <= next!(USABLE, Usable, (block), 0);
    let likely = fits.then_some(Operation::of(Kind::ReallocKept));
    let before = moved::before(bytes);
    let pending = walk::begin_pending(likely, caller);
    let result = resize();
    let ended = walk::stop(&pending);
    let operation = if result == block || result.is_null() {
        if fits { None } else { Some(Operation::of(Kind::ReallocGrown)) }
    } else {
        Some(moved::how(bytes, before))
    };
    walk::end_pending(pending, ended, operation, possible(bytes), caller);
    result
}

/// Moves a block of [`early`]'s space, which cannot grow there, to the allocator.
#[cold]
fn out_of_early(block: *mut c_void, bytes: usize) -> *mut c_void {
    let fresh = plain_malloc(bytes);
    if !fresh.is_null() {
        let kept = early::bytes_from(block).min(bytes);
        // SAFETY: `kept` bytes can be read (zeros beyond the block); the new block is as large.
        unsafe { fresh.cast::<u8>().copy_from_nonoverlapping(block.cast(), kept) };
    }
    fresh
}

entries! {
    /// `malloc`.
    fn malloc(bytes: usize; caller) -> *mut c_void = {
        quickly!(walk::counted, MALLOC, Allocate, (bytes), Asked::sized(Kind::Malloc, bytes), caller);
        allocate_further(bytes, caller.frame, caller.bp)
    };

    /// `calloc`.
    fn calloc(count: usize, bytes: usize; caller) -> *mut c_void = {
        let asked = Asked::sized(Kind::Calloc, count.saturating_mul(bytes));
        quickly!(walk::counted, CALLOC, AllocateTwo, (count, bytes), asked, caller);
        allocate_cleared(count, bytes, caller.frame, caller.bp)
    };

    /// `free`.
    fn free(block: *mut c_void; caller) = free_quickly(block, caller);

    /// `cfree`.
    fn cfree(block: *mut c_void; caller) = free_quickly(block, caller);

    /// `free_sized`.
    fn free_sized(block: *mut c_void, _bytes: usize; caller) = free_quickly(block, caller);

    /// `free_aligned_sized`.
    fn free_aligned_sized(block: *mut c_void, _align: usize, _bytes: usize; caller) =
        free_quickly(block, caller);

    /// `realloc`.
    fn realloc(block: *mut c_void, bytes: usize; caller) -> *mut c_void =
        resized(block, bytes, caller, || next!(REALLOC, Resize, (block, bytes), early::alloc(bytes)));

    /// `reallocarray`.
    fn reallocarray(block: *mut c_void, count: usize, bytes: usize; caller) -> *mut c_void =
        resized(block, count.saturating_mul(bytes), caller, || {
            next!(REALLOCARRAY, ResizeArray, (block, count, bytes), null_mut())
        });

    /// `dlclose`: no memory operation, but the unmapped addresses may be reused afterwards.
    fn dlclose(library: *mut c_void; _caller) -> c_int = {
        let result = next!(DLCLOSE, unsafe extern "C" fn(*mut c_void) -> c_int, (library), -1);
        walk::note_unmapped();
        result
    };
}

/// Defines exported names whose operation is always the same. Each has the expression for the requested
/// bytes, and the result of a call if no other library defines the name (`$otherwise`).
macro_rules! plain {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) -> $result:ty = $asked:expr, $otherwise:expr;)*) => { $(
        $crate::entry::entries! {
            #[doc = concat!("`", stringify!($name), "`.")]
            $(#[$doc])*
            fn $name($($argument: $type),*; caller) -> $result = {
                static NEXT: Next = Next::of(
                    match core::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                        Ok(name) => name,
                        Err(_) => unreachable!(),
                    },
                );
                recorded($asked, caller, || {
                    next!(NEXT, unsafe extern "C" fn($($type),*) -> $result, ($($argument),*), $otherwise)
                })
            };
        }
    )* };
}
pub(crate) use plain;

plain! {
    memalign(align: usize, bytes: usize) -> *mut c_void = Asked::sized(Kind::Aligned, bytes), null_mut();
    aligned_alloc(align: usize, bytes: usize) -> *mut c_void = Asked::sized(Kind::Aligned, bytes), null_mut();
    posix_memalign(result: *mut *mut c_void, align: usize, bytes: usize) -> c_int = Asked::sized(Kind::Aligned, bytes), libc::ENOMEM;
    valloc(bytes: usize) -> *mut c_void = Asked::sized(Kind::Aligned, bytes), null_mut();
    pvalloc(bytes: usize) -> *mut c_void = Asked::sized(Kind::Aligned, bytes), null_mut();
    malloc_trim(pad: usize) -> c_int = Asked::of(Kind::Trim), 0;
    munmap(address: *mut c_void, bytes: usize) -> c_int = Asked::of(Kind::Munmap), -1;
    madvise(address: *mut c_void, bytes: usize, advice: c_int) -> c_int = Asked::of(Kind::Madvise), -1;
    mprotect(address: *mut c_void, bytes: usize, access: c_int) -> c_int = Asked::of(Kind::Mprotect), -1;
    vel_malloc_batch(bytes: usize, count: usize, blocks: *mut c_void) -> usize = Asked::over(Kind::BatchMalloc, bytes.saturating_mul(count)), 0;
    vel_malloc_sizes(sizes: *const c_void, count: usize, blocks: *mut c_void) -> usize = Asked::of(Kind::BatchMalloc), 0;
    vel_free_batch(blocks: *const c_void, count: usize) -> () = Asked::of(Kind::BatchFree), ();
    vel_realloc_batch(blocks: *mut c_void, sizes: *const c_void, count: usize) -> usize = Asked::of(Kind::BatchRealloc), 0;
    vel_relocate(block: *mut c_void, align: usize) -> *mut c_void = Asked::of(Kind::Relocate), null_mut();
    vel_swap(a: *mut c_void, b: *mut c_void) -> c_int = Asked::of(Kind::Swap), -1;
    vel_pages_alloc(bytes: usize, align: usize, zero: c_int) -> *mut c_void = Asked::over(Kind::PagesAlloc, bytes), null_mut();
    vel_pages_free(block: *mut c_void) -> c_int = Asked::of(Kind::PagesFree), -1;
    vel_pages_resize(block: *mut c_void, bytes: usize, may_move: c_int) -> *mut c_void = Asked::over(Kind::PagesResize, bytes), null_mut();
    vel_trim(severity: c_int) -> usize = Asked::of(Kind::Trim), 0;
}

/// Defines exported names of up to six arguments: pushes the argument registers, and passes their address,
/// the caller's frame and the frame pointer to the Rust function.
macro_rules! by_address {
    ($($name:ident = $next:ident, $asked:expr;)*) => { $(
        #[doc = concat!("`", stringify!($name), "`.")]
        ///
        /// # Safety
        /// The conditions of the system call.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() {
            extern "C" fn inner(arguments: &[usize; 6], frame: *const u64, bp: u64) -> *mut c_void {
                let &[a, b, c, d, e, f] = arguments;
                recorded($asked(arguments), Caller { frame, bp }, || {
                    next!($next, Map, (a, b, c, d, e, f), libc::MAP_FAILED)
                })
            }
            naked_asm!(
                ".cfi_startproc",
                "mov rax, rsp",
                "sub rsp, 8",
                "push r9",
                "push r8",
                "push rcx",
                "push rdx",
                "push rsi",
                "push rdi",
                ".cfi_adjust_cfa_offset 56",
                "mov rdi, rsp",
                "mov rsi, rax",
                "mov rdx, rbp",
                "call {inner}",
                "add rsp, 56",
                ".cfi_adjust_cfa_offset -56",
                "ret",
                ".cfi_endproc",
                inner = sym inner,
            )
        }
    )* };
}

by_address! {
    mmap = MMAP, |of: &[usize; 6]| Asked::sized(Kind::Mmap, of[1]);
    mmap64 = MMAP, |of: &[usize; 6]| Asked::sized(Kind::Mmap, of[1]);
    mremap = MREMAP, |of: &[usize; 6]| Asked::over(Kind::Mremap, of[2]);
}
