//! Tests that `libgc.so.1` keeps the guarantees of `gc.h`: exported names, headers, and C programs that check
//! them. Longer tests are in `lab/stress`: existing programs for libgc, and collections at random moments.

use crate::common::{VELLUM, has, said, text};
use crate::libgc_programs::{
    PROGRAMS, REPOSITORY, compiled, compiled_cpp, folder, on_the_library_path, passes,
};
use object::Object;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use vellum_sys::caps::{self, Caps};
use vellum_sys::track::Tracker;

#[test]
fn cpp_programs_pass_the_checks_of_gc_cpp_h() {
    let Some(folder) = folder() else { return };
    let place = tempfile::tempdir().unwrap();
    let Some(program) = compiled_cpp(&folder, place.path()) else { return };
    passes_both_ways(&program, &folder, "objects");
}

/// Runs a program by library path and by `vellum run`.
fn passes_both_ways(program: &Path, folder: &Path, name: &str) {
    passes(&on_the_library_path(program, folder).output().unwrap(), name);
    let mut run = Command::new(VELLUM);
    run.args(["run", "-q", "--libgc", "--lib"]).arg(folder.join("../libvellum.so")).arg("--");
    passes(&run.arg(program).env_remove("LD_PRELOAD").output().unwrap(), name);
}

/// Runs a C program that checks the headers' guarantees, in two dialects, by library path and `vellum run`.
fn finds_what_gc_h_promises(name: &str) {
    let Some(folder) = folder() else { return };
    let place = tempfile::tempdir().unwrap();
    for flags in [&["-std=gnu99"][..], &["-std=gnu17", "-DGC_DEBUG"]] {
        let Some(program) = compiled(name, flags, &folder, place.path()) else { return };
        passes_both_ways(&program, &folder, name);
    }
}

macro_rules! c_programs {
    ($($name:ident)*) => {
        mod c_programs {
            $(
                #[test]
                fn $name() {
                    super::finds_what_gc_h_promises(stringify!($name));
                }
            )*

            #[test]
            fn these_are_all() {
                assert_eq!(super::PROGRAMS, [$(stringify!($name)),*]);
            }
        }
    };
}

// Each name is a file of crates/libgc/tests/c.
c_programs! { objects finalizers generations kinds threads typed variables dead gcj world }

#[test]
fn environment_variables_work_or_are_reported_as_ignored() {
    let Some(folder) = folder() else { return };
    let place = tempfile::tempdir().unwrap();
    let Some(program) = compiled("typed", &[], &folder, place.path()) else { return };
    let set = [("GC_NPROCS", "4"), ("GC_PRINT_STATS", "1"), ("GC_MAXIMUM_HEAP_SIZE", "a lot")];
    let ended = on_the_library_path(&program, &folder).envs(set).output().unwrap();
    passes(&ended, "typed");
    let said = said(&ended);
    has(&said, &["GC_NPROCS is ignored", "GC_MAXIMUM_HEAP_SIZE=a lot is ignored", "collections  "]);
    // The objects program gets a fortieth of the memory it needs.
    let Some(program) = compiled("objects", &[], &folder, place.path()) else { return };
    let ended = on_the_library_path(&program, &folder).env("GC_MAXIMUM_HEAP_SIZE", "256k").output().unwrap();
    assert!(!ended.status.success(), "the limit did not hold");
}

#[test]
fn most_collections_leave_old_objects_alone() {
    let Some(folder) = folder() else { return };
    let place = tempfile::tempdir().unwrap();
    let Some(program) = compiled("generations", &[], &folder, place.path()) else { return };
    let partial = |variable: &str| {
        let mut command = on_the_library_path(&program, &folder);
        let ended = command.envs([("GC_PRINT_STATS", "1"), (variable, "1")]).output().unwrap();
        passes(&ended, "generations");
        let told = said(&ended);
        let figure = |name: &str| -> u64 {
            let line = told.lines().find_map(|line| line.trim().strip_prefix(name));
            line.and_then(|rest| rest.trim().parse().ok())
                .unwrap_or_else(|| panic!("no {name:?} in:\n{told}"))
        };
        (figure("partial"), figure("collections"))
    };
    let (none, whole) = partial("GC_DISABLE_INCREMENTAL");
    assert!(none == 0 && whole > 3, "{none} of {whole}");
    if !caps::has(Caps::TRACK) || Tracker::new().is_err() {
        return vellum_skip::skip("the kernel does not track writes here");
    }
    let (some, all) = partial("NOT_BY_A_VARIABLE");
    assert!(some > 2, "{some} of {all}");
}

#[test]
fn library_has_libgcs_name_and_every_declared_function() {
    let Some(folder) = folder() else { return };
    let library = folder.join("libgc.so.1");
    let Ok(read) = Command::new("readelf").args(["-d", text(&library)]).output() else {
        return vellum_skip::skip("readelf cannot be started");
    };
    assert!(String::from_utf8_lossy(&read.stdout).contains("Library soname: [libgc.so.1]"));
    let exported = exported(&library);
    let mut declared = BTreeSet::new();
    for header in headers() {
        let source = std::fs::read_to_string(&header).unwrap();
        let header = header.display();
        let declares = |line: &&str| line.starts_with("GC_API ") || line.starts_with("extern ");
        for line in source.lines().filter(declares) {
            let before = line.split_once('(').map_or(line.trim_end_matches(';'), |(before, _)| before);
            let name = before.rsplit([' ', '*']).next().filter(|name| name.starts_with("GC_"));
            // The C++ library exports the declarations of gc_cpp.h.
            if let Some(name) = name.filter(|name| *name != "GC_throw_bad_alloc") {
                assert!(exported.contains(name), "{header} declares {name}, which is not there");
                declared.insert(name.to_owned());
            }
        }
    }
    let pages = std::fs::read_to_string(Path::new(REPOSITORY).join("docs/libgc.md")).unwrap();
    for name in exported.difference(&declared) {
        assert!(pages.contains(name), "{name} is exported, but neither declared nor in docs/libgc.md");
    }
}

