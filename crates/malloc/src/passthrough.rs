//! Passthrough mode: requests are forwarded to the allocator that the program would have without Vellum.
//!
//! The runtime selects this mode once, early: at the user's request, for a program with its own allocator, or
//! under a memory checker. From then on threads get no heap, and the slow path forwards every request. Blocks
//! that Vellum handed out before stay Vellum's, and are recognised by their address.
//!
//! In two cases the mode is selected before the runtime starts, as the dynamic linker and the constructors of
//! libraries allocate earlier. The first request tests for these cases ([`choose`]), without allocating:
//!
//! - A sanitizer's runtime is loaded. It would end the process if it found Vellum's arenas mapped.
//! - The page layer cannot run on this kernel. A program without another allocator, such as a static one,
//!   ends with a message.

use crate::class::GRANULE;
use crate::errno::out_of_memory;
use core::ffi::CStr;
use core::mem::transmute;
use core::ptr::null_mut;
use libc::{c_int, c_void, size_t};

/// The functions of the next allocator.
#[repr(C)]
#[derive(Debug)]
#[expect(missing_docs, reason = "each field is the C function of its name")]
pub struct Next {
    pub malloc: unsafe extern "C" fn(size_t) -> *mut c_void,
    pub calloc: unsafe extern "C" fn(size_t, size_t) -> *mut c_void,
    pub realloc: unsafe extern "C" fn(*mut c_void, size_t) -> *mut c_void,
    pub free: unsafe extern "C" fn(*mut c_void),
    pub posix_memalign: unsafe extern "C" fn(*mut *mut c_void, size_t, size_t) -> c_int,
    pub malloc_usable_size: unsafe extern "C" fn(*mut c_void) -> size_t,
}

/// Parts of the names of sanitizers' runtimes that have an allocator. A runtime that is linked into the
/// program gets every request without Vellum's help.
const SANITIZERS: [&[u8]; 5] = [b"tsan", b"asan", b"msan", b"hwasan", b"lsan"];

/// True if the object of that path is a sanitizer's runtime: `libtsan.so.2`, `libclang_rt.asan-x86_64.so`.
fn is_sanitizer(path: &[u8]) -> bool {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
    let rest = name.strip_prefix(b"libclang_rt.").or_else(|| name.strip_prefix(b"lib"));
    rest.is_some_and(|rest| {
        SANITIZERS
            .iter()
            .any(|&kind| rest.strip_prefix(kind).is_some_and(|rest| matches!(rest, [b'.' | b'-' | b'_', ..])))
    })
}

/// A loaded object in the dynamic linker's list for debuggers: the public beginning of glibc's and musl's
/// `struct link_map`.
#[repr(C)]
struct Object {
    bias: usize,
    name: *const libc::c_char,
    dynamic: usize,
    next: *const Object,
}

