//! The shared object under test.
//!
//! ```text
//! VELLUM_LIB                        as said
//! run by cargo                      built first (release profile), so it is never older than the sources
//! run directly                      TARGET/{release,debug}/libvellum.so beside this test's own executable
//! ```
//!
//! The last serves prebuilt tests run by a user who has no cargo, or may not write the build directory.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const NAME: &str = "libvellum.so";

/// The path of `libvellum.so`; found or built once in a process.
///
/// # Panics
/// If there is none, saying where it was looked for.
pub fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        if let Some(asked) = std::env::var_os("VELLUM_LIB").filter(|value| !value.is_empty()) {
            let asked = PathBuf::from(asked);
            assert!(asked.is_file(), "VELLUM_LIB={} is not a file", asked.display());
            return asked;
        }
        let target = target_directory();
        if let Some(cargo) = std::env::var_os("CARGO") {
            build(&cargo, &target);
        }
        let looked = ["release", "debug"].map(|profile| target.join(profile).join(NAME));
        looked.iter().find(|path| path.is_file()).cloned().unwrap_or_else(|| {
            panic!(
                "no {NAME} at {looked:?}: run `cargo build --release -p vellum-runtime`, or set VELLUM_LIB"
            )
        })
    })
}

/// The command `vellum`, if it has been built beside the library.
pub fn command() -> Option<PathBuf> {
    let command = library().with_file_name("vellum");
    command.is_file().then_some(command)
}

fn target_directory() -> PathBuf {
    let own = std::env::current_exe().expect("a program knows its executable");
    // TARGET/PROFILE/deps/test-HASH, or TARGET/PROFILE/program
    let in_deps = own.parent().is_some_and(|folder| folder.ends_with("deps"));
    let deep = if in_deps { 3 } else { 2 };
    own.ancestors().nth(deep).expect("an executable lies in its profile's folder").to_path_buf()
}

fn build(cargo: &std::ffi::OsStr, target: &Path) {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml");
    let made = Command::new(cargo)
        .args(["build", "--release", "--quiet", "-p", "vellum-runtime", "--manifest-path"])
        .arg(manifest)
        .arg("--target-dir")
        .arg(target)
        .status()
        .expect("cargo starts");
    assert!(made.success(), "libvellum.so does not build");
}
