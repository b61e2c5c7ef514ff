//! Finds the source line, inlined functions, symbol and module (program or library) of an instruction's
//! address.
//!
//! [`Symbols`] opens each module's file once. Debug information is read from the file itself or, if it was
//! stripped off, searched for where debuggers do:
//!
//! ```text
//! /usr/lib/debug/.build-id/ab/cdef….debug        by the build id
//! beside the file · .debug/ beside it · /usr/lib/debug/ + its directory      by .gnu_debuglink
//! ```
//!
//! Debug information that files share (dwz) is found by `.gnu_debugaltlink`. The parsers are addr2line's and
//! object's.
//!
//! Code that belongs to no file has the names in its just-in-time compiler's list ([`crate::jit_map`]).
//!
//! A source line is the *user's* if its module is no system library, and its file lies outside the
//! directories of the system and of compilers. A line of a system header counts as the library's, even if it
//! is inlined into the user's code; the line that calls it is the user's.

use crate::jit::{JitMap, is_jit_map};
use crate::names::short_name;
use addr2line::Loader;
use object::read::elf::{ElfFile64, FileHeader};
use object::{Endianness, Object, ObjectSegment, ReadCache, ReadRef, elf};
use std::cell::OnceCell;
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vellum_unwind::{Rule, Tables};
use vellum_wire::cost::Answer;

const SYSTEM_SOURCES: &[&str] =
    &["/usr/include/", "/usr/lib/", "/usr/local/include/", "/rustc/", "/rust/deps/"];
/// Parts of paths under which package managers keep others' sources.
const PACKAGE_SOURCES: &[&str] = &["/.cargo/registry/", "/.rustup/toolchains/", "/rustlib/src/"];
/// Our own headers: code inlined from them is not the user's.
const OWN_HEADERS: &[&str] = &["/vellum.h", "/vellum_gc.h"];
const SYSTEM_LIBRARIES: &[&str] = &["/lib/", "/lib32/", "/lib64/", "/usr/lib/", "/usr/lib32/", "/usr/lib64/"];
/// Our runtime, and the collector's interfaces over it, by how their files' names begin.
const RUNTIME: [&str; 3] = ["libvellum.so", "libgc.so", "libgccpp.so"];
const RECORDER: &str = "libvellum_cost.so";
const DEBUG_ROOT: &str = "/usr/lib/debug";
/// Sections of unwinding tables larger than this are ignored.
const TABLE_BYTES_MAX: u64 = 1 << 30;

/// The way to find a user's line in a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// A library of the system's, or one without debug information: its callers are looked at.
    Library,
    /// A module with debug information: each instruction is looked up.
    Lines,
    /// An executable without debug information: the walk ends at its functions.
    Bare,
}

/// A function at an instruction. The instruction was compiled from the innermost one; the others had it
/// inlined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Function {
    /// Its short name.
    pub name: Option<String>,
    /// The source file, as the compiler named it.
    pub file: Option<Arc<str>>,
    /// The line, from 1.
    pub line: Option<u32>,
}

impl Function {
    /// True if a user wrote this line.
    pub fn is_users(&self) -> bool {
        self.line.is_some_and(|line| line > 0) && self.file.as_deref().is_some_and(is_users_source)
    }
}

/// True if `file` is not one of the system's or a compiler's sources.
fn is_users_source(file: &str) -> bool {
    !(file.starts_with('<')
        || SYSTEM_SOURCES.iter().any(|place| file.starts_with(place))
        || OWN_HEADERS.iter().any(|header| file.ends_with(header))
        || PACKAGE_SOURCES.iter().any(|place| file.contains(place)))
}

/// The modules opened so far.
#[derive(Default)]
pub struct Symbols {
    modules: HashMap<PathBuf, Option<Module>>,
    lists: HashMap<PathBuf, JitMap>,
    files: HashMap<Box<str>, Arc<str>>,
}

impl std::fmt::Debug for Symbols {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Symbols").field("modules", &self.modules.keys()).finish()
    }
}

struct Module {
    standing: Standing,
    lines: Option<Loader>,
    /// The file's own symbols, read when first needed.
    own: OnceCell<Option<Loader>>,
    path: PathBuf,
    segments: Vec<Segment>,
    unwind: Option<Unwind>,
    looked_up: HashMap<u64, Arc<[Function]>>,
    rules: HashMap<u64, Option<Rule>>,
}

