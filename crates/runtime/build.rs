//! Gives the library its SONAME, and places next to each other the functions that ordinary programs run.
//!
//! The SONAME is the name by which linked programs search for the library. Its number changes when programs
//! must be linked again. A symbolic link of this name is made beside the library, for programs that are
//! linked with it there.
//!
//! The kernel maps a library's code in runs of sixteen pages around each touched page. A program runs about
//! 160 KB of the library's 540 KB. Spread over the whole library, these functions would make nearly all of
//! it resident in every process: a fifth of a small process's memory.
//!
//! `resident.txt` lists these functions. The build makes a linker script from the list; other code keeps its
//! order. With another linker or older symbol names, all code keeps its order.

use std::fmt::Write as _;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::{env, fs, io};

/// Repeated in `vellum_process::library`, libgc's build.rs, `install`, `package` and `packaging/cmake`.
const SONAME: &str = "libvellum.so.0";

const LIST: &str = "resident.txt";
/// Environment variable: keep the default order of functions. Valgrind finds no names of functions that lie
/// in separate sections.
const UNORDERED: &str = "VELLUM_UNORDERED";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={LIST}");
    println!("cargo::rerun-if-env-changed={UNORDERED}");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo names the output directory"));
    // Background threads and allocated blocks exist beyond `dlclose`.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,{SONAME}");
    // TARGET/PROFILE/build/NAME/out
    let link = out.ancestors().nth(3).expect("it lies in the target directory").join(SONAME);
    match symlink("libvellum.so", &link) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => panic!("{}: {error}", link.display()),
        _ => {}
    }
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    if env::var_os(UNORDERED).is_some() || flags.contains("linker") || flags.contains("fuse-ld") {
        return;
    }
    let list = fs::read_to_string(LIST).expect("the list of functions lies beside this file");
    let mut script = String::from("SECTIONS\n{\n  .text.resident :\n  {\n");
    for line in list.lines().filter(|line| !line.starts_with('#')) {
        writeln!(script, "    {}", sections(line)).expect("a string takes all");
    }
    script.push_str("  }\n}\nINSERT BEFORE .text;\n");
    let to = out.join("order.ld");
    fs::write(&to, script).expect("the output directory can be written to");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-T,{}", to.display());
}

/// The sections of the functions with these symbol names. Each function has a section named after it, with
/// one more word for rarely called functions.
fn sections(line: &str) -> String {
    let names: Vec<&str> = line.split(' ').collect();
    match names[..] {
        [name] => format!("*(.text.{name} .text.*.{name})"),
        _ => {
            let parts: Vec<String> = names.iter().map(|name| mangled(name)).collect();
            format!("*(.text.*_R*{}*)", parts.join("*"))
        }
    }
}

/// A name as in symbols (Rust RFC 2603): after its length, and an underscore if it would be ambiguous.
fn mangled(name: &str) -> String {
    let parted = name.starts_with(|first: char| first == '_' || first.is_ascii_digit());
    format!("{}{}{name}", name.len(), if parted { "_" } else { "" })
}
