//! Builds mimalloc 3 as a shared library that replaces malloc, and the C code (*kernels*) whose time the
//! section `timing` measures.
//!
//! mimalloc's source is the C code in the crate libmimalloc-sys, compiled with the switches of its release
//! build. Debian has only mimalloc 2, and the crate's own build makes a library without `malloc`.
//!
//! Outputs for the program, as environment variables at compile time:
//! - `VELLUM_BENCH_MIMALLOC3`, `VELLUM_BENCH_MIMALLOC_SECURE`: paths of the default and the secure build.
//! - `VELLUM_BENCH_MIMALLOC3_VERSION`: their version.
//! - `VELLUM_BENCH_KERNELS`: the static library of the kernels. This program and the tools compared with
//!   it link the same library, so all of them time the same instructions.

use std::path::{Path, PathBuf};

const SWITCHES: &[&str] = &[
    "-shared",
    "-fPIC",
    "-O3",
    "-std=gnu11",
    "-fvisibility=hidden",
    "-ftls-model=initial-exec",
    "-fno-builtin-malloc",
    "-DNDEBUG",
    "-DMI_BUILD_RELEASE",
    "-DMI_DEBUG=0",
    "-DMI_MALLOC_OVERRIDE",
    "-DMI_SHARED_LIB",
    "-DMI_SHARED_LIB_EXPORT",
];

/// The kernels' source, and the name of their archive.
const KERNELS: &str = "src/timing/c/kernels.c";
const KERNELS_ARCHIVE: &str = "vellum_timing_kernels";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    kernels();
    mimalloc("MIMALLOC3", &[]);
    mimalloc("MIMALLOC_SECURE", &["-DMI_SECURE=4"]);
}

/// Compiles the kernels, with the same switches in every profile: a chain of arithmetic that the compiler
/// must not vectorise, with line information for `vellum cost`.
fn kernels() {
    println!("cargo:rerun-if-changed={KERNELS}");
    println!("cargo:rerun-if-changed=src/timing/c/kernels.h");
    let mut build = cc::Build::new();
    build.file(KERNELS).opt_level(2).debug(true).flag("-fno-tree-vectorize").flag("-falign-functions=64");
    build.flag("-falign-loops=32").compile(KERNELS_ARCHIVE);
    let folder = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    println!(
        "cargo:rustc-env=VELLUM_BENCH_KERNELS={}",
        folder.join(format!("lib{KERNELS_ARCHIVE}.a")).display()
    );
}

/// Builds mimalloc with `more` switches; its path reaches the program through `VELLUM_BENCH_` and `name`.
fn mimalloc(name: &str, more: &[&str]) {
    let include = PathBuf::from(
        std::env::var_os("DEP_MIMALLOC_INCLUDE_DIR").expect("libmimalloc-sys says where its headers are"),
    );
    let source = include.parent().expect("the headers lie beside the source").join("src");
    let folder = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let object = folder.join(format!("lib{}.so", name.to_lowercase()));

    let status = cc::Build::new()
        .get_compiler()
        .to_command()
        .args(SWITCHES)
        .args(more)
        .arg("-I")
        .arg(&include)
        .arg("-I")
        .arg(&source)
        .arg(source.join("static.c"))
        .args(["-lpthread", "-o"])
        .arg(&object)
        .status()
        .expect("the C compiler that built libmimalloc-sys starts again");
    assert!(status.success(), "building {name} as a shared object failed: {status}");

    println!("cargo:rustc-env=VELLUM_BENCH_{name}={}", object.display());
    println!("cargo:rustc-env=VELLUM_BENCH_MIMALLOC3_VERSION={}", version(&include.join("mimalloc.h")));
}

/// `3.3.2` from the header's `#define MI_MALLOC_VERSION 30302`.
fn version(header: &Path) -> String {
    let text = std::fs::read_to_string(header).expect("mimalloc.h is readable");
    let number: u32 = text
        .lines()
        .find_map(|line| line.strip_prefix("#define MI_MALLOC_VERSION"))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|word| word.parse().ok())
        .expect("mimalloc.h defines MI_MALLOC_VERSION as a number");
    format!("{}.{}.{}", number / 10_000, number / 100 % 100, number % 100)
}
