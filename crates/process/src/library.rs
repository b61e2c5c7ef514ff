//! Finds the libraries to preload: the runtime `libvellum.so`, and for `vellum cost` the recorder
//! `libvellum_cost.so` (`--recorder` or `VELLUM_COST_LIB`). The same places are searched for the folder
//! `libgc`, which contains `libgc.so.1`, and for programs that come with the command.
//!
//! ```text
//! --lib FILE  or  VELLUM_LIB             this file, or an error
//! DIR/libvellum.so                       in a build tree: beside the command
//! DIR/../lib/vellum/libvellum.so         installed by ./install, or from a package
//! DIR/../lib/libvellum.so                installed in another way
//! ```
//!
//! DIR is the directory of this command's file, after symbolic links.
//!
//! On machines that also run i386 programs, the library is preloaded by a path with `$PLATFORM` in it. The
//! dynamic linker of i386 programs then finds an empty i386 library, and does not complain about one of
//! x86-64. That needs the folder `platform` beside the library; `crates/runtime/platforms` makes this folder.
//!
//! glibc before 2.34 has threads and `dlsym` in separate libraries, which a program may not have loaded.
//! Our preloaded libraries do not name these as needed, so these are preloaded as well ([`companions`]).

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// The name by which linked programs find the library. Given by `crates/runtime/build.rs`.
pub const SONAME: &str = "libvellum.so.0";
const NAME: &str = "libvellum.so";
const RECORDER: &str = "libvellum_cost.so";
const I386_LINKER: &str = "/lib/ld-linux.so.2";

/// A library is not there.
#[derive(Debug, thiserror::Error)]
#[error("{name} not found (looked for {}); {cure}",
    .looked.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", "))]
pub struct LibraryError {
    name: &'static str,
    looked: Vec<PathBuf>,
    cure: &'static str,
}

/// The library's absolute path.
pub fn find(asked: Option<&Path>) -> Result<PathBuf, LibraryError> {
    let cure = "./build makes it: put it beside this command, or name it with --lib or VELLUM_LIB";
    find_named(NAME, asked, "VELLUM_LIB", cure)
}

/// The recorder's absolute path.
pub fn find_recorder(asked: Option<&Path>) -> Result<PathBuf, LibraryError> {
    let cure = "./build makes it: put it beside this command, or name it with --recorder or VELLUM_COST_LIB";
    find_named(RECORDER, asked, "VELLUM_COST_LIB", cure)
}

/// The absolute path of the folder with `libgc.so.1` in it.
pub fn find_libgc() -> Result<PathBuf, LibraryError> {
    let looked = candidates(&own_directory(), "libgc");
    let has_it = |folder: &PathBuf| folder.join("libgc.so.1").is_file();
    let found = looked.iter().find(|folder| has_it(folder)).and_then(|folder| folder.canonicalize().ok());
    found.ok_or(LibraryError {
        name: "libgc/libgc.so.1",
        looked,
        cure: "./build makes the folder libgc: put it, and libgc.so, beside this command",
    })
}

/// The program `name` that comes with this one. An error ends with `cure`: what builds it.
pub fn find_program(name: &'static str, cure: &'static str) -> Result<PathBuf, LibraryError> {
    let looked = candidates(&own_directory(), name);
    let found = looked.iter().find_map(|path| canonical_file(path));
    found.ok_or(LibraryError { name, looked, cure })
}

/// The path by which to preload `library`: its own, or one with `$PLATFORM` where i386 programs may run.
pub fn for_every_machine(library: &Path) -> PathBuf {
    if runs_i386() { by_platform(library) } else { library.to_path_buf() }
}

/// True if programs of i386 may run on this machine.
pub fn runs_i386() -> bool {
    Path::new(I386_LINKER).exists()
}

fn by_platform(library: &Path) -> PathBuf {
    let Some(name) = library.file_name() else { return library.to_path_buf() };
    let platform = library.with_file_name("platform");
    let leads_to_it = |machine: &str| {
        let link = platform.join(machine).join(name).canonicalize();
        link.is_ok_and(|link| library.canonicalize().is_ok_and(|library| link == library))
    };
    if leads_to_it("x86_64") && leads_to_it("$PLATFORM") && platform.join("i686").join(name).is_file() {
        platform.join("$PLATFORM").join(name)
    } else {
        library.to_path_buf()
    }
}

