//! Names the shared library as programs that are linked with it look for it. The number changes when they
//! have to be linked anew; it is also in `install` and `packaging/cmake`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libvelmeasure.so.0");
}
