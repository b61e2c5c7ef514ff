//! Looks up functions in the loaded libraries without the dynamic linker's lock.
//!
//! At its first call, a wrapper in Vellum looks up the function of the C library that it wraps. This call may
//! come from a signal handler, or from the child of a `fork` made while another thread was loading a library.
//! In both cases `dlsym` could wait forever for a lock that is never released. This file therefore reads the
//! libraries that were loaded with the program, by the ELF gABI and the GNU hash table's layout. These
//! libraries and their order never change.
//!
//! The linker's list has the libraries in search order, so a name has the same first definition after Vellum
//! as with `dlsym(RTLD_NEXT)`.

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

/// The program, Vellum, and the last object loaded with the program; null if they were not found.
static PROGRAM: AtomicPtr<Loaded> = AtomicPtr::new(core::ptr::null_mut());
static HERE: AtomicPtr<Loaded> = AtomicPtr::new(core::ptr::null_mut());
static LAST: AtomicPtr<Loaded> = AtomicPtr::new(core::ptr::null_mut());

const DT_NULL: usize = 0;
const DT_STRTAB: usize = 5;
const DT_SYMTAB: usize = 6;
const DT_GNU_HASH: usize = 0x6fff_fef5;
const DT_VERSYM: usize = 0x6fff_fff0;
/// In a symbol's version: the symbol is not the default version.
const HIDDEN: u16 = 0x8000;
const STT_FUNC: u8 = 2;
const STT_GNU_IFUNC: u8 = 10;

// The linker's list. Weak symbols, because no C library has both; `dlsym` itself needs the list.
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

/// Finds the list. Called before the program runs, while no object is loaded or unloaded.
pub(crate) fn begin() {
    if !LAST.load(Ordering::Relaxed).is_null() {
        return;
    }
    // SAFETY: each symbol is null or belongs to the linker of that C library, which fills it in before any
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
    // SAFETY: `info` is a local with room for the result.
    unsafe { libc::dladdr((&raw const HERE).cast(), &raw mut info) };
    let mut here = core::ptr::null_mut();
    let mut last = core::ptr::null_mut();
    let mut next = debug.all;
    // SAFETY: the linker's list does not change before the program runs.
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

/// The objects loaded with the program, from `at` on.
fn objects(mut at: *mut Loaded) -> impl Iterator<Item = &'static Loaded> {
    let last = LAST.load(Ordering::Relaxed);
    core::iter::from_fn(move || {
        // SAFETY: the pointer is null or an object loaded with the program, which is never unloaded.
        let object = unsafe { at.as_ref() }?;
        at = if at == last { core::ptr::null_mut() } else { object.next };
        Some(object)
    })
}

/// The objects after Vellum; none if the list was not found.
fn later() -> impl Iterator<Item = &'static Loaded> {
    objects(HERE.load(Ordering::Acquire)).skip(1)
}

/// The objects before Vellum.
fn earlier() -> impl Iterator<Item = &'static Loaded> {
    let here = HERE.load(Ordering::Acquire);
    objects(PROGRAM.load(Ordering::Relaxed)).take_while(move |object| !core::ptr::eq(*object, here))
}

/// The first definition of function `name` after Vellum's; `None` without a definition or without the list.
pub(crate) fn next(name: &CStr) -> Option<*const c_void> {
    // SAFETY: objects loaded with the program are never unloaded.
    later().find_map(|object| unsafe { object.find(name) })
}

/// The first definition of function `name` outside Vellum, after or else before it.
pub(crate) fn other(name: &CStr) -> Option<*const c_void> {
    // SAFETY: objects loaded with the program are never unloaded.
    later().chain(earlier()).find_map(|object| unsafe { object.find(name) })
}

/// The first definition of `name` after the object at `base`; `None` if Vellum's definition comes first.
/// Objects that were loaded later are assumed to define nothing.
pub(crate) fn next_of(base: usize, name: &CStr) -> Option<*const c_void> {
    let here = HERE.load(Ordering::Acquire);
    let is_first = |object: &Loaded| object.base == base;
    // SAFETY: the pointer is null or Vellum's object, which is never unloaded.
    if earlier().any(is_first) || unsafe { here.as_ref() }.is_none_or(is_first) {
        return None;
    }
    let is_early = later().any(is_first);
    let mut rest = later().skip_while(|object| is_early && object.base != base).skip(is_early.into());
    // SAFETY: objects loaded with the program are never unloaded.
    rest.find_map(|object| unsafe { object.find(name) })
}

