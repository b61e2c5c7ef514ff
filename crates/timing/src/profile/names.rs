//! Names of addresses: symbols of this process's modules, and of the kernel.
//!
//! A program's address is looked up in the symbol table of the mapped file: functions as compiled, with
//! the code inlined into them. For stripped files, separate debug information is used ([`Symbols`]), then
//! the names that a library exports. The kernel's names are in `/proc/kallsyms`, which shows addresses
//! only to privileged readers. Without these addresses, all of the kernel's samples are one row.

use object::read::elf::{ElfFile64, ProgramHeader};
use object::{Endianness, Object, ObjectSymbol, ReadCache, SymbolKind, elf};
use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use vellum_kernel::mapping;
use vellum_kernel::symbols::{KALLSYMS, Symbol};
use vellum_process::{Symbols, short_name};

/// The name for the kernel's samples if its symbols are hidden.
const KERNEL: &str = "[kernel]";

/// A symbol and its module.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Name {
    pub(super) symbol: String,
    pub(super) module: String,
}

/// The names of this process's addresses.
pub(super) struct Names {
    mappings: Vec<Mapping>,
    tables: HashMap<PathBuf, Option<Table>>,
    stripped: Symbols,
    kernel: Option<Kernel>,
}

/// The name of the program's code at `address`, given the text of `maps`.
pub(crate) fn by_maps(maps: &str, address: u64) -> String {
    Names::of(maps.as_bytes()).of_program(address).symbol
}

/// The name of the function at `offset` of the file at `path`, by its symbol table.
pub(crate) fn by_table(path: &Path, offset: u64) -> Option<String> {
    Table::read(path)?.name(offset)
}

/// The name of the kernel's code at `address`, given the text of `kallsyms`.
pub(crate) fn by_kallsyms(text: &str, address: u64) -> String {
    Kernel::parse(text).name(address).symbol
}

/// A mapped piece of code.
#[derive(Debug, PartialEq, Eq)]
struct Mapping {
    start: u64,
    end: u64,
    offset: u64,
    /// A file, a region of the kernel's such as `[vdso]`, or empty for generated code.
    path: String,
}

impl Names {
    pub(super) fn of_this_process() -> Names {
        Names::of(&std::fs::read("/proc/self/maps").unwrap_or_default())
    }

    fn of(maps: &[u8]) -> Names {
        Names { mappings: code(maps), tables: HashMap::new(), stripped: Symbols::default(), kernel: None }
    }

    pub(super) fn of_program(&mut self, address: u64) -> Name {
        let Some(found) = self.mappings.iter().find(|one| (one.start..one.end).contains(&address)) else {
            return Name { symbol: format!("{address:#x}"), module: "[unmapped]".to_owned() };
        };
        if !found.path.starts_with('/') {
            let module = if found.path.is_empty() { "[generated code]" } else { &found.path };
            return Name { symbol: module.to_owned(), module: module.to_owned() };
        }
        let path = PathBuf::from(&found.path);
        let offset = (address - found.start).wrapping_add(found.offset);
        let module = file_name(&path);
        let table = self.tables.entry(path.clone()).or_insert_with_key(|path| Table::read(path));
        let (in_file, symbol) = match table {
            Some(table) => (table.address_of_offset(offset), table.name(offset)),
            None => {
                let in_file = self.stripped.address_of_offset(&path, offset);
                let functions = in_file.map(|address| self.stripped.functions(&path, address));
                (in_file, functions.and_then(|functions| functions.last()?.name.clone()))
            }
        };
        let in_file = in_file.unwrap_or(offset);
        Name { symbol: symbol.unwrap_or_else(|| format!("{module}+{in_file:#x}")), module }
    }

    pub(super) fn of_kernel(&mut self, address: u64) -> Name {
        let read = || Kernel::parse(&vellum_kernel::text(KALLSYMS).unwrap_or_default());
        self.kernel.get_or_insert_with(read).name(address)
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// The pieces of code in the text of `maps`.
fn code(maps: &[u8]) -> Vec<Mapping> {
    let executable = mapping::mappings(maps).filter(|mapping| mapping.rights.contains(&b'x'));
    let piece = |mapping: mapping::Mapping<'_>| Mapping {
        start: mapping.start,
        end: mapping.end,
        offset: mapping.offset,
        path: String::from_utf8_lossy(mapping.path).into_owned(),
    };
    executable.map(piece).collect()
}

/// The functions of one file, by address.
struct Table {
    /// The place in the file, length and address of each loaded part.
    parts: Vec<[u64; 3]>,
    /// Address, length and raw name.
    functions: Vec<(u64, u64, String)>,
}

impl Table {
    /// Reads a file with a symbol table.
    fn read(path: &Path) -> Option<Table> {
        let cache = ReadCache::new(File::open(path).ok()?);
        let elf = ElfFile64::<Endianness, _>::parse(&cache).ok()?;
        let endian = elf.endian();
        let loaded = elf.elf_program_headers().iter().filter(|header| header.p_type(endian) == elf::PT_LOAD);
        let parts = loaded.map(|part| [part.p_offset(endian), part.p_filesz(endian), part.p_vaddr(endian)]);
        let texts = elf.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.address() != 0);
        let function = |symbol: object::read::elf::ElfSymbol<'_, '_, _, _>| {
            Some((symbol.address(), symbol.size(), symbol.name().ok()?.to_owned()))
        };
        let mut functions: Vec<_> = texts.filter_map(function).collect();
        functions.sort();
        (!functions.is_empty()).then(|| Table { parts: parts.collect(), functions })
    }