/// The names of libgc that a library exports.
fn exported(library: &Path) -> BTreeSet<String> {
    let bytes = std::fs::read(library).unwrap();
    let library = object::File::parse(&*bytes).unwrap();
    let exports = library.exports().unwrap();
    let names = exports.filter_map(|export| export.unwrap().name().into_name().map(<[u8]>::to_vec));
    names.map(|name| String::from_utf8(name).unwrap()).filter(|name| name.starts_with("GC_")).collect()
}

/// The headers, except the internal ones that only other headers include.
fn headers() -> BTreeSet<PathBuf> {
    let folder = Path::new(REPOSITORY).join("include/libgc");
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn functions_of_the_distributions_library_are_provided_or_listed_as_missing() {
    let Some(folder) = folder() else { return };
    let theirs = Path::new("/usr/lib/x86_64-linux-gnu/libgc.so.1");
    if !theirs.is_file() {
        return vellum_skip::skip(format_args!("there is no {} (Debian's package libgc1)", theirs.display()));
    }
    let (theirs, ours) = (exported(theirs), exported(&folder.join("libgc.so.1")));
    let pages = std::fs::read_to_string(Path::new(REPOSITORY).join("docs/libgc.md")).unwrap();
    let missing: Vec<&String> =
        theirs.difference(&ours).filter(|name| !pages.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "neither there nor told of in docs/libgc.md: {missing:?}");
}

/// Each header compiles alone, in each language and with each set of macros, without warnings.
#[test]
fn headers_compile_without_warnings() {
    let place = tempfile::tempdir().unwrap();
    let folder = Path::new(REPOSITORY).join("include/libgc");
    for header in headers() {
        let name = header.file_name().unwrap().to_str().unwrap();
        let is_cpp_only = ["gc_cpp.h", "gc_allocator.h"].contains(&name);
        let is_c_only = ["leak_detector.h"].contains(&name);
        let languages = [("cc", "c", "-std=c99"), ("cc", "c", "-std=gnu11"), ("c++", "cc", "-std=c++17")];
        for (compiler, ending, standard) in languages {
            if (compiler == "cc" && is_cpp_only) || (compiler == "c++" && is_c_only) {
                continue;
            }
            let source = place.path().join("source").with_extension(ending);
            let text = format!("#include \"{name}\"\nint main(void) {{ return 0; }}\n");
            std::fs::write(&source, text).unwrap();
            for switches in [&[][..], &["-DGC_THREADS"], &["-DGC_THREADS", "-DGC_DEBUG"]] {
                let mut command = Command::new(compiler);
                command.args([standard, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-I"]);
                command.arg(&folder).args(switches).arg(&source);
                match command.output() {
                    Ok(made) => {
                        assert!(made.status.success(), "{name} {standard} {switches:?}: {}", said(&made));
                    }
                    Err(error) => vellum_skip::skip(format_args!("{compiler} cannot be started: {error}")),
                }
            }
        }
    }
}

#[test]
fn variable_set_to_0_is_off() {
    let Some(folder) = folder() else { return };
    let place = tempfile::tempdir().unwrap();
    let Some(program) = compiled("objects", &[], &folder, place.path()) else { return };
    let mut command = on_the_library_path(&program, &folder);
    for switch in ["GC_FIND_LEAK", "GC_DONT_GC", "GC_PRINT_STATS", "GC_ENABLE_INCREMENTAL"] {
        command.env(switch, "0");
    }
    let ended = command.output().unwrap();
    passes(&ended, "objects");
    assert_eq!(said(&ended), "", "nothing is reported");
}

#[test]
fn leaks_and_overwritten_objects_are_reported() {
    let Some(folder) = folder() else { return };
    let place = tempfile::tempdir().unwrap();
    let Some(program) = compiled("leaks", &["-DGC_DEBUG"], &folder, place.path()) else { return };
    for variable in ["GC_FIND_LEAK", "NOT_BY_A_VARIABLE"] {
        let ended = on_the_library_path(&program, &folder).env(variable, "1").output().unwrap();
        passes(&ended, "leaks");
        let told = said(&ended);
        // The program leaks twenty objects of 48 bytes at one line, and frees as many at another.
        let leaked =
            told.lines().filter(|line| line.contains("leaked: 0x") && line.contains("48 bytes")).count();
        assert!((17..=20).contains(&leaked), "{leaked} objects are reported as leaked:\n{told}");
        // Of 200 objects of 56 bytes, 40 are reported, and the rest is counted.
        let many = told.lines().filter(|line| line.contains("56 bytes")).count();
        assert!((39..=41).contains(&many), "{many} of many objects are reported as leaked:\n{told}");
        assert!(told.contains(" more objects, "), "the rest are not counted:\n{told}");
        assert!(!told.contains(", 16 bytes"), "an object of the library is reported:\n{told}");
        assert!(told.contains("leaks.c:"), "no place is named:\n{told}");
        assert_eq!(told.matches("written over: 0x").count(), 1, "{told}");
        assert_eq!(told.matches("freed twice: 0x").count(), 1, "{told}");
    }
}
