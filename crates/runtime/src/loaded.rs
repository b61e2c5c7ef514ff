//! Looking up functions without the dynamic linker's lock.
//!
//! A function that is in front of one of the C library's finds that one by its first call. That may be in a
//! signal handler, or in the child of a `fork` that happened while another thread was loading a library:
//! there `dlsym` waits for ever for a lock that nobody gives back. So the libraries that were loaded with the
//! program are read here, as the ELF gABI and the GNU hash table's layout have them: they and their order
//! never change.
//!
//! The linker's list has them in the order of its search, so the first after Vellum that defines a name is
//! the one that `dlsym(RTLD_NEXT)` finds.

use crate::attach::first;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::null;
use core::sync::atomic::{AtomicPtr, Ordering};
use libc::{Elf64_Addr, Elf64_Sym};

/// `struct link_map` of `<link.h>`.
#[repr(C)]
struct Loaded {
    base: usize,
    name: *const c_char,
    dynamic: *const [usize; 2],
    next: *mut Loaded,
    before: *mut Loaded,
}

/// `struct r_debug`.
#[repr(C)]
struct Debug {
    version: c_int,
    all: *mut Loaded,
}

/// The program, Vellum itself, and the last of those loaded with the program; null if they are not known.
static PROGRAM: AtomicPtr<Loaded> = AtomicPtr::new(core::ptr::null_mut());
static HERE: AtomicPtr<Loaded> = AtomicPtr::new(core::ptr::null_mut());
static LAST: AtomicPtr<Loaded> = AtomicPtr::new(core::ptr::null_mut());

const DT_NULL: usize = 0;
const DT_STRTAB: usize = 5;
const DT_SYMTAB: usize = 6;
const DT_GNU_HASH: usize = 0x6fff_fef5;
const DT_VERSYM: usize = 0x6fff_fff0;
/// Of a symbol's version: it is not the one for those who name none.
const HIDDEN: u16 = 0x8000;
const STT_FUNC: u8 = 2;
const STT_GNU_IFUNC: u8 = 10;

/// Finds the list, by the main program's `DT_DEBUG`. Called once, before the program runs, so that nothing is
/// loaded or unloaded meanwhile.
pub(crate) fn begin() {
    let debug = first(c"_r_debug").cast::<Debug>();
    // SAFETY: null, or the linker's structure of this name, which it fills in before any program runs.
    let Some(debug) = (unsafe { debug.as_ref() }) else { return };
    let mut info = libc::Dl_info {
        dli_fname: null(),
        dli_fbase: core::ptr::null_mut(),
        dli_sname: null(),
        dli_saddr: core::ptr::null_mut(),
    };
    // SAFETY: plain call with a place for its answer.
    unsafe { libc::dladdr((&raw const HERE).cast(), &raw mut info) };
    let mut here = core::ptr::null_mut();
    let mut last = core::ptr::null_mut();
    let mut next = debug.all;
    // SAFETY: the linker's list, which nobody changes now.
    while let Some(object) = unsafe { next.as_ref() } {
        last = next;
        if object.base == info.dli_fbase.addr() {
            here = next;
        }
        next = object.next;
    }
    LAST.store(last, Ordering::Relaxed);
    PROGRAM.store(debug.all, Ordering::Relaxed);
    HERE.store(here, Ordering::Release);
}

/// The objects after Vellum that were loaded with the program; none if the list is not known.
fn later() -> impl Iterator<Item = &'static Loaded> {
    let last = LAST.load(Ordering::Relaxed);
    let mut at = HERE.load(Ordering::Acquire);
    core::iter::from_fn(move || {
        if at.is_null() || at == last {
            return None;
        }
        // SAFETY: an object that was loaded with the program, and stays as long as it; so does the one after
        // it.
        unsafe {
            at = (*at).next;
            at.as_ref()
        }
    })
}

/// The definition of function `name` that comes after Vellum's; `None` if there is none, or the list is not
/// known.
pub(crate) fn next(name: &CStr) -> Option<*const c_void> {
    // SAFETY: the objects stay loaded.
    later().find_map(|object| unsafe { object.find(name) })
}

/// Whether the first object after Vellum that defines function `name` defines none of `others`.
pub(crate) fn next_lacks(name: &CStr, others: &[&CStr]) -> bool {
    // SAFETY: the objects stay loaded.
    let has = |object: &Loaded, name: &CStr| unsafe { object.find(name) }.is_some();
    later()
        .find(|object| has(object, name))
        .is_some_and(|object| !others.iter().any(|other| has(object, other)))
}