/// Libraries to preload behind ours: none, or the ones that glibc had separately before 2.34. A program of
/// musl takes its own libc for each.
pub fn companions() -> &'static [&'static str] {
    if has_threads_apart(&c_library()) { &["libpthread.so.0", "libdl.so.2"] } else { &[] }
}

/// The version of glibc that this command runs with, as "2.36"; empty with another C library.
fn c_library() -> String {
    #[cfg(target_env = "gnu")]
    // SAFETY: the function gives a constant string that ends in a zero.
    let version = unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) };
    #[cfg(not(target_env = "gnu"))]
    let version = c"";
    version.to_string_lossy().into_owned()
}

fn has_threads_apart(version: &str) -> bool {
    let minor = version.strip_prefix("2.").and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next());
    minor.and_then(|minor| minor.parse::<u32>().ok()).is_some_and(|minor| minor < 34)
}

/// A path to `library` without colons and blanks, which separate the parts of `LD_PRELOAD`:
/// [`for_every_machine`], or a link in `folder`.
pub fn preloadable(library: &Path, folder: &Path) -> std::io::Result<PathBuf> {
    let splits = |b: &u8| *b == b':' || b.is_ascii_whitespace();
    let Some(name) = library.file_name().filter(|_| library.as_os_str().as_bytes().iter().any(splits)) else {
        return Ok(for_every_machine(library));
    };
    let name: Vec<u8> = name.as_bytes().iter().map(|b| if splits(b) { b'_' } else { *b }).collect();
    let link = folder.join(OsStr::from_bytes(&name));
    match symlink(library, &link) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(link),
    }
}

fn find_named(
    name: &'static str,
    asked: Option<&Path>,
    variable: &str,
    cure: &'static str,
) -> Result<PathBuf, LibraryError> {
    let from_env = std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
    let Some(asked) = asked.or(from_env.as_deref()) else { return find_program(name, cure) };
    canonical_file(asked).ok_or_else(|| LibraryError { name, looked: vec![asked.to_path_buf()], cure })
}

/// The directory of this command's file: by `/proc`, or else by the path it was started with.
fn own_directory() -> PathBuf {
    // SAFETY: the kernel put a string there that ends in a zero and stays; 0 is no string's address.
    let started = || match unsafe { libc::getauxval(libc::AT_EXECFN) } {
        0 => PathBuf::new(),
        // SAFETY: the kernel's string of this process's start, which ends in a zero and stays.
        at => unsafe { OsStr::from_bytes(CStr::from_ptr(at as *const _).to_bytes()) }.into(),
    };
    let own = std::env::current_exe().unwrap_or_else(|_| started()).canonicalize().unwrap_or_default();
    own.parent().unwrap_or(Path::new(".")).to_path_buf()
}

fn candidates(directory: &Path, name: &str) -> Vec<PathBuf> {
    let up = directory.parent().unwrap_or(directory);
    vec![directory.join(name), up.join("lib/vellum").join(name), up.join("lib").join(name)]
}

fn canonical_file(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok().filter(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_beside_and_then_in_lib() {
        let looked = candidates(Path::new("/opt/v/bin"), NAME);
        let expected =
            ["/opt/v/bin/libvellum.so", "/opt/v/lib/vellum/libvellum.so", "/opt/v/lib/libvellum.so"];
        assert_eq!(looked, expected.map(PathBuf::from));
    }

    #[test]
    fn only_old_glibc_has_threads_apart() {
        for old in ["2.28", "2.31", "2.33-9000", "2.9"] {
            assert!(has_threads_apart(old), "{old}");
        }
        for not in ["2.34", "2.36", "2.100", "3.1", "1.2.3", ""] {
            assert!(!has_threads_apart(not), "{not}");
        }
    }

    #[test]
    fn other_machines_find_a_library_of_theirs() {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join(NAME);
        std::fs::write(&library, "").unwrap();
        assert_eq!(by_platform(&library), library);
        for machine in ["x86_64", "$PLATFORM", "i686"] {
            assert_eq!(by_platform(&library), library, "without {machine}");
            let place = folder.path().join("platform").join(machine);
            std::fs::create_dir_all(&place).unwrap();
            symlink("../../libvellum.so", place.join(NAME)).unwrap();
        }
        assert_eq!(by_platform(&library), folder.path().join("platform/$PLATFORM/libvellum.so"));
        // An older library's folder is of no use.
        let another = folder.path().join("libvellum_cost.so");
        std::fs::write(&another, "").unwrap();
        assert_eq!(by_platform(&another), another);
    }
}
