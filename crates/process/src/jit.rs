//! Reads names of the code that just-in-time compilers generate, from the list that the compilers write
//! for profilers: `/tmp/perf-PID.map`.
//!
//! ```text
//! 7f00a1b2c000 1f4 LazyCompile:*render /srv/page.js:12         start and bytes in hexadecimal, name
//! ```
//!
//! Node (`--perf-basic-prof`), CPython (`-X perf`), Java (by an agent) and others write such a list, which
//! grows while they run. Of two entries for an address, the later one is valid.
//!
//! Source: the kernel's `tools/perf/Documentation/jit-interface.txt`.

use std::collections::BTreeMap;
use std::fs::{Metadata, OpenOptions};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Bytes of a list that are read.
const BYTES_MAX: u64 = 1 << 26;
const NAME_MAX: usize = 200;

/// The list that process wrote, if it is there.
pub fn jit_map(pid: u32) -> Option<PathBuf> {
    let path = PathBuf::from(format!("/tmp/perf-{pid}.map"));
    path.symlink_metadata().is_ok_and(|meta| is_trusted(&meta)).then_some(path)
}

/// True if the file belongs to this user or root, because anybody can put files there. Root reads
/// everybody's.
fn is_trusted(meta: &Metadata) -> bool {
    let user = rustix::process::geteuid();
    meta.is_file() && (user.is_root() || [0, user.as_raw()].contains(&meta.uid()))
}

/// True if a path has the form of such a list's.
pub fn is_jit_map(path: &Path) -> bool {
    let pid = || path.file_name()?.to_str()?.strip_prefix("perf-")?.strip_suffix(".map");
    path.parent() == Some(Path::new("/tmp")) && pid().is_some_and(|pid| pid.parse::<u32>().is_ok())
}

#[derive(Debug, Default)]
pub(crate) struct JitMap {
    functions: BTreeMap<u64, (u64, String)>,
}

impl JitMap {
    pub(crate) fn open(path: &Path) -> JitMap {
        // Another file may be there by now, such as a pipe that would be waited for.
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok();
        let file = file.filter(|file| file.metadata().is_ok_and(|meta| is_trusted(&meta)));
        file.map_or_else(JitMap::default, |file| JitMap::read(BufReader::new(file.take(BYTES_MAX))))
    }

    fn read(lines: impl BufRead) -> JitMap {
        let mut functions: BTreeMap<u64, (u64, String)> = BTreeMap::new();
        for line in lines.split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line);
            let mut words = line.splitn(3, ' ');
            let mut number = || u64::from_str_radix(words.next()?.trim_start_matches("0x"), 16).ok();
            let (Some(start), Some(bytes)) = (number(), number()) else { continue };
            let Some(name) = words.next().map(str::trim).filter(|name| !name.is_empty()) else { continue };
            // Other code that was there before is gone.
            while let Some((&old, _)) = functions.range(start..start.saturating_add(bytes)).next() {
                functions.remove(&old);
            }
            if let Some((&before, (length, _))) = functions.range_mut(..start).next_back() {
                *length = (*length).min(start - before);
            }
            functions.insert(start, (bytes, name.chars().take(NAME_MAX).collect()));
        }
        JitMap { functions }
    }

    pub(crate) fn name(&self, address: u64) -> Option<&str> {
        let (start, (bytes, name)) = self.functions.range(..=address).next_back()?;
        (address - start < *bytes).then_some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_later_entries_hold() {
        let list =
            "1000 20 old\n1000 10 LazyCompile:*f /a b.js:1\n0x2000 8 py::g:/x.py\nnonsense\n30 zz q\n40 1\n";
        let map = JitMap::read(list.as_bytes());
        let named = |address| map.name(address);
        assert_eq!(named(0x1000), Some("LazyCompile:*f /a b.js:1"));
        assert_eq!((named(0x100f), named(0x1010)), (Some("LazyCompile:*f /a b.js:1"), None));
        let reused = JitMap::read("1000 80 old\nf80 100 new\n1040 10 newer\n".as_bytes());
        let named_then = [0xf80, 0x103f, 0x1040, 0x1060].map(|address| reused.name(address));
        assert_eq!(named_then, [Some("new"), Some("new"), Some("newer"), None]);
        assert_eq!((named(0x2007), named(0xfff), named(0x40)), (Some("py::g:/x.py"), None, None));
        assert!(JitMap::open(Path::new("/nowhere")).functions.is_empty());
    }

    #[test]
    fn only_lists_of_processes_are_lists() {
        assert!(is_jit_map(Path::new("/tmp/perf-77.map")));
        for other in ["/tmp/perf-x.map", "/home/perf-77.map", "/tmp/perf-77.so", "/tmp/perf-.map"] {
            assert!(!is_jit_map(Path::new(other)), "{other}");
        }
        assert_eq!(jit_map(u32::MAX), None);
    }
}
