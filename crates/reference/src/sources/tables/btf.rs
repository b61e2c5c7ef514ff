//! Reads the layout of the running kernel's structures from its BTF data, `/sys/kernel/btf/vmlinux`.
//!
//! ```text
//! header │ types: [name, info, size or type] + what the kind adds … │ strings, each ended by a zero
//! ```
//!
//! Types are numbered from 1, in the order of the file. Members of structures without a name count as members
//! of the structure around them, as in C.
//!
//! Invariant: nothing in the file is trusted; malformed data ends the search with `None`.
//!
//! Source: the kernel's Documentation/bpf/btf.rst.

const MAGIC: u16 = 0xeb9f;
const ARRAY: u32 = 3;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const ENUM: u32 = 6;
const FUNC: u32 = 12;
const FUNC_PROTO: u32 = 13;
const VAR: u32 = 14;
const DATASEC: u32 = 15;
const DECL_TAG: u32 = 17;
const ENUM64: u32 = 19;
const INT: u32 = 1;
const DEPTH_MAX: u32 = 8;
/// Members visited for one answer: more than the largest structure of a kernel has, nested ones included.
/// The bound ends the search in a file where a structure is its own member.
const MEMBERS_MAX: u32 = 1 << 17;

#[derive(Debug)]
pub(crate) struct Btf<'a> {
    bytes: &'a [u8],
    strings: usize,
    /// The offset of each type; number 0 is `void`.
    starts: Vec<usize>,
}

impl<'a> Btf<'a> {
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<Btf<'a>> {
        let word = |at: usize| -> Option<usize> { Some(number(bytes, at)? as usize) };
        if u16::from_le_bytes(bytes.get(..2)?.try_into().ok()?) != MAGIC {
            return None;
        }
        let header = word(4)?;
        let (types, types_bytes) = (header.checked_add(word(8)?)?, word(12)?);
        let strings = header.checked_add(word(16)?)?;
        let end = types.checked_add(types_bytes)?;
        let mut btf = Btf { bytes, strings, starts: vec![0] };
        let mut at = types;
        while at < end {
            btf.starts.push(at);
            let info = number(bytes, at + 4)?;
            let (kind, members) = (info >> 24 & 31, (info & 0xffff) as usize);
            at += 12
                + match kind {
                    INT | VAR | DECL_TAG => 4,
                    ARRAY => 12,
                    STRUCT | UNION | DATASEC | ENUM64 => 12 * members,
                    ENUM | FUNC_PROTO => 8 * members,
                    _ => 0,
                };
        }
        Some(btf)
    }

    pub(crate) fn function(&self, name: &str) -> Option<u32> {
        self.named(FUNC, name)
    }

    pub(crate) fn offset(&self, structure: &str, member: &str) -> Option<i32> {
        let bits = self.member(self.named(STRUCT, structure)?, member, DEPTH_MAX, &mut { MEMBERS_MAX })?;
        bits.is_multiple_of(8).then(|| i32::try_from(bits / 8).ok())?
    }

    pub(crate) fn size(&self, structure: &str) -> Option<u32> {
        number(self.bytes, self.starts[self.named(STRUCT, structure)? as usize] + 8)
    }

    pub(crate) fn constant(&self, enumeration: &str, name: &str) -> Option<u32> {
        let found = self.named(ENUM, enumeration)?;
        let (_, info) = self.kind(found)?;
        let first = self.starts[found as usize] + 12;
        let mut places = (0..(info & 0xffff) as usize).map(|constant| first + 8 * constant);
        number(self.bytes, places.find(|at| self.is_called(*at, name))? + 4)
    }

    fn kind(&self, number: u32) -> Option<(u32, u32)> {
        let at = *self.starts.get(number as usize).filter(|at| **at > 0)?;
        let info = self::number(self.bytes, at + 4)?;
        Some((info >> 24 & 31, info))
    }

    fn named(&self, kind: u32, name: &str) -> Option<u32> {
        (1..self.starts.len() as u32).find(|number| {
            let at = self.starts[*number as usize];
            self.kind(*number).is_some_and(|(found, _)| found == kind) && self.is_called(at, name)
        })
    }

    fn is_called(&self, at: usize, name: &str) -> bool {
        let called = || {
            let start = self.strings.checked_add(number(self.bytes, at)? as usize)?;
            let found = self.bytes.get(start..)?.get(..=name.len())?;
            Some(found[..name.len()] == *name.as_bytes() && found[name.len()] == 0)
        };
        called().unwrap_or(false)
    }

    /// In bits.
    fn member(&self, structure: u32, name: &str, depth: u32, left: &mut u32) -> Option<u32> {
        let (kind, info) = self.kind(structure)?;
        if (kind != STRUCT && kind != UNION) || depth == 0 {
            return None;
        }
        let first = self.starts[structure as usize] + 12;
        (0..(info & 0xffff) as usize).find_map(|member| {
            *left = left.checked_sub(1)?;
            let at = first + 12 * member;
            // With bit fields the upper byte is a width.
            let mask = if info >> 31 == 1 { 0xff_ffff } else { u32::MAX };
            let offset = number(self.bytes, at + 8)? & mask;
            if self.is_called(at, name) {
                return Some(offset);
            }
            let within = self.is_called(at, "").then(|| number(self.bytes, at + 4))??;
            offset.checked_add(self.member(within, name, depth - 1, left)?)
        })
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `struct s { int a; struct { int b; int c; }; }`, `int f(...)` and `enum e { x = 3 }`.
    fn sample() -> Vec<u8> {
        let strings = b"\0int\0s\0a\0b\0c\0f\0e\0x\0";
        let name = |text: &[u8]| strings.windows(text.len()).position(|w| w == text).unwrap() as u32;
        let int = name(b"int\0");
        let types: Vec<u32> = [
            vec![int, INT << 24, 4, 32],
            vec![0, STRUCT << 24 | 2, 8, name(b"b\0"), 1, 0, name(b"c\0"), 1, 32],
            vec![name(b"s\0"), STRUCT << 24 | 2, 12, name(b"a\0"), 1, 0, 0, 2, 32],
            vec![0, 2 << 24, 1],
            vec![0, FUNC_PROTO << 24 | 1, 1, 0, 1],
            vec![name(b"f\0"), FUNC << 24, 5],
            vec![name(b"e\0"), ENUM << 24 | 1, 4, name(b"x\0"), 3],
        ]
        .concat();
        let bytes = types.len() as u32 * 4;
        let header = [u32::from(MAGIC) | 1 << 16, 24, 0, bytes, bytes, strings.len() as u32];
        let words = header.into_iter().chain(types);
        words.flat_map(u32::to_le_bytes).chain(strings.iter().copied()).collect()
    }

    #[test]
    fn functions_and_members_are_found_also_in_nameless_structures() {
        let bytes = sample();
        let btf = Btf::parse(&bytes).unwrap();
        assert_eq!(btf.function("f"), Some(6));
        assert_eq!(btf.function("g"), None);
        assert_eq!(["a", "b", "c"].map(|name| btf.offset("s", name)), [Some(0), Some(4), Some(8)]);
        assert_eq!((btf.offset("s", "d"), btf.size("s")), (None, Some(12)));
        assert_eq!((btf.constant("e", "x"), btf.constant("e", "y")), (Some(3), None));
    }
}
