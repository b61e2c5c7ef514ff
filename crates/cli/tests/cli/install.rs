//! Tests of installations and packages, which the repository's scripts make from the output of `./build`.
//! Each test works in a temporary folder.

use crate::common::{out, said, text};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// The largest allowed sizes of installed files, in bytes.
const SIZES: [(&str, u64); 3] =
    [("bin/vellum", 12_000_000), ("lib/libvelmeasure.a", 3_000_000), ("lib/libvellum.a", 1_000_000)];
/// The interfaces: the pkg-config name, a program that uses it, and the headers as programs name them.
const INTERFACES: [(&str, &str, &[&str]); 4] = [
    ("vellum", "batch.c", &["vellum.h"]),
    ("vellum-gc", "tree.c", &["vellum_gc.h"]),
    ("vellum-measure", "timing.c", &["vellum_measure.h"]),
    ("bdw-gc", "libgc.c", &["gc.h", "gc/gc.h", "gc_typed.h", "gc/gc_inline.h"]),
];
/// Prints the number of executable mappings of Vellum's library.
const COPIES: &str = include_str!("../heap/copies.c");

fn plain(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    command.env("TMPDIR", std::env::temp_dir());
    command
}

/// Runs a command that must succeed; returns its standard output.
fn done(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let out = out(&output);
    assert!(output.status.success(), "{command:?}: {}\n{out}{}", output.status, said(&output));
    out
}

/// Returns whether a program is installed; skips if not.
fn here(program: &str) -> bool {
    let found = plain("sh").args(["-c", &format!("command -v {program}")]).output();
    let found = found.is_ok_and(|found| found.status.success());
    if !found {
        vellum_skip::skip(format_args!("there is no {program}"));
    }
    found
}

/// One of the repository's scripts; `None`, with a skip, if `./build` has not made everything.
fn script(name: &str) -> Option<Command> {
    let built = Path::new(REPOSITORY).join("target/release");
    let last = built.join("NOTICES");
    if !last.is_file() || !built.join("libgccpp.so").is_file() {
        vellum_skip::skip(format_args!("there is no {}: run ./build --release", last.display()));
        return None;
    }
    Some(plain(Path::new(REPOSITORY).join(name)))
}

struct Installed {
    place: TempDir,
    destination: PathBuf,
    root: PathBuf,
}

impl Installed {
    /// `None`, with a skip, if one of `programs` is missing, which the test needs.
    fn with(programs: &[&str]) -> Option<Installed> {
        if !programs.iter().all(|program| here(program)) {
            return None;
        }
        let place = TempDir::new().unwrap();
        let destination = place.path().canonicalize().unwrap().join("root");
        fs::create_dir(&destination).unwrap();
        done(script("install")?.args(["--prefix", "/opt/vellum", "--destdir", text(&destination)]));
        Some(Installed { root: destination.join("opt/vellum"), destination, place })
    }

    fn file(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// The words that pkg-config prints for `package`.
    fn flags(&self, package: &str, options: &[&str]) -> Vec<String> {
        let mut command = plain("pkg-config");
        let folders = format!("{0}/lib/pkgconfig:{0}/lib/vellum/pkgconfig", self.root.display());
        command.env("PKG_CONFIG_PATH", folders).args(["--cflags", "--libs"]).args(options).arg(package);
        done(&mut command).split_whitespace().map(str::to_owned).collect()
    }

    /// Compiles `source` for `package`, as a user would.
    fn compiled(&self, source: &Path, package: &str, options: &[&str]) -> PathBuf {
        let program = self.place.path().join(source.file_stem().unwrap());
        let mut command = plain("cc");
        command.args(["-O1", "-Wall", "-Wextra", "-Werror"]).args(options);
        command.arg(source).arg("-o").arg(&program);
        let linked: &[&str] = if options.contains(&"-static") { &["--static"] } else { &[] };
        done(command.args(self.flags(package, linked)));
        program
    }

    /// `program`, with the libraries on the library path.
    fn run(&self, program: &Path) -> Command {
        let mut command = plain(program);
        command.env("LD_LIBRARY_PATH", self.file("lib"));
        command
    }

    /// `program` under the installed `vellum run` with `options`, with the libraries on the library path.
    fn under_vellum(&self, options: &[&str], program: &Path) -> Command {
        let mut command = self.run(&self.file("bin/vellum"));
        command.args(["run", "-q"]).args(options).arg("--").arg(program);
        command
    }
}

/// `command` with the repository hidden; `None`, with a skip, if that is impossible here.
fn without_the_repository(command: &Command) -> Option<Command> {
    const SCRIPT: &str = r#"mount -t tmpfs none "$1" && shift && cd / && exec "$@""#;
    let repository = Path::new(REPOSITORY).canonicalize().unwrap();
    let mut hidden = in_namespace(SCRIPT)?;
    hidden.arg(repository).arg(command.get_program()).args(command.get_args());
    Some(hidden)
}

/// A shell that runs `script` with permission to mount; `None`, with a skip, if that is impossible here.
fn in_namespace(script: &str) -> Option<Command> {
    let unshare = || {
        let mut command = plain("unshare");
        let root = rustix::process::geteuid().is_root();
        command.args([if root { "-m" } else { "-rm" }, "sh", "-c"]);
        command
    };
    let tried = unshare().arg("mount -t tmpfs none /mnt").output();
    if !tried.as_ref().is_ok_and(|tried| tried.status.success()) {
        vellum_skip::skip(format_args!("no namespace of mounts can be made here: {tried:?}"));
        return None;
    }
    let mut command = unshare();
    command.args([script, "sh"]);
    Some(command)
}

fn below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            found.extend(below(&entry.path()));
        }
        found.push(entry.path());
    }
    found.sort();
    found
}