struct Segment {
    offset: u64,
    address: u64,
    bytes: u64,
}

struct Unwind {
    index: Vec<u8>,
    index_at: u64,
    entries: Vec<u8>,
    entries_at: u64,
}

impl Symbols {
    /// The standing of the module of that file.
    pub fn standing(&mut self, module: &Path) -> Standing {
        if is_jit_map(module) {
            return Standing::Bare;
        }
        self.open(module).map_or(Standing::Library, |module| module.standing)
    }

    /// The answer to the recorder about the instruction at `address` of a module's file.
    pub fn answer(&mut self, module: &Path, address: u64) -> Answer {
        match self.standing(module) {
            Standing::Library => Answer::WalkModule,
            Standing::Bare => Answer::StopModule,
            Standing::Lines => {
                let is_users = self.functions(module, address).iter().any(Function::is_users);
                if is_users { Answer::Stop } else { Answer::Walk }
            }
        }
    }

    /// The functions at `address` of a module's file, the innermost first. Never empty for a module that can
    /// be read; without debug information it is one with at most a name.
    pub fn functions(&mut self, module: &Path, address: u64) -> Arc<[Function]> {
        if is_jit_map(module) {
            let list = self.lists.entry(module.to_path_buf()).or_insert_with_key(|path| JitMap::open(path));
            let name = list.name(address).map(str::to_owned);
            return Arc::new([Function { name, ..Function::default() }]);
        }
        // Borrowed apart, as a module's look-up makes names of files.
        let Symbols { modules, files, .. } = self;
        let opened = modules.entry(module.to_path_buf()).or_insert_with_key(|path| Module::open(path));
        let Some(opened) = opened else { return Arc::new([]) };
        if let Some(known) = opened.looked_up.get(&address) {
            return known.clone();
        }
        let functions: Arc<[Function]> = opened.look_up(address, files).into();
        opened.looked_up.insert(address, functions.clone());
        functions
    }

    /// The address that the byte at `offset` of a module's file is loaded at, in the file's own terms.
    pub fn address_of_offset(&mut self, module: &Path, offset: u64) -> Option<u64> {
        let segments = &self.open(module)?.segments;
        let holds = |segment: &&Segment| offset.wrapping_sub(segment.offset) < segment.bytes;
        let segment = segments.iter().find(holds)?;
        Some(segment.address.wrapping_add(offset.wrapping_sub(segment.offset)))
    }

    /// The rule to unwind the frame of the instruction at `address` of a module's file.
    pub fn rule(&mut self, module: &Path, address: u64) -> Option<Rule> {
        let module = self.open(module)?;
        let unwind = module.unwind.as_ref()?;
        *module.rules.entry(address).or_insert_with(|| {
            Tables::new(&unwind.index, unwind.index_at, &unwind.entries, unwind.entries_at).rule_at(address)
        })
    }

    fn open(&mut self, path: &Path) -> Option<&mut Module> {
        if !self.modules.contains_key(path) {
            self.modules.insert(path.to_path_buf(), Module::open(path));
        }
        self.modules.get_mut(path)?.as_mut()
    }
}

impl Module {
    fn open(path: &Path) -> Option<Module> {
        // Checked before it is opened: programs write these paths, and opening a pipe would wait for its
        // other end.
        let file = path.is_file().then(|| File::open(path).ok())??;
        let cache = ReadCache::new(file);
        let elf = ElfFile64::<Endianness, _>::parse(&cache).ok()?;
        let system = is_systems_library(path);
        let executable = is_executable(&elf);
        let lines = if system && !executable { None } else { debug_information(path, &elf) };
        let standing = match (&lines, executable) {
            (Some(_), _) => Standing::Lines,
            (None, true) => Standing::Bare,
            (None, false) => Standing::Library,
        };
        let (segments, unwind) = (segments(&elf), unwind(&elf));
        let path = path.to_path_buf();
        let (own, looked_up, rules) = (OnceCell::new(), HashMap::new(), HashMap::new());
        Some(Module { standing, lines, own, path, segments, unwind, looked_up, rules })
    }