/// Like [`next`], but only of objects without a function `other`.
pub(crate) fn next_without(name: &CStr, other: &CStr) -> Option<*const c_void> {
    // SAFETY: objects loaded with the program are never unloaded.
    later().filter(|object| !object.has(other)).find_map(|object| unsafe { object.find(name) })
}

/// True if one of the functions `names` is replaced. Either an object before Vellum defines it and not
/// `watcher`, or the first object after Vellum that defines it defines none of `usual`.
pub(crate) fn is_replaced(names: &[&CStr], watcher: &CStr, usual: &[&CStr]) -> bool {
    let has_one = |object: &Loaded, names: &[&CStr]| names.iter().any(|name| object.has(name));
    earlier().any(|object| has_one(object, names) && !object.has(watcher))
        || names
            .iter()
            .any(|name| later().find(|object| object.has(name)).is_some_and(|object| !has_one(object, usual)))
}

/// The address of the first definition of `name` in the program, a function or data. Unlike `dlsym` it does
/// not allocate for a missing name: the linker's error message would come from the program's allocator before
/// that is ready.
pub(crate) fn first_symbol(name: &CStr) -> *const c_void {
    let program = PROGRAM.load(Ordering::Relaxed);
    if program.is_null() {
        return first(name);
    }
    let found = objects(program).find_map(|object| {
        // SAFETY: objects loaded with the program are never unloaded.
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
    /// The address of a table. glibc replaces the file's offset by the address, musl does not.
    fn table(&self, value: usize) -> usize {
        if value < self.base { value + self.base } else { value }
    }

    /// True if the object, which was loaded with the program, defines `name`.
    fn has(&self, name: &CStr) -> bool {
        // SAFETY: objects loaded with the program are never unloaded.
        unsafe { self.symbol(name) }.is_some()
    }

    /// The address of the function `name` that the object defines.
    ///
    /// # Safety
    /// The object is loaded.
    unsafe fn find(&self, name: &CStr) -> Option<*const c_void> {
        // SAFETY: the object is loaded, by the `# Safety` section, and defines the symbol.
        unsafe { self.symbol(name).and_then(|symbol| self.address(symbol)) }
    }

    /// # Safety
    /// The object is loaded.
    unsafe fn symbol(&self, name: &CStr) -> Option<&'static Elf64_Sym> {
        let (mut texts, mut symbols, mut hashes, mut versions) = (0, 0, 0, 0);
        let mut entry = self.dynamic;
        // SAFETY: the object is loaded (`# Safety`), and its dynamic section ends with DT_NULL.
        while let Some(&[tag, value]) = unsafe { entry.as_ref() }.filter(|entry| entry[0] != DT_NULL) {
            match tag {
                DT_STRTAB => texts = self.table(value),
                DT_SYMTAB => symbols = self.table(value),
                DT_GNU_HASH => hashes = self.table(value),
                DT_VERSYM => versions = self.table(value),
                _ => {}
            }
            // SAFETY: the entry just read is not DT_NULL, so another one follows.
            entry = unsafe { entry.add(1) };
        }
        if texts == 0 || symbols == 0 || hashes == 0 {
            return None;
        }
        let wanted = hash(name);
        // SAFETY: the loaded object's tables have the formats of ELF: the hash table is a header, a filter,
        // buckets, and chains that end with an odd hash.
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

    /// The address of the function that `symbol` stands for.
    ///
    /// # Safety
    /// The object defines `symbol`.
    unsafe fn address(&self, symbol: &Elf64_Sym) -> Option<*const c_void> {
        let address = self.base + symbol.st_value as usize;
        match symbol.st_info & 15 {
            STT_FUNC => Some(address as *const c_void),
            STT_GNU_IFUNC => {
                // SAFETY: a symbol of this kind is a function without arguments that returns an address. Its
                // object is relocated before programs run.
                let choose =
                    unsafe { core::mem::transmute::<usize, extern "C" fn() -> *const c_void>(address) };
                Some(choose())
            }
            _ => None,
        }
    }
}
