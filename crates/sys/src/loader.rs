//! Finds the module (the program or one of its libraries) that contains an address, in the loader's records.
//!
//! glibc's `_dl_find_object` (2.35) takes no lock and may be called in a signal handler. Where the C library
//! has no such call (older glibc, musl), `dl_iterate_phdr` visits all modules under the loader's lock. A
//! thread must not call it with a lock that a thread in the loader may need. A process that was forked while
//! another thread was in the loader may wait there for ever; glibc has the same problem with exceptions.

use crate::{Addr, PAGE, round_down, round_up, segment};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::{MaybeUninit, transmute};
use core::ptr::null_mut;
use core::slice;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use libc::{Elf64_Phdr, dl_phdr_info};

/// The function to look for.
pub const FIND: &CStr = c"_dl_find_object";

static FOUND: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// A module, or the part of a program that the address lies in where it has holes between its parts.
#[derive(Clone, Copy, Debug)]
pub struct Module {
    /// From this address …
    pub start: u64,
    /// … to before this one.
    pub end: u64,
    /// The difference between loaded addresses and the file's own.
    pub bias: u64,
    /// The address of its dynamic section.
    pub dynamic: u64,
    /// The address of the index of its unwinding tables (`.eh_frame_hdr`); 0 for none.
    pub unwind_index: u64,
    name: *const c_char,
}

/// glibc's `struct dl_find_object`.
#[repr(C)]
struct Object {
    flags: u64,
    start: u64,
    end: u64,
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

/// Has modules found by `function` from now on, which is [`FIND`] or null.
pub fn find_by(function: *const c_void) {
    FOUND.store(function.cast_mut(), Relaxed);
}

/// The module that `address` lies in.
#[must_use]
pub fn module(address: u64) -> Option<Module> {
    let function = FOUND.load(Relaxed);
    if function.is_null() { by_all(address) } else { by_loader(function, address) }
}

fn by_loader(function: *mut c_void, address: u64) -> Option<Module> {
    // SAFETY: the signature of glibc's function.
    let function =
        unsafe { transmute::<*mut c_void, unsafe extern "C" fn(u64, *mut Object) -> c_int>(function) };
    let mut object = MaybeUninit::<Object>::zeroed();
    // SAFETY: there is a place for the answer, which is all zeros or filled in.
    let object = unsafe { (function(address, object.as_mut_ptr()) == 0).then(|| object.assume_init()) }?;
    if object.link.is_null() {
        return None;
    }
    // SAFETY: the loader's record of a module that is mapped.
    let link = unsafe { &*object.link };
    Some(Module {
        start: object.start,
        end: object.end,
        bias: link.bias,
        dynamic: link.dynamic as u64,
        unwind_index: object.unwind_index as u64,
        name: link.name,
    })
}

struct Search {
    address: u64,
    program: *const Elf64_Phdr,
    found: Option<Module>,
}

fn by_all(address: u64) -> Option<Module> {
    // SAFETY: `getauxval` takes a number and reads the kernel's vector, which stays.
    let program = unsafe { libc::getauxval(libc::AT_PHDR) } as *const Elf64_Phdr;
    let mut search = Search { address, program, found: None };
    // SAFETY: the function has the right signature, and gets the search, which it alone uses meanwhile.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    search.found
}

/// # Safety
/// Called by `dl_iterate_phdr`, with a search.
unsafe extern "C" fn visit(info: *mut dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
    // SAFETY: the loader passes its record and the search of `by_all` (`# Safety`).
    let (info, search) = unsafe { (&*info, &mut *search.cast::<Search>()) };
    // SAFETY: the loader's record of a module's headers, which are mapped as long as the module is.
    let headers = unsafe { slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let (bias, address) = (info.dlpi_addr, search.address);
    let loaded = || headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
    if !loaded().any(|part| address.wrapping_sub(bias.wrapping_add(part.p_vaddr)) < part.p_memsz) {
        return 0;
    }
    // A library is mapped whole, its holes with it; in a program's there may be anything.
    let is_whole = info.dlpi_phdr != search.program;
    let (mut start, mut end) = (0, 0);
    for part in loaded() {
        let from = bias.wrapping_add(part.p_vaddr);
        if end == 0 || !is_whole && round_down(from as usize, PAGE) > round_up(end as usize, PAGE) {
            if (start..end).contains(&address) {
                break;
            }
            start = round_down(from as usize, PAGE) as u64;
        }
        end = from + part.p_memsz;
    }
    let at = |kind| {
        headers.iter().find(|header| header.p_type == kind).map(|header| bias.wrapping_add(header.p_vaddr))
    };
    search.found = Some(Module {
        start,
        end,
        bias,
        dynamic: at(libc::PT_DYNAMIC).unwrap_or(0),
        unwind_index: at(libc::PT_GNU_EH_FRAME).unwrap_or(0),
        name: info.dlpi_name,
    });
    1
}

impl Module {
    /// The name in the loader's record: a path, or nothing for the program (in glibc).
    #[must_use]
    pub fn name(&self) -> &CStr {
        // SAFETY: the loader's string, there as long as the module is mapped.
        if self.name.is_null() { c"" } else { unsafe { CStr::from_ptr(self.name) } }
    }

    /// The bytes from `address` to the end of the loaded part that it lies in.
    ///
    /// # Safety
    /// The module stays mapped as long as the result is used.
    #[must_use]
    pub unsafe fn mapped_from(&self, address: u64) -> Option<&'static [u8]> {
        let [start, address] = [self.start, address].map(|at| Addr::new(at as usize));
        // SAFETY: the loader reported where the module is, and it stays mapped (`# Safety`).
        unsafe { segment::mapped_from(start, self.bias as usize, address) }
    }

    /// Takes its unwinding tables out of resident memory: see [`segment::put_back`].
    ///
    /// # Safety
    /// The module is mapped.
    pub unsafe fn put_back_tables(&self) {
        if self.unwind_index != 0 {
            let [start, tables] = [self.start, self.unwind_index].map(|at| Addr::new(at as usize));
            // SAFETY: `# Safety` of this function: the module is mapped where the loader reported it.
            unsafe { segment::put_back(start, self.bias as usize, tables) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_find_the_same_modules() {
        // SAFETY: the name is a C string that lives through the call.
        let function = unsafe { libc::dlsym(libc::RTLD_DEFAULT, FIND.as_ptr()) };
        let own = both_ways_find_the_same_modules as *const () as u64;
        let found = by_all(own).expect("this code is loaded");
        assert!((found.start..found.end).contains(&own) && found.unwind_index != 0);
        assert_eq!(by_all(0x10).map(|module| module.start), None);
        if function.is_null() {
            return vellum_skip::skip("the C library has no _dl_find_object");
        }
        for address in [own, libc::malloc as *const () as u64, libc::dlsym as *const () as u64, 0x10] {
            let said = |module: Option<Module>| {
                let parts = |module: Module| {
                    (module.start, module.bias, module.dynamic, module.unwind_index, module.name().to_owned())
                };
                module.map(parts)
            };
            assert_eq!(said(by_all(address)), said(by_loader(function, address)), "{address:#x}");
        }
    }
}