fn refused(command: &mut Command, why: &str) {
    let output = command.output().unwrap();
    assert!(!output.status.success() && said(&output).contains(why), "{why}: {output:?}");
}

#[test]
fn installation_is_small_complete_and_removable() {
    let Some(installed) = Installed::with(&[]) else { return };
    for (file, most) in SIZES {
        let bytes = fs::metadata(installed.file(file)).unwrap().len();
        assert!(bytes <= most, "{file} has {bytes} bytes");
    }
    for (file, words) in [
        ("share/man/man1/vellum-run.1", "vellum run"),
        ("share/bash-completion/completions/vellum", "complete"),
        ("share/zsh/site-functions/_vellum", "#compdef vellum"),
        ("share/fish/vendor_completions.d/vellum.fish", "complete"),
        ("share/doc/vellum/LICENSE-MIT", "MIT"),
        ("share/doc/vellum/LICENSE-APACHE", "Apache"),
        ("share/doc/vellum/NOTICES", "clap_builder"),
        ("share/doc/vellum/docs/run.md", "vellum run"),
    ] {
        let found =
            fs::read_to_string(installed.file(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert!(found.contains(words), "{file} has no {words}");
    }
    for file in below(&installed.root) {
        let mode = fs::metadata(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display())).mode();
        assert_eq!((mode & 0o022, mode & 0o444), (0, 0o444), "{}: {mode:o}", file.display());
    }
    done(plain(installed.file("lib/vellum/uninstall")).current_dir(&installed.root));
    assert_eq!(below(&installed.destination), Vec::<PathBuf>::new());
}

/// A later installation replaces an earlier one and its extra files, and is removed completely.
#[test]
fn later_installation_replaces_an_earlier_one() {
    let Some(installed) = Installed::with(&[]) else { return };
    let destination = &installed.destination;
    let (manifest, old) = (installed.file("lib/vellum/manifest"), installed.file("lib/vellum/old/file"));
    fs::create_dir(old.parent().unwrap()).unwrap();
    fs::write(&old, "").unwrap();
    let mut listed = fs::read_to_string(&manifest).unwrap();
    listed.push_str("lib/vellum/old/\nlib/vellum/old/file\n");
    fs::write(&manifest, listed).unwrap();
    fs::write(installed.file("include/vellum.h"), "damaged").unwrap();
    let options = ["--prefix=/opt/vellum".to_owned(), format!("--destdir={}", destination.display())];
    done(script("install").unwrap().args(&options));
    assert!(!old.exists());
    assert!(fs::read_to_string(installed.file("include/vellum.h")).unwrap().contains("vel_malloc_batch"));
    let kept = installed.file("include/of_another.h");
    fs::write(&kept, "").unwrap();
    done(script("uninstall").unwrap().args(&options));
    let left: Vec<PathBuf> = below(destination).into_iter().filter(|path| !path.is_dir()).collect();
    assert_eq!(left, [kept]);
    refused(script("uninstall").unwrap().args(&options), "nothing was installed");
}

#[test]
fn foreign_files_are_left_alone() {
    let place = TempDir::new().unwrap();
    let theirs = place.path().join("usr/local/include/vellum.h");
    fs::create_dir_all(theirs.parent().unwrap()).unwrap();
    fs::write(&theirs, "theirs").unwrap();
    let Some(mut install) = script("install") else { return };
    refused(install.args(["--destdir", text(place.path())]), "include/vellum.h is there");
    assert_eq!(fs::read_to_string(theirs).unwrap(), "theirs");
    assert_eq!(below(place.path()).iter().filter(|path| path.is_file()).count(), 1);
}

#[test]
fn wrong_options_and_manifests_are_refused() {
    for (name, options, why) in [
        ("install", &["--prefix", "here"][..], "not an absolute path"),
        ("install", &["--destdir"], "needs a directory"),
        ("install", &["--frobnicate"], "Usage:"),
        ("package", &[], "Usage:"),
    ] {
        let Some(mut script) = script(name) else { return };
        refused(script.args(options), why);
    }
    for name in ["install", "uninstall", "package"] {
        let help = done(script(name).unwrap().arg("--help"));
        assert!(help.starts_with("Usage:"), "{help}");
    }
    for entry in ["../../outside", "/outside", "lib/../../outside", ""] {
        let place = TempDir::new().unwrap();
        let folder = place.path().join("usr/local/lib/vellum");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("manifest"), format!("{entry}\n")).unwrap();
        let mut uninstall = script("uninstall").unwrap();
        refused(uninstall.args(["--destdir", text(place.path())]), "names");
    }
}

