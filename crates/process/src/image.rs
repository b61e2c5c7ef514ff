//! Inspects a program's file, to find out if Vellum's library can be preloaded into it.
//!
//! The dynamic loader, glibc's or musl's, does the preloading. The possible obstacles are:
//!
//! ```text
//! file ─ "#!" ─▶ its interpreter, up to SCRIPT_DEPTH_MAX times
//!   └─ ELF ─┬─ other machine or word size ....... Foreign      the loader would complain on stderr
//!           ├─ no PT_INTERP ..................... Static       no dynamic loader runs
//!           ├─ needs or defines a sanitizer ..... Sanitizer    has its own malloc, and must be loaded first
//!           └─ setuid, setgid, capabilities ..... Privileged   the loader ignores LD_PRELOAD (see ld.so(8))
//! ```
//!
//! Only the needed parts of a file are read, as executables may have gigabytes.

use object::read::elf::{ElfFile, FileHeader, ProgramHeader};
use object::{Endianness, ReadCache, ReadRef, elf};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The most interpreters of interpreters that are followed.
pub const SCRIPT_DEPTH_MAX: usize = 4;
/// The kernel reads this much of a script's first line.
const SHEBANG_MAX: usize = 256;
const SANITIZERS: &[&[u8]] = &[b"__asan_init", b"__tsan_init", b"__msan_init", b"__hwasan_init"];
/// Sanitizers' shared runtimes, by how their names begin.
const SANITIZER_LIBRARIES: &[&[u8]] = &[
    b"libasan.so",
    b"libtsan.so",
    b"libhwasan.so",
    b"libclang_rt.asan",
    b"libclang_rt.tsan",
    b"libclang_rt.hwasan",
];

/// Why the library cannot be preloaded, or should not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Obstacle {
    /// Statically linked.
    Static,
    /// Raises its privileges when it starts.
    Privileged,
    /// Built with AddressSanitizer or one of its siblings.
    Sanitizer,
    /// For another machine or word size.
    Foreign,
}

impl Obstacle {
    /// The stable name used in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Obstacle::Static => "static",
            Obstacle::Privileged => "privileged",
            Obstacle::Sanitizer => "sanitizer",
            Obstacle::Foreign => "foreign",
        }
    }

    /// The reason in words, to follow "it is".
    pub const fn words(self) -> &'static str {
        match self {
            Obstacle::Static => "statically linked",
            Obstacle::Privileged => "setuid, setgid or given capabilities",
            Obstacle::Sanitizer => "built with a sanitizer",
            Obstacle::Foreign => "built for another machine",
        }
    }

    /// True if `LD_PRELOAD` must be left out of the program's environment. In the other cases it does no harm
    /// there and reaches the program's own children.
    pub const fn forbids_preload(self) -> bool {
        matches!(self, Obstacle::Sanitizer | Obstacle::Foreign)
    }
}

/// The result of an inspection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The file the kernel will map in the end: the program, or its script's interpreter.
    pub file: PathBuf,
    /// The obstacle to preloading, if there is one.
    pub obstacle: Option<Obstacle>,
}

impl Image {
    /// Inspects the program at `path`.
    pub fn inspect(path: &Path) -> io::Result<Image> {
        let mut path = path.to_path_buf();
        for _ in 0..=SCRIPT_DEPTH_MAX {
            let mut file = File::open(&path)?;
            let mut head = Vec::with_capacity(SHEBANG_MAX);
            (&mut file).take(SHEBANG_MAX as u64).read_to_end(&mut head)?;
            if let Some(interpreter) = shebang(&head) {
                path = interpreter;
                continue;
            }
            if !head.starts_with(&elf::ELFMAG) {
                // Run by /bin/sh, as execvp(3) has it.
                path = PathBuf::from("/bin/sh");
                continue;
            }
            file.seek(SeekFrom::Start(0))?;
            let raised = raises_privileges(&path, &file)?;
            let obstacle = look_into(file);
            let obstacle = obstacle.or(raised.then_some(Obstacle::Privileged));
            return Ok(Image { file: path, obstacle });
        }
        Err(io::Error::from_raw_os_error(libc::ELOOP))
    }
}

fn shebang(head: &[u8]) -> Option<PathBuf> {
    let line = head.strip_prefix(b"#!")?.split(|&b| b == b'\n').next()?;
    let path = line.split(|&b| b == b' ' || b == b'\t').find(|word| !word.is_empty())?;
    Some(PathBuf::from(std::ffi::OsStr::from_bytes(path)))
}

fn raises_privileges(path: &Path, file: &File) -> io::Result<bool> {
    let meta = file.metadata()?;
    let nosuid =
        rustix::fs::fstatvfs(file).is_ok_and(|fs| fs.f_flag.contains(rustix::fs::StatVfsMountFlags::NOSUID));
    if nosuid || rustix::thread::no_new_privs().unwrap_or(false) {
        return Ok(false);
    }
    let uid = rustix::process::getuid().as_raw();
    let setuid = meta.mode() & libc::S_ISUID != 0 && meta.uid() != uid;
    // Without the group's execute bit, the setgid bit means mandatory locking.
    let setgid_bits = libc::S_ISGID | libc::S_IXGRP;
    let setgid = meta.mode() & setgid_bits == setgid_bits && meta.gid() != rustix::process::getgid().as_raw();
    let mut value = [0u8; 64];
    // Root has every capability already, and gaining none is no raise.
    let capable = uid != 0 && rustix::fs::getxattr(path, c"security.capability", &mut value[..]).is_ok();
    Ok(setuid || setgid || capable)
}

