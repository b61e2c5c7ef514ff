//! Parsers of a process's mappings: the lines of `/proc/PID/maps`, and those of `smaps` and `smaps_rollup`,
//! which add sizes.
//!
//! ```text
//! 7f10-7f20 r-xp 00001000 fe:00 77     /usr/lib/x.so      a line of maps: [`Mapping`]
//! Rss:     100 kB                                         its sizes, in smaps only: [`Sizes`]
//! VmFlags: rd ex mr
//! ```
//!
//! The `smaps` of a large process has megabytes, so its lines are parsed in place, as bytes.

use crate::Bytes;

/// One mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping<'t> {
    /// Its first address.
    pub start: u64,
    /// The address behind it; never below `start`.
    pub end: u64,
    /// `rwxp`, or `s` at the end where writes are shared.
    pub rights: &'t [u8],
    /// Its offset in the file, in bytes.
    pub offset: u64,
    /// The file's device and inode; `00:00 0` for anonymous memory.
    pub device: &'t [u8],
    /// The file's inode; `0` for anonymous memory.
    pub inode: &'t [u8],
    /// The file's path, the kernel's name such as `[heap]`, or nothing.
    pub path: &'t [u8],
}

impl<'t> Mapping<'t> {
    /// The mapping in a line of `maps`; `None` of any other line.
    pub fn parse(line: &'t [u8]) -> Option<Mapping<'t>> {
        let mut words = line.splitn(6, |byte| *byte == b' ');
        let range = words.next()?;
        let dash = range.iter().position(|byte| *byte == b'-')?;
        let (start, end) = (hexadecimal(&range[..dash])?, hexadecimal(&range[dash + 1..])?);
        let (rights, offset, device, inode) =
            (words.next()?, hexadecimal(words.next()?)?, words.next()?, words.next()?);
        let path = words.next().unwrap_or_default().trim_ascii();
        (start <= end).then_some(Mapping { start, end, rights, offset, device, inode, path })
    }

    /// True if writes stay within the process.
    pub fn is_private(&self) -> bool {
        self.rights.ends_with(b"p")
    }

    /// True if it is of a file.
    pub fn is_of_file(&self) -> bool {
        self.inode != b"0"
    }

    /// True if the kernel maps it into every process: `[vdso]`, `[vvar]`, `[vsyscall]`.
    pub fn is_kernels(&self) -> bool {
        self.path.starts_with(b"[v")
    }
}

/// The mappings in the text of `maps`, in order of their addresses.
pub fn mappings(maps: &[u8]) -> impl Iterator<Item = Mapping<'_>> {
    maps.split(|byte| *byte == b'\n').filter_map(Mapping::parse)
}

/// A mapping's sizes in `smaps`, or those of all mappings in `smaps_rollup`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// With page frames.
    pub resident: Bytes,
    /// With each page divided by the number of processes that have mapped it.
    pub proportional: Bytes,
    /// Accessed since the bits were cleared.
    pub referenced: Bytes,
    /// The part that other processes have mapped too.
    pub shared: Bytes,
    /// In huge pages.
    pub huge: Bytes,
    /// In swap.
    pub swapped: Bytes,
    /// True if it cannot be paged out: locked, of reserved huge pages or page frames, or a device's.
    pub is_fixed: bool,
}

/// The mappings in the text of `smaps` or `smaps_rollup`, with their sizes.
pub fn smaps(text: &[u8]) -> impl Iterator<Item = (Mapping<'_>, Sizes)> {
    let mut lines = text.split(|byte| *byte == b'\n').peekable();
    std::iter::from_fn(move || {
        let mapping = lines.by_ref().find_map(Mapping::parse)?;
        let mut sizes = Sizes::default();
        // Names of sizes begin with a capital, mappings with an address.
        while let Some(line) = lines.next_if(|line| line.first().is_none_or(u8::is_ascii_uppercase)) {
            let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
            let (name, value) = (&line[..colon], &line[colon + 1..]);
            let place = match name {
                b"Rss" => &mut sizes.resident,
                b"Pss" => &mut sizes.proportional,
                b"Referenced" => &mut sizes.referenced,
                b"Shared_Clean" | b"Shared_Dirty" => &mut sizes.shared,
                b"AnonHugePages" | b"ShmemPmdMapped" | b"FilePmdMapped" => &mut sizes.huge,
                b"Swap" => &mut sizes.swapped,
                b"VmFlags" => {
                    let mut flags = value.split(|byte| *byte == b' ');
                    sizes.is_fixed =
                        flags.any(|flag| [b"lo", b"ht", b"pf", b"io"].iter().any(|no| flag == *no));
                    continue;
                }
                _ => continue,
            };
            *place += Bytes::from_kib(vellum_sys::text::number(value).unwrap_or(0));
        }
        Some((mapping, sizes))
    })
}

fn hexadecimal(digits: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_maps_are_read() {
        let line: &[u8] =
            b"7f2c4000-7f2c9000 r-xp 00026000 fd:01 1234                       /usr/lib/with space/libc.so.6";
        let found = Mapping::parse(line).unwrap();
        assert_eq!((found.start, found.end, found.offset), (0x7f2c_4000, 0x7f2c_9000, 0x26000));
        assert_eq!((found.rights, found.device, found.inode), (&b"r-xp"[..], &b"fd:01"[..], &b"1234"[..]));
        assert_eq!(found.path, b"/usr/lib/with space/libc.so.6");
        assert!(found.is_private() && found.is_of_file() && !found.is_kernels());
        let vdso = Mapping::parse(b"7ffd000-7ffe000 r-xp 00000000 00:00 0 [vdso]").unwrap();
        assert!(vdso.is_kernels() && !vdso.is_of_file());
        assert_eq!(Mapping::parse(b"7ffd000-7ffe000 rwxp 00000000 00:00 0 \n").unwrap().path, b"");
        for wrong in [&b"nonsense"[..], b"", b"-", b"9-8 rw-p 0 00:00 0", b"Rss: 4 kB", b"1000-2000 rw-p"] {
            assert_eq!(Mapping::parse(wrong), None);
        }
    }

    #[test]
    fn sizes_are_those_of_the_mapping_above() {
        let text = b"7f00-7f10 rw-p 00000000 00:00 0 \nSize: 64 kB\nRss:  40 kB\nShared_Clean: 1 kB\nShared_Dirty: 2 kB\nVmFlags: rd wr mr\n\
            7f30-7f40 rw-p 00000000 00:00 0                 [heap]\nRss: 64 kB\nPss: 9 kB\nSwap: 3 kB\nVmFlags: rd wr lo\n7f50-7f60 rw-s 0 00:01 9 /dev/shm/a b: c\n";
        let found: Vec<_> = smaps(text).collect();
        let kib = Bytes::from_kib;
        assert_eq!(found[0].1, Sizes { resident: kib(40), shared: kib(3), ..Sizes::default() });
        assert_eq!((found[1].0.path, found[1].1.is_fixed), (&b"[heap]"[..], true));
        assert_eq!((found[1].1.proportional, found[1].1.swapped), (kib(9), kib(3)));
        assert_eq!((found.len(), found[2].1), (3, Sizes::default()));
        assert_eq!(smaps(b"nonsense\n:::\n-\n").count(), 0);
    }
}
