//! What of a module is mapped where, by its program headers.
//!
//! The loader (`crate::loader`) says where the part of a module begins that an address lies in. That is the
//! whole module, which begins with its file's head, or, where the linker left holes between parts (as in some
//! programs at fixed addresses), the part alone. The program's own headers are then where the kernel says.

use crate::pagemap::PageMap;
use crate::{PAGE, map, round_down, round_up};
use core::slice;

/// The bytes from `address` to the end of the loaded part that it lies in; `None` if it lies in none, or the
/// headers are not to be found.
///
/// # Safety
/// The loader says `start` and `bias` (what is added to the file's addresses) of a module that stays mapped
/// as long as the result is used.
#[must_use]
pub unsafe fn mapped_from(start: usize, bias: usize, address: usize) -> Option<&'static [u8]> {
    // SAFETY: passed on.
    let segment = holding(unsafe { headers(start, bias) }?, bias, address)?;
    let length = bias + segment.p_vaddr as usize + segment.p_filesz as usize - address;
    // SAFETY: within a part that is mapped, of a module that is.
    Some(unsafe { slice::from_raw_parts(address as *const u8, length) })
}

/// Takes the whole pages from `address` to the end of the part that it lies in out of resident memory, if the
/// part is one that is only read, and was: a later reader has the file's bytes. A part whose pages a loader
/// has relocated, or that something else was mapped over, stays as it is.
///
/// # Safety
/// As for [`mapped_from`].
pub unsafe fn put_back(start: usize, bias: usize, address: usize) {
    // SAFETY: passed on.
    let Some(segment) = (unsafe { headers(start, bias) }).and_then(|headers| holding(headers, bias, address))
    else {
        return;
    };
    let end = round_down(bias + segment.p_vaddr as usize + segment.p_filesz as usize, PAGE);
    let from = round_up(address, PAGE);
    if segment.p_flags & libc::PF_W == 0 && from < end && is_the_files(from, end) == Ok(true) {
        // SAFETY: pages of a file that nobody has written: they come back as they were.
        let _ = unsafe { map::flush(from, end - from) };
    }
}

/// Whether all pages of a range that are there are a file's own.
fn is_the_files(from: usize, end: usize) -> rustix::io::Result<bool> {
    let mut are_files = true;
    PageMap::open()?.look(from, end, |_, entry| {
        are_files = !entry.is_there() || entry.is_files();
        are_files
    })?;
    Ok(are_files)
}

/// The headers of the module with such a part.
///
/// # Safety
/// As for [`mapped_from`].
unsafe fn headers(start: usize, bias: usize) -> Option<&'static [libc::Elf64_Phdr]> {
    // SAFETY: passed on.
    let own = unsafe { headers_at(start) };
    own.or_else(|| headers_of_program().filter(|headers| holding(headers, bias, start).is_some()))
}

/// The part that an address lies in, as far as the file has it.
fn holding(headers: &[libc::Elf64_Phdr], bias: usize, address: usize) -> Option<&libc::Elf64_Phdr> {
    headers.iter().find(|header| {
        header.p_type == libc::PT_LOAD
            && address.wrapping_sub(bias + header.p_vaddr as usize) < header.p_filesz as usize
    })
}

/// The headers of a module that begins there, if one does.
///
/// # Safety
/// A page is mapped there and can be read, and what begins there is a module's head if it looks like one.
unsafe fn headers_at(start: usize) -> Option<&'static [libc::Elf64_Phdr]> {
    // SAFETY: shorter than a page, of which all values are numbers.
    let head = unsafe { &*(start as *const libc::Elf64_Ehdr) };
    let is_head =
        head.e_ident[..4] == *b"\x7fELF" && usize::from(head.e_phentsize) == size_of::<libc::Elf64_Phdr>();
    // SAFETY: the loader has read the program headers from here.
    is_head.then(|| unsafe {
        slice::from_raw_parts((start + head.e_phoff as usize) as *const _, usize::from(head.e_phnum))
    })
}

fn headers_of_program() -> Option<&'static [libc::Elf64_Phdr]> {
    // SAFETY: plain calls.
    let [at, size, count] =
        unsafe { [libc::AT_PHDR, libc::AT_PHENT, libc::AT_PHNUM].map(|name| libc::getauxval(name) as usize) };
    let is_there = at != 0 && size == size_of::<libc::Elf64_Phdr>();
    // SAFETY: the kernel mapped them there for the loader, as a part of the program, which stays.
    is_there.then(|| unsafe { slice::from_raw_parts(at as *const _, count) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ptr::null_mut;
    use rustix::fs::{Mode, OFlags};
    use rustix::mm::{MapFlags, ProtFlags, mmap};

    #[test]
    fn pages_that_were_written_are_not_the_files() {
        let file = rustix::fs::open(c"/proc/self/exe", OFlags::RDONLY, Mode::empty()).unwrap();
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping wherever the kernel likes, of a file that is longer.
        let start =
            unsafe { mmap(null_mut(), 4 * PAGE, access, MapFlags::PRIVATE, &file, 0) }.unwrap() as usize;
        // SAFETY: mapped just now.
        unsafe { ((start + PAGE) as *const u8).read_volatile() };
        match is_the_files(start, start + 4 * PAGE) {
            Ok(is_it) => assert!(is_it),
            Err(error) => return vellum_skip::skip(format_args!("no /proc/self/pagemap: {error}")),
        }
        // SAFETY: as above, and written by nobody else.
        unsafe { ((start + 2 * PAGE) as *mut u8).write_volatile(1) };
        assert_eq!(is_the_files(start, start + 4 * PAGE), Ok(false));
        assert_eq!(is_the_files(start, start + 2 * PAGE), Ok(true));
    }

    #[test]
    fn parts_of_this_program_are_found_from_its_head_and_from_within() {
        let headers = headers_of_program().expect("the kernel tells");
        let table = headers.iter().find(|header| header.p_type == libc::PT_PHDR).expect("linkers make one");
        let bias = headers.as_ptr() as usize - table.p_vaddr as usize;
        let loaded = |header: &&libc::Elf64_Phdr| header.p_type == libc::PT_LOAD;
        let first = headers.iter().find(loaded).expect("something is loaded");
        let code = parts_of_this_program_are_found_from_its_head_and_from_within as *const () as usize;
        let part = holding(headers, bias, code).expect("this code is loaded");
        for from in [first, part] {
            let start = (bias + from.p_vaddr as usize) & !(crate::PAGE - 1);
            // SAFETY: this program's own, which stays.
            let found = unsafe { mapped_from(start.max(bias + from.p_vaddr as usize), bias, code) };
            let end = bias + part.p_vaddr as usize + part.p_filesz as usize;
            assert_eq!(found.map(|bytes| bytes.as_ptr_range().end as usize), Some(end));
            // SAFETY: as above.
            assert_eq!(unsafe { mapped_from(start, bias, end + (1 << 40)) }.map(<[u8]>::len), None);
        }
    }
}
