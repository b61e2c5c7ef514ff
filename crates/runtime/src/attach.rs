//! Decides whether Vellum serves this process or passes its requests on to the next allocator.

use crate::knobs::{Knobs, variable};
use crate::loaded::first_symbol;
use core::ffi::{CStr, c_int, c_void};
use core::mem::transmute;
use core::ptr::null;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use vellum_malloc::Next;
use vellum_wire::Attach;

/// Decides by the settings and by the program.
pub(crate) fn decide(knobs: &Knobs) -> Attach {
    if knobs.disable {
        Attach::Disabled
    } else if !vellum_pages::is_suited() {
        Attach::Unsuited
    } else if is_checked() {
        Attach::MemoryChecker
    } else if !is_first_malloc() {
        Attach::OwnAllocator
    } else {
        Attach::Serving
    }
}

/// Passes all further requests to the allocator that comes after Vellum; false if it does not exist.
pub(crate) fn pass_through() -> bool {
    // All functions are looked up first, because a lookup may allocate, still from Vellum.
    let Some(next) = Next::find() else { return false };
    static NEXT: Once<Next> = Once::new();
    vellum_malloc::pass_through(NEXT.set(next));
    true
}

/// True if AddressSanitizer, a similar tool or valgrind watches this process.
fn is_checked() -> bool {
    let sanitizers = [c"__asan_init", c"__tsan_init", c"__msan_init", c"__hwasan_init", c"__lsan_init"];
    let preloads = variable(c"LD_PRELOAD").map_or(&[][..], CStr::to_bytes);
    preloads.windows(VALGRIND.len()).any(|window| window == VALGRIND)
        || sanitizers.iter().any(|name| !first_symbol(name).is_null())
}

const VALGRIND: &[u8] = b"vgpreload";

/// A place in this library.
static HERE: u8 = 0;

/// A symbol of `vellum cost`'s library, whose `malloc` passes each call to the next one: Vellum's.
pub(crate) const RECORDER: &CStr = c"vellum_cost_recorder";

/// True if a call of `malloc` from anywhere in the program reaches Vellum.
fn is_first_malloc() -> bool {
    let malloc = first(c"malloc");
    let object = object_of(malloc);
    malloc.is_null() || is_here(malloc) || object == object_of(first_symbol(RECORDER)) || is_stub(malloc)
}

/// True if `function` is only an executable's jump to a function elsewhere. If an executable that is not
/// position-independent takes a function's address, its jump becomes that address for all objects. The
/// dynamic linker resolves the jump as if the executable did not define the function.
fn is_stub(function: *const c_void) -> bool {
    type Dladdr1 =
        unsafe extern "C" fn(*const c_void, *mut libc::Dl_info, *mut *const libc::Elf64_Sym, c_int) -> c_int;
    const RTLD_DL_SYMENT: c_int = 1;
    let dladdr1 = first(c"dladdr1");
    if dladdr1.is_null() {
        return false;
    }
    let mut symbol = null();
    let mut info = NO_INFO;
    // SAFETY: glibc's dladdr1 has this signature for RTLD_DL_SYMENT, and both results are locals.
    let found = unsafe {
        transmute::<*const c_void, Dladdr1>(dladdr1)(function, &raw mut info, &raw mut symbol, RTLD_DL_SYMENT)
    };
    // SAFETY: the pointer is null or an entry of a loaded object's symbol table.
    found != 0 && unsafe { symbol.as_ref() }.is_some_and(|symbol| symbol.st_shndx == SHN_UNDEF)
}

/// The section of a symbol that its object does not define.
const SHN_UNDEF: u16 = 0;

const NO_INFO: libc::Dl_info = libc::Dl_info {
    dli_fname: null(),
    dli_fbase: core::ptr::null_mut(),
    dli_sname: null(),
    dli_saddr: core::ptr::null_mut(),
};

/// The load address of the object that contains `address`.
pub(crate) fn object_of(address: *const c_void) -> *const c_void {
    let mut info = NO_INFO;
    // SAFETY: dladdr accepts any address; `info` is a local.
    unsafe { libc::dladdr(address, &raw mut info) };
    info.dli_fbase
}

/// True if `address` lies in this library.
fn is_here(address: *const c_void) -> bool {
    object_of(address) == object_of((&raw const HERE).cast())
}

/// Converts a text that ends with a zero to a C string.
pub(crate) const fn name(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("no zero at its end"),
    }
}

/// The first definition of `name` in the program.
pub(crate) fn first(name: &CStr) -> *const c_void {
    // SAFETY: `name` is a C string.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
}

/// The first definition of `name` after Vellum's.
pub(crate) fn next(name: &CStr) -> Option<*const c_void> {
    // SAFETY: `name` is a C string.
    let symbol = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    (!symbol.is_null()).then_some(symbol.cast_const())
}

/// The C library's `name`: the definition after Vellum's, or the first one outside Vellum if the C library
/// comes before it.
pub(crate) fn c_librarys(name: &CStr) -> Option<*const c_void> {
    next(name).or_else(|| Some(first(name)).filter(|found| !found.is_null() && !is_here(*found)))
}

/// A static that is written once.
struct Once<T> {
    value: core::cell::UnsafeCell<core::mem::MaybeUninit<T>>,
    is_set: AtomicPtr<T>,
}

// SAFETY: the value is written once, before it is published.
unsafe impl<T: Sync> Sync for Once<T> {}

impl<T> Once<T> {
    const fn new() -> Once<T> {
        Once {
            value: core::cell::UnsafeCell::new(core::mem::MaybeUninit::uninit()),
            is_set: AtomicPtr::new(core::ptr::null_mut()),
        }
    }

    /// Sets the value. Only the constructor calls this, so no two threads do.
    fn set(&'static self, value: T) -> &'static T {
        assert!(self.is_set.load(Relaxed).is_null(), "set twice");
        // SAFETY: the value is not yet published, and only one thread calls this.
        let value = unsafe { (*self.value.get()).write(value) };
        self.is_set.store(value, Relaxed);
        value
    }
}