/// The path of the library in the output of `cat /proc/self/maps`.
fn library_in(maps: &str) -> Vec<&str> {
    let code = maps.lines().filter(|line| line.contains(" r-xp ") && line.contains("libvellum"));
    code.filter_map(|line| line.find('/').map(|at| &line[at..])).collect()
}

fn preloads_its_own_library(root: &Path) {
    let maps = done(plain(root.join("bin/vellum")).args(["run", "-q", "--", "cat", "/proc/self/maps"]));
    assert_eq!(library_in(&maps), [text(&root.join("lib/vellum/libvellum.so"))]);
}

#[test]
fn installed_command_works_without_the_repository() {
    let Some(installed) = Installed::with(&[]) else { return };
    let own = installed.file("lib/vellum/libvellum.so");
    let mut hide = true;
    let mut elsewhere = |arguments: &[&str]| {
        let mut command = plain(installed.file("bin/vellum"));
        command.args(arguments).current_dir("/");
        let hidden = if hide { without_the_repository(&command) } else { None };
        hide = hidden.is_some();
        hidden.unwrap_or(command)
    };
    assert_eq!(done(&mut elsewhere(&["run", "--", "true"])), "");
    let maps = done(&mut elsewhere(&["run", "-q", "--", "cat", "/proc/self/maps"]));
    assert_eq!(library_in(&maps), [text(&own)]);
    // `vellum cost` finds the recorder.
    done(&mut elsewhere(&["cost", "--", "true"]));
    // If it was built, the experiments' program runs, and reports unknown work.
    let why =
        if installed.file("bin/vellum-papers").exists() { "no work called \"bogus\"" } else { "lab/build" };
    refused(&mut elsewhere(&["papers", "work", "bogus"]), why);
    // The installation works from a path with blanks.
    let moved = installed.destination.join("a folder");
    fs::rename(&installed.root, &moved).unwrap();
    preloads_its_own_library(&moved);
}

#[test]
fn examples_of_every_header_build_with_pkg_config() {
    let Some(installed) = Installed::with(&["pkg-config", "cc"]) else { return };
    for (package, example, headers) in INTERFACES {
        let program =
            installed.compiled(&installed.file("share/doc/vellum/examples").join(example), package, &[]);
        let output = done(&mut installed.run(&program));
        assert!(!output.is_empty(), "{example}");
        if package != "vellum-measure" {
            let again = done(&mut installed.under_vellum(&[], &program));
            assert_eq!(again, output, "{example} under vellum run");
        }
        // Each header alone.
        for name in headers {
            let source = installed.place.path().join("alone.c");
            fs::write(&source, format!("#include <{name}>\nint main(void) {{ return 0; }}\n")).unwrap();
            done(&mut installed.run(&installed.compiled(&source, package, &[])));
        }
    }
}

