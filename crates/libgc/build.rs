//! Links the library to `libvellum.so`, which has to be built before (`./build` does), and names it as
//! programs look for it.

use std::env;
use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo names the output directory"));
    // TARGET/PROFILE/build/NAME/out
    let profile = out.ancestors().nth(3).expect("it lies in the target directory");
    println!("cargo::rustc-cdylib-link-arg=-L{}", profile.display());
    // By name, so that the loader takes the one that is preloaded, or the one beside or above this library.
    println!("cargo::rustc-cdylib-link-arg=-Wl,--no-as-needed,-lvellum");
    // libvellum.so names no C library and so must come before it in the loader's list, which a mere
    // dependency of a dependency does not: what a library is a filter for comes directly before it.
    println!("cargo::rustc-cdylib-link-arg=-Wl,--filter=libvellum.so.0");
    println!("cargo::rustc-cdylib-link-arg=-lc");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libgc.so.1");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-rpath,$ORIGIN:$ORIGIN/..");
}
