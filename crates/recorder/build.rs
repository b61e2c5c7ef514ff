//! Keeps the library loaded when a program closes it (`nodelete`), as calls of the program still lead to it.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