/// The preloaded library and the library that a program is linked with have the same SONAME.
#[test]
fn linked_program_loads_the_library_once() {
    let Some(installed) = Installed::with(&["pkg-config", "cc"]) else { return };
    let source = installed.place.path().join("copies.c");
    fs::write(&source, COPIES).unwrap();
    let linked = [
        ("vellum", "-DHEADER=<vellum_gc.h>", "-DUSE=vel_gc_alloc(8)"),
        ("bdw-gc", "-DHEADER=<gc.h>", "-DUSE=GC_MALLOC(8)"),
    ];
    for (package, header, function) in linked {
        let program = installed.compiled(&source, package, &[header, function]);
        assert_eq!(done(&mut installed.run(&program)), "1\n", "{package}");
        let under = done(&mut installed.under_vellum(&["--libgc"], &program));
        assert_eq!(under, "1\n", "{package} under vellum run");
        // With a library of another checkout: the preloaded one is used, as it has the same SONAME.
        let mut preloaded = installed.run(&program);
        preloaded.env("LD_PRELOAD", Path::new(REPOSITORY).join("target/release/libvellum.so"));
        assert_eq!(done(&mut preloaded), "1\n", "{package} with another library preloaded");
    }
}

#[test]
fn static_libraries_export_whole_interfaces() {
    let Some(installed) = Installed::with(&["cc"]) else { return };
    let place = installed.place.path();
    let program = place.join("all");
    let mut compile = plain("cc");
    compile.args(["-O1", "-D_GNU_SOURCE", "-o", text(&program)]);
    compile.arg(Path::new(REPOSITORY).join("crates/capi/tests/c/all.c"));
    compile.arg("-I").arg(installed.file("include"));
    done(compile.arg(installed.file("lib/libvelmeasure.a")).args(["-lpthread", "-ldl", "-lm"]));
    assert!(done(plain(&program).arg(place)).ends_with("all passed\n"));
    if !here("pkg-config") {
        return;
    }
    for (package, example) in [("vellum-measure", "timing.c"), ("vellum", "batch.c")] {
        let example = installed.file("share/doc/vellum/examples").join(example);
        let program = installed.compiled(&example, package, &["-static"]);
        assert!(!done(&mut plain(&program)).is_empty());
    }
}

#[test]
fn cmake_finds_the_libraries() {
    const PROJECT: &str = "cmake_minimum_required(VERSION 3.10)\nproject(users C)\n\
        find_package(Vellum 0.1 REQUIRED)\n\
        foreach(one batch:vellum batch-static:vellum-static tree:vellum timing:measure timing-static:measure-static libgc:libgc)\n\
        string(REPLACE \":\" \";\" pair ${one})\nlist(GET pair 0 name)\nlist(GET pair 1 library)\n\
        string(REPLACE \"-static\" \"\" source ${name})\n\
        add_executable(${name} ${EXAMPLES}/${source}.c)\n\
        target_link_libraries(${name} Vellum::${library})\nendforeach()\n\
        target_link_options(batch-static PRIVATE -static)\n";
    let Some(installed) = Installed::with(&["cmake", "make", "cc"]) else { return };
    let (source, build) = (installed.place.path().join("users"), installed.place.path().join("made"));
    fs::create_dir(&source).unwrap();
    fs::write(source.join("CMakeLists.txt"), PROJECT).unwrap();
    let define = |name: &str, path: &Path| format!("-D{name}={}", path.display());
    let mut configure = plain("cmake");
    configure.args(["-S", text(&source), "-B", text(&build)]);
    configure.arg(define("CMAKE_PREFIX_PATH", &installed.root));
    done(configure.arg(define("EXAMPLES", &installed.file("share/doc/vellum/examples"))));
    done(plain("cmake").args(["--build", text(&build)]));
    for program in ["batch", "batch-static", "tree", "timing", "timing-static", "libgc"] {
        assert!(!done(&mut plain(build.join(program))).is_empty(), "{program}");
    }
}

/// The only package that `./package KIND` makes in `place`, and the printed line about it.
fn packed(kind: &str, place: &Path) -> Option<(PathBuf, String)> {
    let line = done(script("package")?.args(["--out", text(place), kind]));
    let (path, needs) = line.split_once(" (needs: ").expect("a path, and what it needs");
    Some((path.into(), needs.trim_end_matches(")\n").to_owned()))
}

