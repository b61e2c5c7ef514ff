//! Compares the structures of `include/vellum_gc.h` and `interface`: the same fields, order and types.

use vellum_wire::interface::{Config, Stats};

const HEADER: &str = include_str!("../../../include/vellum_gc.h");

/// The fields of `struct name` in the header, as names and types.
fn fields(header: &str, name: &str) -> Vec<(String, String)> {
    let mut text = String::new();
    let mut rest = header;
    while let Some((code, comment)) = rest.split_once("/*") {
        text.push_str(code);
        rest = comment.split_once("*/").expect("a comment ends").1;
    }
    text.push_str(rest);
    let start = text.find(&format!("\nstruct {name} {{")).unwrap_or_else(|| panic!("{name} is declared"));
    let body = text[start..].split_once('{').expect("a body").1.split_once('}').expect("its end").0;
    let field = |declaration: &str| {
        let (kind, name) = declaration.trim().rsplit_once(' ').expect("a type and a name");
        (name.to_owned(), kind.to_owned())
    };
    body.split(';').filter(|part| !part.trim().is_empty()).map(field).collect()
}

fn expected(of: &[(&str, &str)]) -> Vec<(String, String)> {
    let in_c = |kind: &str| match kind {
        "usize" => "size_t",
        "c_int" => "int",
        "c_uint" => "unsigned",
        "u64" => "uint64_t",
        other => panic!("{other} has no name in C here"),
    };
    of.iter().map(|&(name, kind)| (name.to_owned(), in_c(kind).to_owned())).collect()
}

#[test]
fn the_header_has_the_same_structures() {
    assert_eq!(fields(HEADER, "vel_gc_config"), expected(Config::FIELDS));
    assert_eq!(fields(HEADER, "vel_gc_stats"), expected(Stats::FIELDS));
}