    fn address_of_offset(&self, offset: u64) -> Option<u64> {
        let holds = |[begins, bytes, _]: &&[u64; 3]| offset.wrapping_sub(*begins) < *bytes;
        self.parts
            .iter()
            .find(holds)
            .map(|[begins, _, address]| address.wrapping_add(offset.wrapping_sub(*begins)))
    }

    /// The function at `offset` of the file. A function without a length (from assembly) reaches to the next
    /// one.
    fn name(&self, offset: u64) -> Option<String> {
        let address = self.address_of_offset(offset)?;
        let below = self.functions.partition_point(|(begins, ..)| *begins <= address);
        let (begins, bytes, name) = &self.functions[below.checked_sub(1)?];
        (*bytes == 0 || address - begins < *bytes).then(|| short_name(name))
    }
}

/// The kernel's symbols by address.
struct Kernel {
    symbols: Vec<(u64, String, String)>,
}

impl Kernel {
    /// Parses a kallsyms file: address, kind, name, and for loaded modules their name in brackets.
    fn parse(text: &str) -> Kernel {
        let code = text.lines().filter_map(Symbol::parse).filter(Symbol::is_code);
        let owned =
            |symbol: Symbol<'_>| (symbol.address, symbol.name.into(), symbol.module.unwrap_or(KERNEL).into());
        let mut symbols: Vec<(u64, String, String)> = code.map(owned).collect();
        symbols.sort_by_key(|symbol| symbol.0);
        Kernel { symbols }
    }

    fn name(&self, address: u64) -> Name {
        let below = self.symbols.partition_point(|symbol| symbol.0 <= address);
        match below.checked_sub(1).map(|index| &self.symbols[index]) {
            Some((_, name, module)) => Name { symbol: name.clone(), module: module.clone() },
            None => Name { symbol: KERNEL.to_owned(), module: KERNEL.to_owned() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_functions_have_names() {
        let mut names = Names::of_this_process();
        let here = names.of_program(our_own_functions_have_names as *const () as u64 + 1);
        assert!(here.symbol.contains("our_own_functions_have_names"), "{here:?}");
        let outside = names.of_program(8);
        assert_eq!((outside.symbol.as_str(), outside.module.as_str()), ("0x8", "[unmapped]"));
    }

    #[test]
    fn a_file_without_a_table_gives_its_exported_names() {
        // On most systems the C library is stripped, and exports malloc. Otherwise its table has the same
        // names.
        let mut names = Names::of_this_process();
        let malloc = names.of_program(libc::malloc as *const () as u64);
        assert!(malloc.symbol.contains("malloc"), "{malloc:?}");
        assert!(malloc.module.contains(".so") || malloc.module.contains("timing"), "{malloc:?}");
    }

    #[test]
    fn a_function_ends_where_its_length_says() {
        let table = Table {
            parts: vec![[0x1000, 0x1000, 0x401_000]],
            functions: vec![(0x401_000, 0x10, "first".into()), (0x401_100, 0, "second".into())],
        };
        let name = |offset| table.name(offset);
        assert_eq!((name(0x1000), name(0x100f)), (Some("first".into()), Some("first".into())));
        assert_eq!((name(0x1010), name(0x1800)), (None, Some("second".into())));
        assert_eq!((name(0x0fff), name(0x2000)), (None, None));
    }

    #[test]
    fn kernel_symbols_are_the_last_at_or_below() {
        let text = "ffff1000 T start\nffff2000 t middle\nffff2800 d data\nffff3000 t end\t[driver]\n";
        let kernel = Kernel::parse(text);
        let name = |address| kernel.name(address).symbol;
        assert_eq!((name(0xffff_1000), name(0xffff_2fff)), ("start".into(), "middle".into()));
        assert_eq!(kernel.name(0xffff_3001), Name { symbol: "end".into(), module: "[driver]".into() });
        assert_eq!(name(0x10), KERNEL);
        let hidden = Kernel::parse("0000000000000000 T start\n0000000000000000 T end\n");
        assert_eq!(hidden.name(0xffff_1000).symbol, KERNEL);
    }
}
