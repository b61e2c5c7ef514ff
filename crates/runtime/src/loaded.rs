//! Looking up functions without the dynamic linker's lock.
//!
//! A function that wraps one of the C library's looks it up at the first call. That call may happen in a
//! signal handler, or in the child of a `fork` made while another thread was loading a library. There `dlsym`
//! would wait forever for a lock that is never released. This file therefore reads the libraries that were
//! loaded with the program, by the ELF gABI and the GNU hash table's layout. These libraries and their order
//! never change.
//!
//! The linker's list has the order of its search, so the first definition of a name after Vellum is the one
//! that `dlsym(RTLD_NEXT)` finds.

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

// Where the linker keeps its list. Weak, as no C library has both; not by `dlsym`, which needs the list.
core::arch::global_asm!(
    ".weak _r_debug",
    ".weak _dl_debug_addr",
    ".hidden vellum_linkers_list",
    ".globl vellum_linkers_list",
    ".pushsection .data.rel.ro.vellum_linkers_list, \"aw\", @progbits",
    ".p2align 3",
    "vellum_linkers_list: .quad _r_debug, _dl_debug_addr",
    ".popsection",
);

unsafe extern "C" {
    static vellum_linkers_list: [*const c_void; 2];
}

/// Finds the list. Called before the program runs, so that nothing is loaded or unloaded meanwhile.
pub(crate) fn begin() {
    if !LAST.load(Ordering::Relaxed).is_null() {
        return;
    }
    // SAFETY: each null, or what the linker of that C library has under this name, filled in before any
    // program runs.
    let debug = unsafe {
        let [glibcs, musls] = vellum_linkers_list;
        glibcs.cast::<Debug>().as_ref().or_else(|| musls.cast::<*const Debug>().as_ref()?.as_ref())
    };
    let Some(debug) = debug else { return };
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

/// The objects that were loaded with the program, from `at` on.
fn objects(mut at: *mut Loaded) -> impl Iterator<Item = &'static Loaded> {
    let last = LAST.load(Ordering::Relaxed);
    core::iter::from_fn(move || {
        // SAFETY: null, or an object that was loaded with the program, and stays as long as it.
        let object = unsafe { at.as_ref() }?;
        at = if at == last { core::ptr::null_mut() } else { object.next };
        Some(object)
    })
}

/// Those after Vellum; none if the list is not known.
fn later() -> impl Iterator<Item = &'static Loaded> {
    objects(HERE.load(Ordering::Acquire)).skip(1)
}

/// Those before Vellum.
fn earlier() -> impl Iterator<Item = &'static Loaded> {
    let here = HERE.load(Ordering::Acquire);
    objects(PROGRAM.load(Ordering::Relaxed)).take_while(move |object| !core::ptr::eq(*object, here))
}

/// The definition of function `name` that comes after Vellum's; `None` if there is none, or the list is not
/// known.
pub(crate) fn next(name: &CStr) -> Option<*const c_void> {
    // SAFETY: the objects stay loaded.
    later().find_map(|object| unsafe { object.find(name) })
}

/// The one that is not Vellum's, wherever it is.
pub(crate) fn other(name: &CStr) -> Option<*const c_void> {
    // SAFETY: the objects stay loaded.
    later().chain(earlier()).find_map(|object| unsafe { object.find(name) })
}

/// The one after the object at `base`, if Vellum's does not come first. The objects of a library that was
/// loaded later are taken to define none.
pub(crate) fn next_of(base: usize, name: &CStr) -> Option<*const c_void> {
    let here = HERE.load(Ordering::Acquire);
    let is_first = |object: &Loaded| object.base == base;
    // SAFETY: null, or Vellum's own object.
    if earlier().any(is_first) || unsafe { here.as_ref() }.is_none_or(is_first) {
        return None;
    }
    let is_early = later().any(is_first);
    let mut rest = later().skip_while(|object| is_early && object.base != base).skip(is_early.into());
    // SAFETY: the objects stay loaded.
    rest.find_map(|object| unsafe { object.find(name) })
}

/// The same, of the objects without a function `other`.
pub(crate) fn next_without(name: &CStr, other: &CStr) -> Option<*const c_void> {
    // SAFETY: the objects stay loaded.
    later().filter(|object| !object.has(other)).find_map(|object| unsafe { object.find(name) })
}

/// Whether one of the functions `names` is replaced: an object before Vellum defines it that does not define
/// `watcher`, or the first after Vellum that defines it defines none of `usual`.
pub(crate) fn is_replaced(names: &[&CStr], watcher: &CStr, usual: &[&CStr]) -> bool {
    let has_one = |object: &Loaded, names: &[&CStr]| names.iter().any(|name| object.has(name));
    earlier().any(|object| has_one(object, names) && !object.has(watcher))
        || names
            .iter()
            .any(|name| later().find(|object| object.has(name)).is_some_and(|object| !has_one(object, usual)))
}

/// Where the first definition of `name` in the program is, of a function or of data. Unlike `dlsym` it
/// allocates nothing where there is none: the linker's words about that would come from an allocator of the
/// program's own, before that is ready.
pub(crate) fn first_symbol(name: &CStr) -> *const c_void {
    let program = PROGRAM.load(Ordering::Relaxed);
    if program.is_null() {
        return first(name);
    }
    let found = objects(program).find_map(|object| {
        // SAFETY: the object stays loaded.
        let symbol = unsafe { object.symbol(name) }?;
        Some((object.base + symbol.st_value as usize) as *const c_void)
    });
    found.unwrap_or(null())
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

    /// Whether the object, one that was loaded with the program, defines `name`.
    fn has(&self, name: &CStr) -> bool {
        // SAFETY: such objects stay loaded.
        unsafe { self.symbol(name) }.is_some()
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
