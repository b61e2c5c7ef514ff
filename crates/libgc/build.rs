//! Links this library to `libvellum.so`, which `./build` builds first. Gives this library the name by which
//! programs search for it (`libgc.so.1`).
//!
//! The library depends on the C library but on no version of its symbols: it is linked to a stand-in without
//! symbols. Any glibc that has the functions can therefore load it, even one older than the build machine's.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo names the output directory"));
    // TARGET/PROFILE/build/NAME/out
    let profile = out.ancestors().nth(3).expect("it lies in the target directory");
    // Background threads and allocated blocks exist beyond `dlclose`.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo::rustc-cdylib-link-arg=-L{}", profile.display());
    // By name: the loader uses the preloaded library, or the one beside or above this library.
    println!("cargo::rustc-cdylib-link-arg=-Wl,--no-as-needed,-lvellum");
    // libvellum.so names no C library, so it must precede the C library in the loader's list. A dependency of
    // a dependency does not; the library that this one is a filter for is placed directly before it.
    println!("cargo::rustc-cdylib-link-arg=-Wl,--filter=libvellum.so.0");
    println!("cargo::rustc-cdylib-link-arg={}", c_library_without_symbols(&out).display());
    // The static part of glibc, with `atexit` and `pthread_atfork`.
    println!("cargo::rustc-cdylib-link-arg=-l:libc_nonshared.a");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libgc.so.1");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-rpath,$ORIGIN:$ORIGIN/..");
}

/// Makes an empty library in `folder`, which linkers take for the C library.
fn c_library_without_symbols(folder: &Path) -> PathBuf {
    println!("cargo::rerun-if-env-changed=RUSTC_LINKER");
    let linker = env::var_os("RUSTC_LINKER").unwrap_or_else(|| "cc".into());
    let made = folder.join("libc.so.6");
    let status = Command::new(&linker)
        .args(["-shared", "-nostdlib", "-Wl,-soname,libc.so.6", "-o"])
        .arg(&made)
        .args(["-x", "c", "/dev/null"])
        .status()
        .unwrap_or_else(|error| panic!("{}: {error}", linker.display()));
    assert!(status.success(), "{} made no library: {status}", linker.display());
    made
}
