//! The malloc family and C++ new and delete, as the C library and the standards have them, and
//! Vellum's own.

use vellum_conformance::program::header;
use vellum_conformance::scenario::check_all_with;
use vellum_conformance::{Place, check_all, plain};

#[test]
fn the_malloc_family() {
    let place = Place::new();
    check_all(&place.program("interface.c", &["-ldl"]));
}

#[test]
fn new_and_delete() {
    let place = Place::new();
    let program = place.program("newdelete.cc", &["-std=c++17", "-pthread"]);
    for environment in [&[][..], &[("VELLUM_HARDEN", "1")]] {
        check_all_with(&program, environment);
    }
}

/// The header is C and C++, and says what the library exports.
#[test]
fn vellums_own() {
    let place = Place::new();
    let include = format!("-I{}", header().display());
    check_all(&place.program("vel.c", &[&include, "-ldl"]));
    let all = place.file("all.cc");
    std::fs::write(&all, "#include <vellum.h>\nint main() { return 0; }\n").expect("a source file");
    let mut command = std::process::Command::new("c++");
    command.args(["-std=c++98", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", &include]).arg(&all);
    plain(command).succeeded();
}
