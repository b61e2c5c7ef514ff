//! The mappings of this process with their kinds and resident bytes, from `/proc/self/smaps`.
//!
//! ```text
//! 7f00-7f10 rw-p 00000000 00:00 0   [stack]      a mapping begins
//! Rss:                 132 kB                    its sizes, one in each line
//! ```

use crate::text::number;
use crate::{Addr, Span};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// A mapping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mapping {
    /// Its addresses.
    pub span: Span,
    /// Its kind, by its first line.
    pub what: What,
    /// Bytes that are resident.
    pub resident: u64,
    /// Marked bytes among these, which the kernel may take.
    pub marked: u64,
}

/// The kind of a mapping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum What {
    /// Memory of the process's own.
    #[default]
    Anonymous,
    /// Address space that nobody may touch.
    Guard,
    /// The first thread's stack.
    Stack,
    /// The kernel's own, as `[vdso]`.
    Kernels,
    /// A library, or the program if its path was passed.
    Code,
    /// Memory that is shared, whether it has a name or not.
    Shared,
    /// Another file.
    File,
}

/// Calls `see` with each mapping, in the order of addresses; `program` is the path of the program's file.
/// Lines that are longer than `buffer` end it.
pub fn for_each(buffer: &mut [u8], program: &[u8], mut see: impl FnMut(&Mapping)) -> Result<(), Errno> {
    let file: OwnedFd =
        rustix::fs::open(c"/proc/self/smaps", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut reader = Reader::default();
    let mut filled = 0;
    loop {
        let read = match rustix::io::read(&file, &mut buffer[filled..]) {
            Err(Errno::INTR) => continue,
            outcome => outcome?,
        };
        filled += read;
        let whole = buffer[..filled].iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        for line in buffer[..whole].split(|&byte| byte == b'\n') {
            if let Some(mapping) = reader.line(line, program) {
                see(&mapping);
            }
        }
        buffer.copy_within(whole..filled, 0);
        filled -= whole;
        if read == 0 || filled == buffer.len() {
            break;
        }
    }
    reader.under_way.iter().for_each(see);
    Ok(())
}

/// Takes lines, and has a mapping when the next one begins.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    under_way: Option<Mapping>,
}

impl Reader {
    pub(crate) fn line(&mut self, line: &[u8], program: &[u8]) -> Option<Mapping> {
        if let Some(begun) = beginning(line, program) {
            return self.under_way.replace(begun);
        }
        let mapping = self.under_way.as_mut()?;
        let figure =
            |name: &[u8]| line.strip_prefix(name).and_then(number).map(|kib| kib.saturating_mul(1024));
        if let Some(resident) = figure(b"Rss:") {
            mapping.resident = resident;
        } else if let Some(marked) = figure(b"LazyFree:") {
            mapping.marked = marked;
        }
        None
    }
}

/// The mapping that a line begins, if it does.
fn beginning(line: &[u8], program: &[u8]) -> Option<Mapping> {
    let mut words = line.split(|&byte| byte == b' ').filter(|word| !word.is_empty());
    let range = words.next()?;
    let dash = range.iter().position(|&byte| byte == b'-')?;
    let (start, end) = (hexadecimal(&range[..dash])?, hexadecimal(&range[dash + 1..])?);
    let access = words.next()?;
    // Offset, device and inode come before the path, in which there may be blanks.
    let path = words.nth(3).map_or(&b""[..], |word| {
        let at = word.as_ptr() as usize - line.as_ptr() as usize;
        &line[at..]
    });
    let span = Span::between(Addr::new(start), Addr::new(end));
    Some(Mapping { span, what: what(access, path, program), resident: 0, marked: 0 })
}

fn what(access: &[u8], path: &[u8], program: &[u8]) -> What {
    let is_shared = [&b"/dev/shm/"[..], b"/memfd:", b"/dev/zero", b"/SYSV"];
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
    if access.starts_with(b"---") && path.is_empty() {
        What::Guard
    } else if path == b"[stack]" {
        What::Stack
    } else if path == b"[heap]" || path.starts_with(b"[anon") || path.is_empty() {
        if access.ends_with(b"s") { What::Shared } else { What::Anonymous }
    } else if path.starts_with(b"[") {
        What::Kernels
    } else if is_shared.iter().any(|prefix| path.starts_with(prefix)) {
        What::Shared
    } else if name.windows(3).any(|window| window == b".so") || path == program {
        What::Code
    } else {
        What::File
    }
}