#[test]
fn archive_works_where_it_is_unpacked() {
    let place = TempDir::new().unwrap();
    let folder = place.path().canonicalize().unwrap();
    let Some((archive, needs)) = packed("tar", &folder) else { return };
    assert!(needs.starts_with("glibc 2.") && needs.ends_with(" or later"), "{needs}");
    let unpacked = folder.join("some where");
    fs::create_dir(&unpacked).unwrap();
    done(plain("tar").args(["-xzf", text(&archive), "-C", text(&unpacked)]));
    let root = below(&unpacked).into_iter().next().expect("one folder");
    preloads_its_own_library(&root);
    done(&mut plain(root.join("lib/vellum/uninstall")));
    assert_eq!(below(&unpacked), Vec::<PathBuf>::new());
}

/// Copies the libraries that `program` is linked with, and the loader, to the same paths below `root`.
fn copy_libraries(program: &Path, root: &Path) {
    for word in done(plain("ldd").arg(program)).split_whitespace().filter(|word| word.starts_with('/')) {
        let to = root.join(&word[1..]);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(word, to).unwrap_or_else(|error| panic!("{word}: {error}"));
    }
}

#[test]
fn debian_package_installs_works_and_uninstalls_in_a_clean_root() {
    if !here("dpkg-deb") {
        return;
    }
    let place = TempDir::new().unwrap();
    let Some((package, needs)) = packed("deb", place.path()) else { return };
    assert!(needs.starts_with("libc6 (>= 2.") && needs.ends_with("libgcc-s1"), "{needs}");
    works_in_a_clean_root(&package);
    dpkg_installs_and_removes(&package);
}

/// Checks the package in a root with only the package and the libraries that it depends on.
fn works_in_a_clean_root(package: &Path) {
    const SCRIPT: &str =
        r#"mount --rbind /proc "$1/proc" && mount --rbind /dev "$1/dev" && exec chroot "$@""#;
    if !here("ldd") {
        return;
    }
    let root = package.parent().unwrap().canonicalize().unwrap().join("root");
    done(plain("dpkg-deb").args(["-x", text(package), text(&root)]));
    assert!(!root.join("usr/lib/vellum/manifest").exists(), "dpkg keeps the list");
    copy_libraries(&root.join("usr/bin/vellum"), &root);
    let cat = Path::new("/bin/cat").canonicalize().unwrap();
    copy_libraries(&cat, &root);
    fs::copy(cat, root.join("usr/bin/cat")).unwrap();
    for folder in ["proc", "dev", "tmp"] {
        fs::create_dir(root.join(folder)).unwrap();
    }
    let Some(mut run) = in_namespace(SCRIPT) else { return };
    run.arg(&root)
        .args(["/usr/bin/vellum", "run", "--", "/usr/bin/cat", "/proc/self/maps"])
        .env_remove("TMPDIR");
    let output = run.output().unwrap();
    let maps = String::from_utf8_lossy(&output.stdout);
    assert_eq!(library_in(&maps), ["/usr/lib/vellum/libvellum.so"], "{}", said(&output));
    assert!(said(&output).contains("exit status 0"), "{}", said(&output));
}

fn dpkg_installs_and_removes(package: &Path) {
    if !here("dpkg") {
        return;
    }
    if !rustix::process::geteuid().is_root() {
        return vellum_skip::skip("only root may use dpkg --root");
    }
    let place = TempDir::new().unwrap();
    let root = place.path().join("root");
    for folder in ["var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    fs::write(root.join("var/lib/dpkg/status"), "").unwrap();
    let dpkg = |arguments: &[&str]| {
        let mut command = plain("dpkg");
        let log = format!("--log={}", place.path().join("log").display());
        // Forced, as the libraries that it depends on are not in that root.
        command.arg(format!("--root={}", root.display())).args([&log, "--force-depends"]).args(arguments);
        done(&mut command)
    };
    dpkg(&["--install", text(package)]);
    assert!(root.join("usr/bin/vellum").is_file());
    assert_eq!(dpkg(&["--verify", "vellum"]), "");
    dpkg(&["--purge", "vellum"]);
    assert!(!root.join("usr").exists(), "{:?}", below(&root.join("usr")));
}
