//! Links this library to `libgc.so.1`, which `./build` builds first. Gives this library the name by which
//! programs search for it (`libgccpp.so.1`).

use std::env;
use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo names the output directory"));
    // TARGET/PROFILE/build/NAME/out
    let profile = out.ancestors().nth(3).expect("it lies in the target directory");
    // Background threads and allocated blocks exist beyond `dlclose`.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo::rustc-cdylib-link-arg=-L{}", profile.display());
    println!("cargo::rustc-cdylib-link-arg=-Wl,-rpath-link,{}", profile.display());
    // By name: the loader uses the program's library, or the one beside this library.
    println!("cargo::rustc-cdylib-link-arg=-Wl,--no-as-needed,-lgc");
    println!("cargo::rustc-cdylib-link-arg=-l:libstdc++.so.6");
    println!("cargo::rustc-cdylib-link-arg=-lc");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libgccpp.so.1");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-rpath,$ORIGIN");
}
