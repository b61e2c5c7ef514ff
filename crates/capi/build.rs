//! Sets the soname of the shared library, the name under which linked programs search for it. Change its
//! number when programs have to be linked again; `install` and `packaging/cmake` have the number too.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libvelmeasure.so.0");
}