/// Where the first definition of `name` in the program is, of a function or of data. Unlike `dlsym` it
/// allocates nothing where there is none: the linker's words about that would come from an allocator of the
/// program's own, before that is ready.
pub(crate) fn first_symbol(name: &CStr) -> *const c_void {
    let mut at = PROGRAM.load(Ordering::Relaxed);
    if at.is_null() {
        return first(name);
    }
    let last = LAST.load(Ordering::Relaxed);
    // SAFETY: an object that was loaded with the program, and stays as long as it.
    while let Some(object) = unsafe { at.as_ref() } {
        // SAFETY: as above.
        if let Some(symbol) = unsafe { object.symbol(name) } {
            return (object.base + symbol.st_value as usize) as *const c_void;
        }
        at = if at == last { core::ptr::null_mut() } else { object.next };
    }
    null()
}

/// The GNU hash of a name.
fn hash(name: &CStr) -> u32 {
    name.to_bytes().iter().fold(5381, |hash: u32, byte| hash.wrapping_mul(33).wrapping_add((*byte).into()))
}

impl Loaded {
    /// The address of a table. glibc has put the address where the file has the offset, others have not.
    fn table(&self, value: usize) -> usize {
        if value < self.base { value + self.base } else { value }
    }

    /// The function `name` that the object defines.
    ///
    /// # Safety
    /// The object is loaded.
    unsafe fn find(&self, name: &CStr) -> Option<*const c_void> {
        // SAFETY: by this function's condition; the symbol is the object's.
        unsafe { self.symbol(name).and_then(|symbol| self.address(symbol)) }
    }

    /// # Safety
    /// The object is loaded.
    unsafe fn symbol(&self, name: &CStr) -> Option<&'static Elf64_Sym> {
        let (mut texts, mut symbols, mut hashes, mut versions) = (0, 0, 0, 0);
        let mut entry = self.dynamic;
        // SAFETY: the object's dynamic section, up to its end.
        while let Some(&[tag, value]) = unsafe { entry.as_ref() }.filter(|entry| entry[0] != DT_NULL) {
            match tag {
                DT_STRTAB => texts = self.table(value),
                DT_SYMTAB => symbols = self.table(value),
                DT_GNU_HASH => hashes = self.table(value),
                DT_VERSYM => versions = self.table(value),
                _ => {}
            }
            // SAFETY: as above.
            entry = unsafe { entry.add(1) };
        }
        if texts == 0 || symbols == 0 || hashes == 0 {
            return None;
        }
        let wanted = hash(name);
        // SAFETY: the object's tables, as their formats are: the hash table's header, its filter, its
        // buckets, and a chain that ends with an odd hash.
        unsafe {
            let [buckets, from, filters, _] = *(hashes as *const [u32; 4]);
            if buckets == 0 {
                return None;
            }
            let bucket = (hashes + 16 + filters as usize * size_of::<Elf64_Addr>()) as *const u32;
            let mut index = *bucket.add((wanted % buckets) as usize);
            while index >= from {
                let has = *bucket.add((buckets + index - from) as usize);
                let symbol = &*(symbols as *const Elf64_Sym).add(index as usize);
                let version = if versions == 0 { 0 } else { *(versions as *const u16).add(index as usize) };
                if has | 1 == wanted | 1
                    && symbol.st_shndx != 0
                    && version & HIDDEN == 0
                    && CStr::from_ptr((texts + symbol.st_name as usize) as *const c_char) == name
                {
                    return Some(symbol);
                }
                if has & 1 == 1 {
                    break;
                }
                index += 1;
            }
        }
        None
    }

    /// The function that `symbol` stands for.
    ///
    /// # Safety
    /// A symbol that the object defines.
    unsafe fn address(&self, symbol: &Elf64_Sym) -> Option<*const c_void> {
        let address = self.base + symbol.st_value as usize;
        match symbol.st_info & 15 {
            STT_FUNC => Some(address as *const c_void),
            STT_GNU_IFUNC => {
                // SAFETY: by its kind a function without arguments that returns the address; its object has
                // been relocated when programs run.
                let choose =
                    unsafe { core::mem::transmute::<usize, extern "C" fn() -> *const c_void>(address) };
                Some(choose())
            }
            _ => None,
        }
    }
}
