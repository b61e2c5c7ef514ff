//! Fuzz targets for executables, libraries and their debug data: ELF, DWARF, unwinding tables, mangled names.

use crate::split::{self, InMemory};
use vellum_process::Image;
use vellum_process::{Symbols, short_name};
use vellum_unwind::{Frame, Rule, Tables};

pub(crate) const WORDS: &[&str] = &[
    "\x7fELF\x02\x01\x01",
    "#!/bin/sh\n",
    "#!/proc/self/exe",
    "/lib/ld-musl-x86_64.so.1",
    "__asan_init",
    "libasan.so.8",
    ".debug_info",
    ".debug_line",
    ".eh_frame",
    ".eh_frame_hdr",
    ".gnu_debuglink",
    ".gnu_debugaltlink",
    "ld-linux",
    "vellum_counters",
];
pub(crate) const MANGLED: &[&str] = &[
    "_Z",
    "_ZN",
    "_R",
    "NvC",
    "St",
    "S_",
    "IJ",
    "E",
    "Z",
    "T_",
    "Dp",
    "fp",
    "clE",
    "sr",
    "L_Z",
    "B0_",
    "_ZN3foo17h",
];

/// Number of addresses looked up.
const ADDRESSES: usize = 8;
/// Longer names are cut: linkers have limits of their own.
const NAME_MAX: usize = 4096;

/// A program file, as inspected before its start.
pub fn elf_image(data: &[u8]) {
    let file = InMemory::new(data);
    let _ = Image::inspect(&file.path());
    let _ = vellum_process::readers::elf_door(&file.path());
}

/// An ELF file with its symbols, lines, debug links and unwinding tables, at addresses taken from the input's
/// end.
pub fn elf_symbols(data: &[u8]) {
    let file = InMemory::new(data);
    let path = file.path();
    let mut symbols = Symbols::default();
    let _ = symbols.standing(&path);
    let mut rest = data;
    for _ in 0..ADDRESSES {
        let (word, before) = split::number(rest);
        rest = before;
        // Most words lie beyond all code; parts of them are more likely to lie within it.
        for address in [word, word >> 32, word & 0xffff] {
            let _ = symbols.functions(&path, address);
            let _ = symbols.answer(&path, address);
            let _ = symbols.rule(&path, address);
            if let Some(address) = symbols.address_of_offset(&path, address) {
                let _ = symbols.functions(&path, address);
            }
        }
    }
}

/// A linker's name of a Rust or C++ function.
pub fn demangle(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(&data[..data.len().min(NAME_MAX)]) else { return };
    let _ = short_name(text);
}

/// Unwinding tables and a stack. The last five words are the first frame (pc, sp, bp), the address of the
/// tables, and the end of the index, where the entries begin.
pub fn unwind(data: &[u8]) {
    let (pc, rest) = split::number(data);
    let (sp, rest) = split::number(rest);
    let (bp, rest) = split::number(rest);
    let (base, rest) = split::number(rest);
    let (cut, rest) = split::number(rest);
    let cut = usize::try_from(cut % (rest.len() as u64 + 1)).unwrap_or(0);
    let (index, entries) = rest.split_at(cut);
    let _ = Tables::entries_of(index, base);
    let tables = Tables::new(index, base, entries, base.wrapping_add(cut as u64));
    let load = |at: u64| {
        let from = usize::try_from(at.checked_sub(sp)?).ok()?;
        rest.get(from..)?.first_chunk::<8>().map(|word| u64::from_ne_bytes(*word))
    };
    let mut frame = Some(Frame { pc, sp, bp });
    for _ in 0..ADDRESSES {
        let Some(here) = frame else { break };
        // A walk without a rule continues with a rule made of the input, so that steps are also tried without
        // tables.
        let rule = tables.rule_at(here.pc).or_else(|| Rule::from_bits(here.pc ^ base));
        if let Some(rule) = rule.filter(|rule| Rule::new(rule.cfa, rule.bp).is_some()) {
            assert_eq!(Rule::from_bits(rule.bits()), Some(rule), "read again");
        }
        let next = rule.and_then(|rule| here.caller(rule, load));
        assert!(next.is_none_or(|next| next.sp > here.sp), "a walk goes up");
        frame = next;
    }
}