/// The head of that list: the beginning of `struct r_debug`.
#[repr(C)]
struct Objects {
    version: c_int,
    first: *const Object,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Dynamic {
    tag: usize,
    value: usize,
}

const DT_NULL: usize = 0;
const DT_DEBUG: usize = 21;

/// The first of the loaded objects, from the program's own dynamic section; null without a dynamic linker. A
/// sanitizer's `dl_iterate_phdr` cannot be called before the sanitizer is initialised.
fn first_object() -> *const Object {
    // SAFETY: `getauxval` has no preconditions.
    let (headers, count) =
        unsafe { (libc::getauxval(libc::AT_PHDR) as usize, libc::getauxval(libc::AT_PHNUM) as usize) };
    if headers == 0 {
        return core::ptr::null();
    }
    // SAFETY: the kernel says how many headers of the program are mapped there.
    let headers = unsafe { core::slice::from_raw_parts(headers as *const libc::Elf64_Phdr, count) };
    let find = |kind: u32| headers.iter().find(|header| header.p_type == kind);
    // A static program that can lie anywhere has a dynamic section, and need not say where its headers are.
    if find(libc::PT_INTERP).is_none() {
        return core::ptr::null();
    }
    let bias =
        find(libc::PT_PHDR).map_or(0, |own| (headers.as_ptr() as usize).wrapping_sub(own.p_vaddr as usize));
    let Some(dynamic) = find(libc::PT_DYNAMIC) else { return core::ptr::null() };
    let mut entry = bias.wrapping_add(dynamic.p_vaddr as usize) as *const Dynamic;
    loop {
        // SAFETY: the section ends with an entry of tag 0.
        let Dynamic { tag, value } = unsafe { *entry };
        if tag == DT_NULL {
            return core::ptr::null();
        }
        if tag == DT_DEBUG {
            // SAFETY: 0, or what the linker keeps for debuggers.
            return unsafe { (value as *const Objects).as_ref() }
                .map_or(core::ptr::null(), |objects| objects.first);
        }
        // SAFETY: not the last.
        entry = unsafe { entry.add(1) };
    }
}

/// True if a sanitizer's runtime is among the objects that were loaded with the program.
fn has_sanitizer() -> bool {
    let mut next = first_object();
    // SAFETY: null or an object's description; nobody unloads any before the program has begun.
    while let Some(object) = unsafe { next.as_ref() } {
        // SAFETY: null or a C string.
        if !object.name.is_null() && is_sanitizer(unsafe { CStr::from_ptr(object.name) }.to_bytes()) {
            return true;
        }
        next = object.next;
    }
    false
}

/// Another allocator for the program, if a sanitizer's runtime is loaded or the kernel is not suited.
#[cold]
pub(crate) fn choose() -> Option<Next> {
    let is_suited = vellum_pages::is_suited();
    if is_suited && !has_sanitizer() {
        return None;
    }
    let next = Next::find();
    if next.is_none() && !is_suited {
        crate::Line::new().text("vellum: this kernel's pages are not of 4096 bytes, or its programs have too few addresses, and there is no other allocator\n").write();
        // SAFETY: abort has no preconditions.
        unsafe { libc::abort() }
    }
    next
}

impl Next {
    /// The allocator that comes after this library's, if it has all of these functions.
    pub fn find() -> Option<Next> {
        let names = [c"malloc", c"calloc", c"realloc", c"free", c"posix_memalign", c"malloc_usable_size"];
        // SAFETY: a C string, and a handle that `dlsym` takes.
        let found = names.map(|name| unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) });
        let are_all = !found.iter().any(|function| function.is_null());
        // SAFETY: none is null; they are in the structure's order, and have the signatures that the C
        // standard, POSIX and malloc.h give these names.
        are_all.then(|| unsafe { transmute::<[*mut c_void; 6], Next>(found) })
    }

    /// A block of at least `bytes` bytes at a multiple of `align`; null (and `ENOMEM`) when there is none.
    pub(crate) fn allocate(&self, bytes: usize, align: usize, zero: bool) -> *mut u8 {
        let mut block: *mut c_void = null_mut();
        // SAFETY: the next allocator's functions, called as their C declarations say.
        unsafe {
            match zero {
                _ if align > GRANULE => match (self.posix_memalign)(&raw mut block, align, bytes) {
                    0 => block.cast(),
                    _ => out_of_memory(),
                },
                true => (self.calloc)(1, bytes).cast(),
                false => (self.malloc)(bytes).cast(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_sanitizer;

    #[test]
    fn sanitizers_are_known_by_name() {
        let runtimes: [&[u8]; 5] = [
            b"/lib/x86_64-linux-gnu/libtsan.so.2",
            b"libasan.so.8",
            b"/usr/lib/gcc/liblsan.so",
            b"/usr/lib/llvm-14/lib/clang/14.0.6/lib/linux/libclang_rt.asan-x86_64.so",
            b"libhwasan.so.0",
        ];
        assert!(runtimes.iter().all(|path| is_sanitizer(path)));
        let others: [&[u8]; 6] =
            [b"", b"/libtsan.so.2/libc.so.6", b"libubsan.so.1", b"libtsandbox.so", b"libvellum.so", b"lib"];
        assert!(!others.iter().any(|path| is_sanitizer(path)));
    }
}
