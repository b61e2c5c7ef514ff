//! Sets the shared library's soname: the name under which linked programs search for the library. When
//! programs must be linked again, change the number in the soname, also in `install` and `packaging/cmake`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libvelmeasure.so.0");
}
