//! The modules (the executable and its libraries) of instructions, and how to leave a frame of theirs.
//!
//! Modules are found by glibc's `_dl_find_object` (2.35), which takes no lock and may be called in a signal
//! handler; where the C library has none, there are no stacks. Two users: the stack that led to a misuse
//! (`crate::backtrace`), and those of sampled blocks (`crate::profile`).

use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::{MaybeUninit, transmute};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use vellum_sys::segment;
use vellum_unwind::{Rule, Tables};

/// glibc's `_dl_find_object`, if it has one.
static FIND: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// glibc's `struct dl_find_object`.
#[repr(C)]
pub(crate) struct Module {
    flags: u64,
    /// From this address …
    pub(crate) start: u64,
    /// … to before this one.
    pub(crate) end: u64,
    link: *const LinkMap,
    unwind_index: *const u8,
    reserved: [u64; 7],
}

/// The public head of glibc's `struct link_map`.
#[repr(C)]
struct LinkMap {
    bias: u64,
    name: *const c_char,
    dynamic: *const c_void,
}

/// Looks for what will be needed, while the loader's lock can be taken.
pub(crate) fn prepare() {
    // SAFETY: plain call with a C string.
    FIND.store(unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_dl_find_object".as_ptr()) }, Relaxed);
}

/// The module that the instruction at `pc` lies in.
pub(crate) fn module(pc: u64) -> Option<Module> {
    let function = FIND.load(Relaxed);
    if function.is_null() {
        return None;
    }
    // SAFETY: the signature of glibc's function.
    let function =
        unsafe { transmute::<*mut c_void, unsafe extern "C" fn(u64, *mut Module) -> c_int>(function) };
    let mut module = MaybeUninit::<Module>::zeroed();
    // SAFETY: there is a place for the answer, which is all zeros or filled in.
    let module = unsafe { (function(pc, module.as_mut_ptr()) == 0).then(|| module.assume_init()) }?;
    (!module.link.is_null()).then_some(module)
}

impl Module {
    /// The difference between loaded addresses and the file's own.
    pub(crate) fn bias(&self) -> u64 {
        // SAFETY: the loader's record of a module that is mapped.
        unsafe { &*self.link }.bias
    }

    /// The name the loader knows it by: a path, or nothing for the executable.
    pub(crate) fn name(&self) -> &CStr {
        // SAFETY: the loader's record and its string, both there as long as the module is mapped.
        unsafe { CStr::from_ptr((*self.link).name) }
    }

    /// Where its dynamic section is.
    pub(crate) fn dynamic(&self) -> u64 {
        // SAFETY: as for `bias`.
        unsafe { &*self.link }.dynamic as u64
    }
}

/// How to leave the frame of the instruction at `pc`, by its module's tables as they are mapped.
pub(crate) fn rule(module: &Module, pc: u64) -> Option<Rule> {
    let index_at = module.unwind_index as u64;
    if index_at == 0 {
        return None;
    }
    let index = mapped_from(module, index_at)?;
    let entries_at = Tables::entries_of(index, index_at)?;
    Tables::new(index, index_at, mapped_from(module, entries_at)?, entries_at).rule_at(pc)
}

/// Takes the module's tables out of resident memory, after rules were looked up in them.
pub(crate) fn put_back_tables(module: &Module) {
    if !module.unwind_index.is_null() {
        // SAFETY: the loader says so.
        unsafe {
            segment::put_back(module.start as usize, module.bias() as usize, module.unwind_index as usize);
        }
    }
}

/// The bytes from `address` to the end of the part of the module that it lies in.
fn mapped_from(module: &Module, address: u64) -> Option<&'static [u8]> {
    // SAFETY: the loader says so, and nobody uses the bytes for longer than the module is mapped.
    unsafe { segment::mapped_from(module.start as usize, module.bias() as usize, address as usize) }
}