    fn look_up(&self, address: u64, files: &mut HashMap<Box<str>, Arc<str>>) -> Vec<Function> {
        let mut functions = Vec::new();
        if let Some(lines) = &self.lines
            && let Ok(mut frames) = lines.find_frames(address)
        {
            while let Ok(Some(frame)) = frames.next() {
                let name = frame.function.as_ref().and_then(|function| function.raw_name().ok());
                let file = frame.location.as_ref().and_then(|location| location.file);
                functions.push(Function {
                    name: name.map(|raw| short_name(&raw)),
                    file: file.map(|file| {
                        let normal = normal(file);
                        files.entry(normal.clone().into()).or_insert_with(|| normal.into()).clone()
                    }),
                    line: frame.location.as_ref().and_then(|location| location.line),
                });
            }
        }
        if functions.is_empty() {
            functions.push(Function::default());
        }
        // The outermost may be a function that was compiled without debug information.
        if let Some(last) = functions.last_mut().filter(|last| last.name.is_none()) {
            last.name = self.symbol(address);
        }
        functions
    }

    fn symbol(&self, address: u64) -> Option<String> {
        let own = self.own.get_or_init(|| Loader::new(&self.path).ok());
        let of = |loader: &Loader| loader.find_symbol(address).map(short_name);
        self.lines.as_ref().and_then(of).or_else(|| own.as_ref().and_then(of))
    }
}

fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "." => {}
            "" if !parts.is_empty() => {}
            ".." if parts.last().is_some_and(|last| !last.is_empty() && *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// True if this is one of the system's libraries, or ours.
pub fn is_systems_library(path: &Path) -> bool {
    let text = path.to_string_lossy();
    SYSTEM_LIBRARIES.iter().any(|place| text.starts_with(place)) || is_own_library(path)
}

/// True if this is the runtime, or the library that records.
pub fn is_own_library(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    RUNTIME.iter().any(|runtime| name.starts_with(runtime)) || is_recorder(path)
}

/// True if this is the library that records.
pub fn is_recorder(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == RECORDER)
}

/// True if the file is a program and not a library: libraries may be run too, but are not linked as programs.
fn is_executable<'data, R: ReadRef<'data>>(elf: &ElfFile64<'data, Endianness, R>) -> bool {
    let endian = elf.endian();
    if elf.elf_header().e_type(endian) == elf::ET_EXEC {
        return true;
    }
    let table = elf.elf_dynamic_table().unwrap_or_default();
    table.iter().any(|entry| entry.tag == elf::DT_FLAGS_1 && entry.val & DF_1_PIE != 0)
}

/// `DF_1_PIE`: the linker's word that it made a program.
const DF_1_PIE: u64 = 0x0800_0000;

fn segments<'data, R: ReadRef<'data>>(elf: &ElfFile64<'data, Endianness, R>) -> Vec<Segment> {
    let segment = |segment: object::read::elf::ElfSegment64<'data, '_, Endianness, R>| {
        let (offset, bytes) = segment.file_range();
        Segment { offset, address: segment.address(), bytes }
    };
    elf.segments().map(segment).collect()
}

fn unwind<'data, R: ReadRef<'data>>(elf: &ElfFile64<'data, Endianness, R>) -> Option<Unwind> {
    use object::ObjectSection;
    let section = |name| {
        let section = elf.section_by_name(name).filter(|section| section.size() <= TABLE_BYTES_MAX)?;
        Some((section.data().ok()?.to_vec(), section.address()))
    };
    let ((index, index_at), (entries, entries_at)) = (section(".eh_frame_hdr")?, section(".eh_frame")?);
    Some(Unwind { index, index_at, entries, entries_at })
}

/// Opens the debug information of the module at `path`, wherever it is.
fn debug_information<'data, R: ReadRef<'data>>(
    path: &Path,
    elf: &ElfFile64<'data, Endianness, R>,
) -> Option<Loader> {
    if elf.section_by_name(".debug_info").is_some() || elf.section_by_name(".zdebug_info").is_some() {
        return with_supplement(path);
    }
    let by_id = elf.build_id().ok().flatten().map(build_id_path);
    let mut candidates: Vec<PathBuf> = by_id.into_iter().collect();
    if let Ok(Some((name, _))) = elf.gnu_debuglink() {
        let name = std::ffi::OsStr::from_bytes(name);
        let directory = path.parent().unwrap_or(Path::new("/"));
        let below = directory.strip_prefix("/").unwrap_or(directory);
        candidates.push(directory.join(name));
        candidates.push(directory.join(".debug").join(name));
        candidates.push(Path::new(DEBUG_ROOT).join(below).join(name));
    }
    let same =
        |candidate: &PathBuf| candidate != path && same_build(candidate, elf.build_id().ok().flatten());
    let mut files = candidates.iter().filter(|candidate| candidate.is_file());
    files.find(|candidate| same(candidate)).and_then(|found| with_supplement(found))
}

