//! Finds the mapped bytes of a module's segment (a part of its file, mapped as one), by its program headers.
//!
//! For an address, the loader (`crate::loader`) usually reports the start of the whole module, where its
//! file's header lies. In modules with holes between the segments (some programs at fixed addresses) the
//! loader reports only the start of the segment. The kernel's copy of the program's headers is used then.

use crate::pagemap::PageMap;
use crate::{Addr, PAGE, Span, map};
use core::slice;

/// The bytes from `address` to the end of its loaded part; `None` without such a part or headers.
///
/// # Safety
/// The loader reported `start` and `bias` (the difference from the file's addresses) of a module that stays
/// mapped as long as the result is used.
#[must_use]
pub unsafe fn mapped_from(start: Addr, bias: usize, address: Addr) -> Option<&'static [u8]> {
    // SAFETY: `# Safety` of this function is that of `headers`.
    let (_, part) = part_at(unsafe { headers(start, bias) }?, bias, address)?;
    // SAFETY: within a part that is mapped, of a module that stays mapped (`# Safety`).
    Some(unsafe { slice::from_raw_parts(address.ptr(), part.from(address).bytes) })
}

/// Drops the whole pages from `address` to the end of its part from resident memory, if the part is and
/// always was read-only: a later reader gets the file's bytes. A part whose pages a loader has relocated, or
/// with another mapping over it, stays as it is.
///
/// # Safety
/// The conditions of [`mapped_from`].
pub unsafe fn put_back(start: Addr, bias: usize, address: Addr) {
    // SAFETY: `# Safety` of this function is that of `headers`.
    let Some(headers) = (unsafe { headers(start, bias) }) else { return };
    let Some((segment, part)) = part_at(headers, bias, address) else { return };
    let pages = part.from(address).whole(PAGE);
    if segment.p_flags & libc::PF_W == 0 && !pages.is_empty() && is_the_files(pages) == Ok(true) {
        // SAFETY: pages of a file that nobody has written: they come back as they were.
        let _ = unsafe { map::flush(pages) };
    }
}

/// True if all of these pages that are there are a file's own.
fn is_the_files(pages: Span) -> rustix::io::Result<bool> {
    let mut are_files = true;
    PageMap::open()?.for_each(pages, |_, entry| {
        are_files = !entry.is_there() || entry.is_files();
        are_files
    })?;
    Ok(are_files)
}

/// The headers of the module with such a part.
///
/// # Safety
/// The conditions of [`mapped_from`].
unsafe fn headers(start: Addr, bias: usize) -> Option<&'static [libc::Elf64_Phdr]> {
    // SAFETY: `start` is where the loader has a module begin (`# Safety`), so its first page can be read.
    let own = unsafe { headers_at(start) };
    own.or_else(|| headers_of_program().filter(|headers| part_at(headers, bias, start).is_some()))
}

/// The part that an address lies in, without memory behind the file's: its header and its addresses.
fn part_at(headers: &[libc::Elf64_Phdr], bias: usize, address: Addr) -> Option<(&libc::Elf64_Phdr, Span)> {
    let loaded = headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
    loaded
        .map(|header| {
            (header, Span::new(Addr::new(bias + header.p_vaddr as usize), header.p_filesz as usize))
        })
        .find(|(_, part)| part.contains(address))
}

/// The headers of a module that begins there, if one does.
///
/// # Safety
/// A page is mapped there and can be read, and what begins there is a module's head if it looks like one.
unsafe fn headers_at(start: Addr) -> Option<&'static [libc::Elf64_Phdr]> {
    // SAFETY: shorter than a page, of which all values are numbers.
    let head = unsafe { &*start.ptr::<libc::Elf64_Ehdr>() };
    let is_head =
        head.e_ident[..4] == *b"\x7fELF" && usize::from(head.e_phentsize) == size_of::<libc::Elf64_Phdr>();
    // SAFETY: the loader has read the program headers from here.
    is_head.then(|| unsafe {
        slice::from_raw_parts((start + head.e_phoff as usize).ptr(), usize::from(head.e_phnum))
    })
}

fn headers_of_program() -> Option<&'static [libc::Elf64_Phdr]> {
    // SAFETY: `getauxval` takes a number and reads the kernel's vector, which stays.
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
        let start = unsafe { mmap(null_mut(), 4 * PAGE, access, MapFlags::PRIVATE, &file, 0) }.unwrap();
        let pages = Span::new(Addr::of(start), 4 * PAGE);
        // SAFETY: mapped just now.
        unsafe { (pages.start + PAGE).ptr::<u8>().read_volatile() };
        match is_the_files(pages) {
            Ok(is_it) => assert!(is_it),
            Err(error) => return vellum_skip::skip(format_args!("no /proc/self/pagemap: {error}")),
        }
        // SAFETY: a private page that this test has mapped, readable and writable.
        unsafe { (pages.start + 2 * PAGE).ptr::<u8>().write_volatile(1) };
        assert_eq!(is_the_files(pages), Ok(false));
        assert_eq!(is_the_files(pages.split_at(2 * PAGE)[0]), Ok(true));
    }

    #[test]
    fn parts_of_this_program_are_found_from_its_head_and_from_within() {
        let headers = headers_of_program().expect("the kernel tells");
        let table = headers.iter().find(|header| header.p_type == libc::PT_PHDR).expect("linkers make one");
        let bias = headers.as_ptr() as usize - table.p_vaddr as usize;
        let loaded = |header: &&libc::Elf64_Phdr| header.p_type == libc::PT_LOAD;
        let first = headers.iter().find(loaded).expect("something is loaded");
        let code =
            Addr::of(parts_of_this_program_are_found_from_its_head_and_from_within as *const () as *const u8);
        let (header, part) = part_at(headers, bias, code).expect("this code is loaded");
        for from in [first, header] {
            let start = Addr::new(bias + from.p_vaddr as usize);
            // SAFETY: this program's own, which stays.
            let found = unsafe { mapped_from(start, bias, code) };
            assert_eq!(found.map(|bytes| Addr::of(bytes.as_ptr_range().end)), Some(part.end()));
            // SAFETY: this program's own, which stays.
            let beyond = unsafe { mapped_from(start.round_down(PAGE), bias, part.end() + (1 << 40)) };
            assert_eq!(beyond.map(<[u8]>::len), None);
        }
    }
}