/// The obstacle in a file, if there is one. A file that makes no sense has none.
fn look_into(file: File) -> Option<Obstacle> {
    let cache = ReadCache::new(file);
    let ident: [u8; 20] = cache.read_bytes_at(0, 20).ok()?.try_into().ok()?;
    let little = ident[5] == elf::ELFDATA2LSB.0;
    let machine = if little {
        u16::from_le_bytes([ident[18], ident[19]])
    } else {
        u16::from_be_bytes([ident[18], ident[19]])
    };
    let native = ident[4] == elf::ELFCLASS64.0 && little && machine == NATIVE_MACHINE;
    if !native {
        return Some(Obstacle::Foreign);
    }
    let file = ElfFile::<elf::FileHeader64<Endianness>, _>::parse(&cache).ok()?;
    dynamic_obstacle(&file)
}

#[cfg(target_arch = "x86_64")]
const NATIVE_MACHINE: u16 = 62;
#[cfg(target_arch = "aarch64")]
const NATIVE_MACHINE: u16 = 183;

fn dynamic_obstacle<'data, Elf, R>(file: &ElfFile<'data, Elf, R>) -> Option<Obstacle>
where
    Elf: FileHeader<Endian = Endianness>,
    R: ReadRef<'data>,
{
    let endian = file.endian();
    if !file.elf_program_headers().iter().any(|header| header.p_type(endian) == elf::PT_INTERP) {
        // The loader itself has no interpreter, and preloads when it is the program.
        let soname = dynamic_strings(file, elf::DT_SONAME).next();
        return (!soname.is_some_and(|name| name.starts_with(b"ld-linux"))).then_some(Obstacle::Static);
    }
    let needs = dynamic_strings(file, elf::DT_NEEDED)
        .any(|name| SANITIZER_LIBRARIES.iter().any(|library| name.starts_with(library)));
    let symbols = file.elf_dynamic_symbol_table();
    let defines = || {
        symbols
            .iter()
            .any(|symbol| symbols.symbol_name(endian, symbol).is_ok_and(|name| SANITIZERS.contains(&name)))
    };
    (needs || defines()).then_some(Obstacle::Sanitizer)
}

fn dynamic_strings<'data, Elf, R>(
    file: &ElfFile<'data, Elf, R>,
    tag: elf::DynamicTag,
) -> impl Iterator<Item = &'data [u8]>
where
    Elf: FileHeader<Endian = Endianness>,
    R: ReadRef<'data>,
{
    let table = file.elf_dynamic_table().unwrap_or_default();
    let entries: Vec<_> = table.iter().filter(|entry| entry.tag == tag).collect();
    entries.into_iter().filter_map(move |entry| table.string(entry).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn scripts_are_followed_and_loops_end() {
        let place = tempfile::tempdir().unwrap();
        let write = |name: &str, text: String| {
            let path = place.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let first = write("first", "#! /bin/sh -e\n".into());
        let second = write("second", format!("#!{}\n", first.display()));
        assert_eq!(Image::inspect(&second).unwrap().file, Path::new("/bin/sh"));
        let bare = write("bare", "echo no first line\n".into());
        assert_eq!(Image::inspect(&bare).unwrap().file, Path::new("/bin/sh"));
        let ring = place.path().join("ring");
        write("ring", format!("#!{}\n", ring.display()));
        assert_eq!(Image::inspect(&ring).unwrap_err().raw_os_error(), Some(libc::ELOOP));
        let orphan = write("orphan", "#!/no/such/interpreter\n".into());
        assert_eq!(Image::inspect(&orphan).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn broken_files_are_not_believed() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("broken");
        let whole = std::fs::read("/bin/sh").unwrap();
        for cut in [4, 16, 64, 300, whole.len() / 2] {
            std::fs::write(&path, &whole[..cut]).unwrap();
            Image::inspect(&path).expect("a cut file is inspected without complaint");
        }
        let mut other = whole.clone();
        other[18] = 0xf3;
        std::fs::write(&path, &other).unwrap();
        assert_eq!(Image::inspect(&path).unwrap().obstacle, Some(Obstacle::Foreign));
    }

    #[test]
    fn somebody_elses_setuid_file_is_privileged() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("copy");
        std::fs::copy("/bin/sh", &path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o4755)).unwrap();
        assert_eq!(Image::inspect(&path).unwrap().obstacle, None, "our own file raises nothing");
        let other = rustix::process::getuid().as_raw() + 1;
        if std::os::unix::fs::chown(&path, Some(other), None).is_err() {
            vellum_skip::skip("only root can give a file away");
            return;
        }
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o4755)).unwrap();
        let nosuid =
            rustix::fs::statvfs(&path).unwrap().f_flag.contains(rustix::fs::StatVfsMountFlags::NOSUID);
        let expected = (!nosuid).then_some(Obstacle::Privileged);
        assert_eq!(Image::inspect(&path).unwrap().obstacle, expected);
    }
}