/// True if the debug file is of the same build; one without a build id is accepted.
fn same_build(candidate: &Path, id: Option<&[u8]>) -> bool {
    let Ok(file) = File::open(candidate) else { return false };
    let cache = ReadCache::new(file);
    let Ok(elf) = ElfFile64::<Endianness, _>::parse(&cache) else { return false };
    match (elf.build_id().ok().flatten(), id) {
        (Some(theirs), Some(ours)) => theirs == ours,
        _ => true,
    }
}

fn build_id_path(id: &[u8]) -> PathBuf {
    let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let (first, rest) = hex.split_at(hex.len().min(2));
    Path::new(DEBUG_ROOT).join(".build-id").join(first).join(format!("{rest}.debug"))
}

/// Opens a file with debug information, and the one it shares information with, if it does.
fn with_supplement(path: &Path) -> Option<Loader> {
    let supplement = File::open(path).ok().and_then(|file| {
        let cache = ReadCache::new(file);
        let elf = ElfFile64::<Endianness, _>::parse(&cache).ok()?;
        let (name, id) = elf.gnu_debugaltlink().ok()??;
        let named = path.parent()?.join(std::ffi::OsStr::from_bytes(name));
        [named, build_id_path(id)].into_iter().find(|candidate| candidate.is_file())
    });
    Loader::new_with_sup(path, supplement).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_systems_are_not_the_users() {
        for file in [
            "/usr/include/c++/12/bits/stl_vector.h",
            "/usr/lib/gcc/x86_64-linux-gnu/12/include/xmmintrin.h",
            "/rustc/59807616e1/library/alloc/src/alloc.rs",
            "/home/u/.cargo/registry/src/index/serde-1/src/lib.rs",
            "<built-in>",
            "/home/u/vellum/include/vellum_gc.h",
        ] {
            assert!(!is_users_source(file), "{file}");
        }
        for file in ["/home/u/prog.c", "prog.c", "/srv/include/mine.h", "/usr2/x.c"] {
            assert!(is_users_source(file), "{file}");
        }
    }

    #[test]
    fn paths_are_made_plain() {
        assert_eq!(normal("/a/./b/../c.h"), "/a/c.h");
        assert_eq!(normal("a//b.c"), "a/b.c");
        assert_eq!(normal("../x.c"), "../x.c");
        assert_eq!(normal("/usr/lib/gcc/x/12/../../../../include/c++/12/new"), "/usr/include/c++/12/new");
    }

    #[test]
    fn a_pipe_is_no_module_and_not_waited_for() {
        let place = tempfile::tempdir().unwrap();
        let pipe = place.path().join("pipe");
        let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, mode, 0).unwrap();
        assert_eq!(Symbols::default().standing(&pipe), Standing::Library);
    }

    #[test]
    fn a_build_id_names_a_file() {
        assert_eq!(build_id_path(&[0xab, 0xcd, 0x01]), Path::new("/usr/lib/debug/.build-id/ab/cd01.debug"));
    }

    #[test]
    fn our_own_lines_are_found() {
        let mut symbols = Symbols::default();
        let own = std::env::current_exe().unwrap();
        assert_eq!(symbols.standing(&own), Standing::Lines);
        let maps = std::fs::read("/proc/self/maps").unwrap();
        let mut all = vellum_kernel::mapping::mappings(&maps);
        let base = all.find(|mapping| mapping.path == own.as_os_str().as_bytes()).unwrap().start;
        let here = our_own_lines_are_found as *const () as u64 - base;
        let functions = symbols.functions(&own, here);
        let outermost = functions.last().unwrap();
        assert!(outermost.name.as_deref().unwrap().contains("our_own_lines_are_found"), "{functions:?}");
        assert!(outermost.file.as_deref().unwrap().ends_with("process/src/symbols.rs"), "{functions:?}");
        assert!(symbols.rule(&own, here).is_some());
        assert_eq!(symbols.answer(Path::new("/no/such/file"), 0), Answer::WalkModule);
    }
}
