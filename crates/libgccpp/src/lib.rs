//! `libgccpp.so.1`: `operator new` and `operator delete` of C++ programs written for libgc.
//!
//! Memory of plain `new` stays until it is deleted. The collector scans it, so such objects may refer to
//! collected ones. The forms of `new` differ only in alignment and in their behaviour without memory: they
//! throw `std::bad_alloc`, or return null if they are `nothrow` forms.
//!
//! # Guarantees
//! * All forms of the language are defined, not only the plain ones of libgc's library. Otherwise the C++
//!   runtime's forms would return memory that is not scanned.
//! * Deleted memory returns to its allocator. Memory from `malloc` goes to `free`: it was allocated before
//!   this library was loaded, or by a library that has its own `new`.

#![cfg_attr(panic = "abort", no_std)]
#![allow(non_snake_case, reason = "the names are those of the C++ ABI")]
#![allow(
    clippy::not_unsafe_ptr_arg_deref,
    clippy::missing_safety_doc,
    reason = "called from C++ only: what its callers promise is the language's"
)]

use core::arch::naked_asm;
use core::ffi::c_void;

unsafe extern "C" {
    fn GC_malloc_uncollectable(bytes: usize) -> *mut c_void;
    fn GC_memalign(align: usize, bytes: usize) -> *mut c_void;
    fn GC_free(object: *mut c_void);
    fn GC_base(address: *mut c_void) -> *mut c_void;
    fn vel_gc_keep(object: *mut c_void) -> core::ffi::c_int;
}

unsafe extern "C" {
    /// `std::__throw_bad_alloc()`.
    fn _ZSt17__throw_bad_allocv();
}

/// Allocates uncollectable memory, which is scanned; null without memory.
extern "C" fn get(bytes: usize) -> *mut c_void {
    // SAFETY: the function accepts any size.
    unsafe { GC_malloc_uncollectable(bytes) }
}

/// Allocates uncollectable memory, aligned to a power of two up to a page; null without memory.
extern "C" fn get_aligned(bytes: usize, align: usize) -> *mut c_void {
    // SAFETY: the functions accept any size and alignment; the object is new, so freeing it is sound.
    unsafe {
        let object = GC_memalign(align, bytes);
        if !object.is_null() && vel_gc_keep(object) != 0 {
            GC_free(object);
            return core::ptr::null_mut();
        }
        object
    }
}

/// `GC_throw_bad_alloc()`: throws `std::bad_alloc`.
// An exception may not pass through code that is compiled to abort. This function therefore has no frame, and
// jumps to the C++ runtime's function.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub extern "C" fn _Z18GC_throw_bad_allocv() {
    naked_asm!("jmp {throw}", throw = sym _ZSt17__throw_bad_allocv)
}

fn give(object: *mut c_void) {
    if object.is_null() {
        return;
    }
    // SAFETY: a deleted block is not used any more; `GC_base` finds no object for blocks of malloc.
    unsafe {
        if GC_base(object).is_null() {
            libc::free(object);
        } else {
            GC_free(object);
        }
    }
}

/// Calls `get` with the caller's arguments; jumps to `throw` if it returns null.
macro_rules! or_throw {
    () => {
        "sub rsp, 8\ncall {get}\nadd rsp, 8\ntest rax, rax\nje 2f\nret\n2: jmp {throw}"
    };
}

macro_rules! operators {
    (new { $($new:ident $new_nothrow:ident $new_aligned:ident $new_aligned_nothrow:ident;)* }
     delete { $($delete:ident($($unused:ty),*);)* }) => {
        $(
            /// `operator new` or `operator new[]`.
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            pub extern "C" fn $new(bytes: usize) -> *mut c_void {
                naked_asm!(or_throw!(), get = sym get, throw = sym _ZSt17__throw_bad_allocv)
            }
            /// The form that returns null.
            #[unsafe(no_mangle)]
            pub extern "C" fn $new_nothrow(bytes: usize, _: *const c_void) -> *mut c_void {
                get(bytes)
            }
            /// The aligned form.
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            pub extern "C" fn $new_aligned(bytes: usize, align: usize) -> *mut c_void {
                naked_asm!(or_throw!(), get = sym get_aligned, throw = sym _ZSt17__throw_bad_allocv)
            }
            /// The aligned form that returns null.
            #[unsafe(no_mangle)]
            pub extern "C" fn $new_aligned_nothrow(bytes: usize, align: usize, _: *const c_void) -> *mut c_void {
                get_aligned(bytes, align)
            }
        )*
        $(
            /// A form of `operator delete`.
            #[unsafe(no_mangle)]
            pub extern "C" fn $delete(object: *mut c_void $(, _: $unused)*) {
                give(object);
            }
        )*
    };
}

operators! {
    new {
    _Znwm _ZnwmRKSt9nothrow_t _ZnwmSt11align_val_t _ZnwmSt11align_val_tRKSt9nothrow_t;
    _Znam _ZnamRKSt9nothrow_t _ZnamSt11align_val_t _ZnamSt11align_val_tRKSt9nothrow_t;
    }
    delete {
    _ZdlPv();
    _ZdaPv();
    _ZdlPvm(usize);
    _ZdaPvm(usize);
    _ZdlPvRKSt9nothrow_t(*const c_void);
    _ZdaPvRKSt9nothrow_t(*const c_void);
    _ZdlPvSt11align_val_t(usize);
    _ZdaPvSt11align_val_t(usize);
    _ZdlPvmSt11align_val_t(usize, usize);
    _ZdaPvmSt11align_val_t(usize, usize);
    _ZdlPvSt11align_val_tRKSt9nothrow_t(usize, *const c_void);
    _ZdaPvSt11align_val_tRKSt9nothrow_t(usize, *const c_void);
    }
}

/// Ends the process at a broken invariant; no code here panics.
#[cfg(panic = "abort")]
#[panic_handler]
fn broken(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: abort has no preconditions.
    unsafe { libc::abort() }
}
