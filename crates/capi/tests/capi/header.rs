//! Checks that the structures of `include/vellum_measure.h` match those of the Rust sources: the same
//! fields, in the same order, of the same types.

use std::path::Path;

const HEADER: &str = include_str!("../../../../include/vellum_measure.h");

/// Types in C and their Rust names.
const TYPES: &[(&str, &str)] = &[
    ("double", "f64"),
    ("int", "c_int"),
    ("size_t", "usize"),
    ("uint64_t", "u64"),
    ("int64_t", "i64"),
    ("uint32_t", "u32"),
    ("const char *", "*const c_char"),
    ("vel_interval", "VelInterval"),
];

type Fields = Vec<(String, String)>;

/// The name of a structure in the sources: `vel_clock` is `VelClock`.
fn in_rust(name: &str) -> String {
    name.split('_').map(|word| word[..1].to_uppercase() + &word[1..]).collect()
}

/// The names and fields of the header's structures, with the Rust names and types.
fn header_structures(header: &str) -> Vec<(String, Fields)> {
    let mut text = String::new();
    for part in header.split("/*") {
        text.push_str(part.split_once("*/").map_or(part, |(_, code)| code));
    }
    let field = |declaration: &str| -> Fields {
        let (kind, rust) = TYPES
            .iter()
            .find(|(kind, _)| {
                declaration
                    .strip_prefix(kind)
                    .is_some_and(|rest| kind.ends_with('*') || rest.starts_with(' '))
            })
            .unwrap_or_else(|| panic!("{declaration}: this type is not in the table"));
        let names = declaration[kind.len()..].split(',');
        names.map(|name| (name.trim().to_owned(), (*rust).to_owned())).collect()
    };
    let bodies = text.split("typedef struct ").skip(1).filter_map(|rest| {
        let (name, body) = rest.split_once('{').filter(|(name, _)| !name.contains(';'))?;
        Some((name.trim(), body.split_once('}').expect("a body ends").0))
    });
    bodies
        .map(|(name, body)| {
            let declarations = body.split(';').map(str::trim).filter(|part| !part.is_empty());
            (in_rust(name), declarations.flat_map(field).collect())
        })
        .collect()
}

/// The fields of the `repr(C)` structure `name` in the Rust sources.
fn source_fields(sources: &str, name: &str) -> Fields {
    let head = format!("pub struct {name} {{");
    let (before, rest) = sources.split_once(&head).unwrap_or_else(|| panic!("{name} is in the sources"));
    assert!(before.trim_end().ends_with("#[repr(C)]"), "{name} has C's layout");
    let body = rest.split_once('}').expect("a body ends").0;
    let fields = body.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
    let field = |line: &str| {
        let (name, kind) =
            line.trim_start_matches("pub ").trim_end_matches(',').split_once(": ").expect(line);
        (name.to_owned(), kind.to_owned())
    };
    fields.map(field).collect()
}

#[test]
fn structures_match_the_header() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = std::fs::read_dir(folder).expect("the sources");
    let read = |entry: std::io::Result<std::fs::DirEntry>| std::fs::read_to_string(entry?.path());
    let sources: String = files.map(|entry| read(entry).expect("text")).collect();
    let found = header_structures(HEADER);
    assert!(found.len() > 5, "{found:?}");
    for (name, fields) in found {
        assert_eq!(source_fields(&sources, &name), fields, "{name}");
    }
}
