//! Sets the soname of the shared library, the name under which linked programs search for it. Change the
//! soname's number when programs must be linked again; `install` and `packaging/cmake` have it too.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libvelmeasure.so.0");
}
