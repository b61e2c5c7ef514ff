//! Decides whether Vellum serves this process or passes its requests through, and to which allocator.

use crate::knobs::{Knobs, variable};
use crate::loaded::first_symbol;
use core::ffi::{CStr, c_int, c_void};
use core::mem::transmute;
use core::ptr::null;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use vellum_malloc::Next;
use vellum_wire::Attach;

/// What the program's own circumstances ask for.
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

/// Leaves every further request to the allocator that comes after Vellum. False if there is none.
pub(crate) fn pass_through() -> bool {
    // Everything is looked up first, as looking up may allocate, from Vellum still.
    let Some(next) = Next::find() else { return false };
    static NEXT: Once<Next> = Once::new();
    vellum_malloc::pass_through(NEXT.set(next));
    true
}

/// Whether AddressSanitizer and its kin, or valgrind, watch this process.
fn is_checked() -> bool {
    let sanitizers = [c"__asan_init", c"__tsan_init", c"__msan_init", c"__hwasan_init", c"__lsan_init"];
    let preloads = variable(c"LD_PRELOAD").map_or(&[][..], CStr::to_bytes);
    preloads.windows(VALGRIND.len()).any(|window| window == VALGRIND)
        || sanitizers.iter().any(|name| !first_symbol(name).is_null())
}

const VALGRIND: &[u8] = b"vgpreload";

/// Something that lies in this library.
static HERE: u8 = 0;

/// What the library of `vellum cost` defines beside a `malloc` of its own, which passes each call on to the
/// next: to Vellum.
pub(crate) const RECORDER: &CStr = c"vellum_cost_recorder";

/// Whether a call of `malloc` from anywhere in the program reaches Vellum.
fn is_first_malloc() -> bool {
    let malloc = first(c"malloc");
    let object = object_of(malloc);
    malloc.is_null() || is_here(malloc) || object == object_of(first_symbol(RECORDER)) || is_stub(malloc)
}

/// Whether `function` is only an executable's jump to a function elsewhere. An executable that is not
/// position-independent and takes a function's address makes its own jump that address, for everybody; where
/// the jump leads, the dynamic linker has decided as if the executable had no such function.
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
    // SAFETY: the signature of glibc's dladdr1 when asked for the symbol.
    let found = unsafe {
        transmute::<*const c_void, Dladdr1>(dladdr1)(function, &raw mut info, &raw mut symbol, RTLD_DL_SYMENT)
    };
    // SAFETY: null or an entry of a loaded object's symbol table.
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

/// Where the object that holds `address` was loaded.
pub(crate) fn object_of(address: *const c_void) -> *const c_void {
    let mut info = NO_INFO;
    // SAFETY: plain call with a place for its answer.
    unsafe { libc::dladdr(address, &raw mut info) };
    info.dli_fbase
}

/// Whether `address` lies in this library.
fn is_here(address: *const c_void) -> bool {
    object_of(address) == object_of((&raw const HERE).cast())
}

/// A C string of a text that ends with a zero.
pub(crate) const fn name(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("no zero at its end"),
    }
}

/// The first definition of `name` in the program.
pub(crate) fn first(name: &CStr) -> *const c_void {
    // SAFETY: plain call with a C string.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
}

/// The definition of `name` that comes after Vellum's.
pub(crate) fn next(name: &CStr) -> Option<*const c_void> {
    // SAFETY: plain call with a C string.
    let symbol = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    (!symbol.is_null()).then_some(symbol.cast_const())
}

/// The C library's `name`: the definition after Vellum's; or, where the C library lies in front of it, the
/// first that is not Vellum's.
pub(crate) fn c_librarys(name: &CStr) -> Option<*const c_void> {
    next(name).or_else(|| Some(first(name)).filter(|found| !found.is_null() && !is_here(*found)))
}

/// A static that is written once.
struct Once<T> {
    value: core::cell::UnsafeCell<core::mem::MaybeUninit<T>>,
    is_set: AtomicPtr<T>,
}

// SAFETY: written once, before it is published.
unsafe impl<T: Sync> Sync for Once<T> {}

impl<T> Once<T> {
    const fn new() -> Once<T> {
        Once {
            value: core::cell::UnsafeCell::new(core::mem::MaybeUninit::uninit()),
            is_set: AtomicPtr::new(core::ptr::null_mut()),
        }
    }

    /// Sets the value; called from the constructor alone, so never by two threads.
    fn set(&'static self, value: T) -> &'static T {
        assert!(self.is_set.load(Relaxed).is_null(), "set twice");
        // SAFETY: the value is not published yet.
        let value = unsafe { (*self.value.get()).write(value) };
        self.is_set.store(value, Relaxed);
        value
    }
}