fn hexadecimal(digits: &[u8]) -> Option<usize> {
    let value = |value: usize, digit: &u8| {
        let digit = (*digit as char).to_digit(16)? as usize;
        value.checked_mul(16)?.checked_add(digit)
    };
    (!digits.is_empty()).then(|| digits.iter().try_fold(0, value)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PAGE, map};

    const TEXT: &[u8] = b"5500-5600 r-xp 00000000 fe:00 12  /opt/a b/prog\n\
        Size:   4 kB\nRss:    8 kB\nLazyFree:   0 kB\n\
        7f00-7f10 ---p 00000000 00:00 0 \nRss:  0 kB\n\
        7f10-7f20 rw-p 00000000 00:00 0 \nRss:  12 kB\nLazyFree:   4 kB\n\
        7f20-7f30 rw-s 00000000 00:01 7  /memfd:x (deleted)\nRss:  16 kB\n\
        7f30-7f40 r--p 00000000 fe:00 13  /usr/lib/libc.so.6\nRss:  20 kB\n\
        7f40-7f50 rw-p 00000000 00:00 0   [stack]\nRss:  24 kB\nVmFlags: rd wr\n";

    #[test]
    fn mappings_are_read() {
        let mut reader = Reader::default();
        let mut lines = TEXT.split(|&byte| byte == b'\n');
        let mut seen: std::vec::Vec<Mapping> =
            lines.by_ref().filter_map(|line| reader.line(line, b"/opt/a b/prog")).collect();
        seen.extend(reader.under_way);
        let whats: std::vec::Vec<_> =
            seen.iter().map(|mapping| (mapping.what, mapping.resident >> 10)).collect();
        let wanted = [
            (What::Code, 8),
            (What::Guard, 0),
            (What::Anonymous, 12),
            (What::Shared, 16),
            (What::Code, 20),
            (What::Stack, 24),
        ];
        assert_eq!(whats, wanted);
        assert_eq!((seen[2].span, seen[2].marked), (Span::new(Addr::new(0x7f10), 0x10), 4096));
    }

    #[test]
    fn nothing_is_made_of_lines_that_mean_nothing() {
        let mut reader = Reader::default();
        for line in [&b""[..], b"-", b"7f00-", b"Rss: 12 kB", b"zz-1 r", b"1-2", b"fffffffffffffffffff-1 r"] {
            assert_eq!(reader.line(line, b""), None);
        }
        assert_eq!(reader.under_way, None);
    }

    #[test]
    fn pages_that_were_touched_are_resident() {
        let span = map::reserve_writable(8 * PAGE).expect("eight pages");
        for page in [1, 4] {
            // SAFETY: within the span just mapped.
            unsafe { (span.start + page * PAGE).ptr::<u8>().write_volatile(1) };
        }
        let mut pages = [0; 8];
        map::mincore(span.start, &mut pages).expect("mapped");
        assert_eq!(pages.map(|page| page & 1), [0, 1, 0, 0, 1, 0, 0, 0]);
        // SAFETY: mapped by this test, which uses it no more.
        unsafe { map::release(span) }.expect("released");
        assert_eq!(map::mincore(Addr::new(PAGE), &mut pages), Err(Errno::NOMEM));
    }

    #[test]
    fn our_own_are_found_with_a_short_buffer() {
        let (mut count, mut resident, mut last) = (0, 0, Addr::NULL);
        let mut buffer = [0; 4500];
        for_each(&mut buffer, b"", |mapping| {
            assert!(mapping.span.start >= last && !mapping.span.is_empty());
            last = mapping.span.end();
            count += 1;
            resident += mapping.resident;
        })
        .expect("smaps");
        assert!(count > 5 && resident > 100_000, "{count} mappings, {resident} bytes");
    }
}
