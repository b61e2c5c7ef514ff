//! Programs written for libgc, on Vellum's `libgc.so.1`: C programs that check the promises of `gc.h`, and
//! one of Debian's.

mod common;
mod libgc_programs;

use common::{VELLUM, said, text};
use libgc_programs::{REPOSITORY, compiled, folder, on_the_library_path, passes};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use vellum_sys::caps::{self, Caps};
use vellum_sys::track::Tracker;

/// Programs that check what the headers promise, each a file of C.
const PROGRAMS: [&str; 10] = [
    "objects",
    "finalizers",
    "generations",
    "kinds",
    "threads",
    "typed",
    "variables",
    "dead",
    "gcj",
    "world",
];

/// Compiles objects.cc for Vellum's libraries; `None`, and a word, where there is no compiler or no
/// `libgccpp.so.1`.
fn compiled_cpp(folder: &Path, place: &Path) -> Option<PathBuf> {
    let library = folder.join("libgccpp.so.1");
    if !library.is_file() {
        vellum_skip::skip(format_args!("there is no {}: run ./build, as ./test does", library.display()));
        return None;
    }
    let program = place.join("objects-cpp");
    let mut command = Command::new("c++");
    command.args(["-std=c++17", "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&program);
    command.arg(Path::new(REPOSITORY).join("crates/libgc/tests/c/objects.cc")).arg("-I");
    command.arg(Path::new(REPOSITORY).join("include/libgc")).args([&library, &folder.join("libgc.so.1")]);
    match command.arg("-lpthread").output() {
        Ok(made) => assert!(made.status.success(), "{}", said(&made)),
        Err(error) => {
            vellum_skip::skip(format_args!("c++ cannot be started: {error}"));
            return None;
        }
    }
    Some(program)
}

#[test]
fn cpp_programs_find_what_gc_cpp_h_promises() {
    let Some(folder) = folder() else { return };
    let place = tempfile::tempdir().unwrap();
    let Some(program) = compiled_cpp(&folder, place.path()) else { return };
    passes(&on_the_library_path(&program, &folder).output().unwrap(), "objects");
    let mut run = Command::new(VELLUM);
    run.args(["run", "-q", "--libgc", "--lib"]).arg(folder.join("../libvellum.so")).arg("--");
    passes(&run.arg(&program).env_remove("LD_PRELOAD").output().unwrap(), "objects");
}

#[test]
fn c_programs_find_what_gc_h_promises() {
    let Some(folder) = folder() else { return };
    let place = tempfile::tempdir().unwrap();
    for name in PROGRAMS {
        for flags in [&["-std=gnu99"][..], &["-std=gnu17", "-DGC_DEBUG"]] {
            let Some(program) = compiled(name, flags, &folder, place.path()) else { return };
            passes(&on_the_library_path(&program, &folder).output().unwrap(), name);
            let mut run = Command::new(VELLUM);
            run.args(["run", "-q", "--libgc", "--lib"]).arg(folder.join("../libvellum.so")).arg("--");
            passes(&run.arg(&program).env_remove("LD_PRELOAD").output().unwrap(), name);
        }
    }
}

/// What the workload of `clients/libgc/stress` is compiled to: the program, and the library that it opens.
fn stress(folder: &Path, place: &Path) -> Option<(PathBuf, PathBuf)> {
    let sources = Path::new(REPOSITORY).join("clients/libgc/stress");
    let (program, library) = (place.join("stress"), place.join("library.so"));
    let mut parts: Vec<PathBuf> =
        std::fs::read_dir(&sources).unwrap().map(|entry| entry.unwrap().path()).collect();
    parts.retain(|part| part.extension().is_some_and(|ending| ending == "c") && !part.ends_with("library.c"));
    parts.sort();
    let mut opened = Command::new("cc");
    opened.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(sources.join("library.c"));
    let mut linked = Command::new("cc");
    linked.args(["-std=gnu11", "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&program).args(parts);
    linked.arg("-I").arg(Path::new(REPOSITORY).join("include/libgc"));
    linked.arg(folder.join("libgc.so.1")).args(["-lpthread", "-ldl"]);
    for mut command in [opened, linked] {
        match command.output() {
            Ok(made) => assert!(made.status.success(), "{}", said(&made)),
            Err(error) => {
                vellum_skip::skip(format_args!("cc cannot be started: {error}"));
                return None;
            }
        }
    }
    Some((program, library))
}

/// A run of the workload in a few seconds: see `clients/libgc/stress.py`, which makes a thousand.
#[test]
fn everything_at_once_at_random_collection_points() {
    let Some(folder) = folder() else { return };
    let place = tempfile::tempdir().unwrap();
    let Some((program, library)) = stress(&folder, place.path()) else { return };
    let seed = u64::from(vellum_random::test_seed(None) as u32);
    // How often allocations collect, and how much is done then.
    for (number, (eager, steps)) in
        (0..).zip([("1", "20"), ("20", "120"), ("300", "500"), ("4000", "900"), ("", "1500")])
    {
        for incremental in [false, true] {
            let mut run = on_the_library_path(&program, &folder);
            run.arg((seed + number).to_string()).arg(&library).args(["4", "4", steps, "1"]);
            if !eager.is_empty() {
                run.env("VELLUM_GC_EAGER", format!("{eager},seed={seed}"));
            }
            if incremental {
                run.env("GC_ENABLE_INCREMENTAL", "1");
            }
            let ended = run.output().unwrap();
            let out = String::from_utf8_lossy(&ended.stdout);
            let is_quiet = ended.stderr.is_empty();
            assert!(
                ended.status.success() && out.ends_with("done\n") && is_quiet,
                "VELLUM_GC_EAGER={eager} incremental {incremental} {:?}: {out}{}",
                ended.status,
                said(&ended)
            );
        }
    }
}

/// Threads in unusual places, and forks beside them.
#[test]
fn threads_may_be_anywhere() {
    let Some(folder) = folder() else { return };
    let place = tempfile::tempdir().unwrap();
    let Some((_, library)) = stress(&folder, place.path()) else { return };
    let Some(program) = compiled("aside", &["-std=gnu17"], &folder, place.path()) else { return };
    for eager in [None, Some("1"), Some("50,seed=3")] {
        let mut run = on_the_library_path(&program, &folder);
        run.arg(&library);
        if let Some(eager) = eager {
            run.env("VELLUM_GC_EAGER", eager);
        }
        passes(&run.output().unwrap(), "aside");
    }
}

/// A library of the program's brings libgc.so.1, with the mathematical library behind it, as ecl's does, or
/// without. With it the C library comes first, and the program calls nothing of it that Vellum defines, too.
/// Without it Vellum is relocated before the C library is.
#[test]
fn programs_pass_when_the_c_library_comes_first() {
    let Some(folder) = folder() else { return };
    let place = tempfile::tempdir().unwrap();
    let main = place.path().join("main.c");
    std::fs::write(&main, "int part(void);\nint main(void)\n{\n    return part();\n}\n").unwrap();
    // What that one keeps lies in the program's own data, not a library's.
    let names = || PROGRAMS.into_iter().filter(|name| *name != "variables");
    for (name, needed) in names().flat_map(|name| [(name, "-Wl,--no-as-needed"), (name, "-Wl,--as-needed")]) {
        let flags = ["-std=gnu17", "-shared", "-fPIC", "-Dmain=part", needed];
        let Some(library) = compiled(name, &flags, &folder, place.path()) else { return };
        let program = place.path().join("main");
        let found = format!("-Wl,-rpath-link,{}", folder.display());
        let made =
            Command::new("cc").arg("-o").args([&program, &main, &library]).arg(found).output().unwrap();
        assert!(made.status.success(), "{}", said(&made));
        passes(&on_the_library_path(&program, &folder).output().unwrap(), name);
    }
}

/// Handlers of SIGSEGV beside the collector's own, where it needs one and where it does not.
#[test]
fn programs_handle_faults_themselves() {
    let Some(folder) = folder() else { return };
    let place = tempfile::tempdir().unwrap();
    let Some(program) = compiled("handlers", &["-std=gnu17"], &folder, place.path()) else { return };
    for mask in ["track", "track,protect", ""] {
        for eager in [None, Some("2000,seed=1"), Some("20000,seed=2")] {
            let mut preloaded = Command::new(VELLUM);
            preloaded.args(["run", "-q", "--libgc", "--lib"]).arg(folder.join("../libvellum.so")).arg("--");
            preloaded.arg(&program).env_remove("LD_PRELOAD");
            for mut run in [on_the_library_path(&program, &folder), preloaded] {
                run.envs([
                    ("VELLUM_MASK", mask),
                    ("GC_ENABLE_INCREMENTAL", "1"),
                    ("GC_PAUSE_TIME_TARGET", "1"),
                ]);
                if let Some(eager) = eager {
                    run.env("VELLUM_GC_EAGER", eager);
                }
                passes(&run.output().unwrap(), "handlers");
            }
        }
    }
}

#[test]
fn every_program_passes_when_collections_come_at_random() {
    let Some(folder) = folder() else { return };
    let place = tempfile::tempdir().unwrap();
    for name in PROGRAMS {
        let Some(program) = compiled(name, &["-std=gnu17"], &folder, place.path()) else { return };
        for eager in ["7,seed=1", "60,seed=2", "1000,seed=3"] {
            let mut run = on_the_library_path(&program, &folder);
            passes(&run.env("VELLUM_GC_EAGER", eager).output().unwrap(), name);
        }
    }
}

#[test]
fn every_program_passes_when_each_allocation_collects() {
    let Some(folder) = folder() else { return };
    let place = tempfile::tempdir().unwrap();
    for name in PROGRAMS {
        let Some(program) = compiled(name, &["-std=gnu17"], &folder, place.path()) else { return };
        passes(&on_the_library_path(&program, &folder).env("VELLUM_GC_EAGER", "1").output().unwrap(), name);
    }
    if let Some(program) = compiled_cpp(&folder, place.path()) {
        passes(
            &on_the_library_path(&program, &folder).env("VELLUM_GC_EAGER", "1").output().unwrap(),
            "objects",
        );
    }
}

#[test]
fn variables_are_heeded_or_said_to_be_ignored() {
    let Some(folder) = folder() else { return };
    let place = tempfile::tempdir().unwrap();
    let Some(program) = compiled("typed", &[], &folder, place.path()) else { return };
    let ended = on_the_library_path(&program, &folder)
        .envs([("GC_NPROCS", "4"), ("GC_PRINT_STATS", "1"), ("GC_MAXIMUM_HEAP_SIZE", "a lot")])
        .output()
        .unwrap();
    passes(&ended, "typed");
    let said = said(&ended);
    for line in ["GC_NPROCS is ignored", "GC_MAXIMUM_HEAP_SIZE=a lot is ignored", "collections  "] {
        assert!(said.contains(line), "no {line:?} in:\n{said}");
    }
    // Of the objects program a fortieth of the memory it needs.
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
        vellum_skip::skip("the kernel does not track writes here");
        return;
    }
    let (some, all) = partial("NOT_BY_A_VARIABLE");
    assert!(some > 2, "{some} of {all}");
}

#[test]
fn the_library_has_libgcs_name_and_every_function_its_headers_declare() {
    let Some(folder) = folder() else { return };
    let library = folder.join("libgc.so.1");
    let Ok(read) = Command::new("readelf").args(["-d", text(&library)]).output() else {
        vellum_skip::skip("readelf cannot be started");
        return;
    };
    assert!(String::from_utf8_lossy(&read.stdout).contains("Library soname: [libgc.so.1]"));
    let named = Command::new("nm").args(["-D", "--defined-only", text(&library)]).output().unwrap();
    let symbols = String::from_utf8(named.stdout).unwrap();
    let exported: BTreeSet<&str> = symbols
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2))
        .filter(|name| name.starts_with("GC_"))
        .collect();
    let mut declared = BTreeSet::new();
    for header in headers() {
        let source = std::fs::read_to_string(&header).unwrap();
        let header = header.display();
        for line in source.lines().filter(|line| {
            line.starts_with("GC_API ") || line.starts_with("extern GC_") || line.starts_with("extern ")
        }) {
            let before = line.split_once('(').map_or(line.trim_end_matches(';'), |(before, _)| before);
            let name = before.rsplit([' ', '*']).next().filter(|name| name.starts_with("GC_"));
            // What gc_cpp.h declares is the C++ library's.
            if let Some(name) = name.filter(|name| *name != "GC_throw_bad_alloc") {
                assert!(exported.contains(name), "{header} declares {name}, which is not there");
                declared.insert(name.to_owned());
            }
        }
    }
    let pages = std::fs::read_to_string(Path::new(REPOSITORY).join("docs/libgc.md")).unwrap();
    for name in exported.iter().filter(|name| !declared.contains(**name)) {
        assert!(
            pages.contains(*name),
            "{name} is exported, but neither declared nor told of in docs/libgc.md"
        );
    }
}

/// The headers, but for what is included by others only.
fn headers() -> Vec<PathBuf> {
    let folder = Path::new(REPOSITORY).join("include/libgc");
    let mut headers: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    headers.sort();
    headers
}

#[test]
fn what_the_distributions_library_has_is_served_or_said_not_to_be() {
    let Some(folder) = folder() else { return };
    let theirs = Path::new("/usr/lib/x86_64-linux-gnu/libgc.so.1");
    if !theirs.is_file() {
        vellum_skip::skip(format_args!("there is no {} (Debian's package libgc1)", theirs.display()));
        return;
    }
    let symbols = |library: &Path| -> Option<BTreeSet<String>> {
        let named = Command::new("nm").args(["-D", "--defined-only", text(library)]).output().ok()?;
        let listed = String::from_utf8(named.stdout).unwrap();
        let names = listed.lines().filter_map(|line| line.split_whitespace().nth(2));
        Some(names.filter(|name| name.starts_with("GC_")).map(str::to_owned).collect())
    };
    let (Some(theirs), Some(ours)) = (symbols(theirs), symbols(&folder.join("libgc.so.1"))) else {
        vellum_skip::skip("nm cannot be started");
        return;
    };
    let pages = std::fs::read_to_string(Path::new(REPOSITORY).join("docs/libgc.md")).unwrap();
    let missing: Vec<&String> =
        theirs.difference(&ours).filter(|name| !pages.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "neither there nor told of in docs/libgc.md: {missing:?}");
}

/// Each header compiles by itself, in each language and with each set of switches, with warnings denied.
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
            std::fs::write(&source, format!("#include \"{name}\"\nint main(void) {{ return 0; }}\n"))
                .unwrap();
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
fn a_switch_that_is_set_to_0_is_off() {
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
fn leaks_and_overwritten_objects_are_told_of() {
    let Some(folder) = folder() else { return };
    let place = tempfile::tempdir().unwrap();
    let Some(program) = compiled("leaks", &["-DGC_DEBUG"], &folder, place.path()) else { return };
    for variable in ["GC_FIND_LEAK", "NOT_BY_A_VARIABLE"] {
        let ended = on_the_library_path(&program, &folder).env(variable, "1").output().unwrap();
        passes(&ended, "leaks");
        let told = said(&ended);
        // It forgets twenty objects of 48 bytes at one line, and frees as many at another.
        let leaked =
            told.lines().filter(|line| line.contains("leaked: 0x") && line.contains("48 bytes")).count();
        assert!((17..=20).contains(&leaked), "{leaked} objects are reported as leaked:\n{told}");
        // Of two hundred of 56 bytes forty are reported, and the rest counted.
        let many = told.lines().filter(|line| line.contains("56 bytes")).count();
        assert!((39..=41).contains(&many), "{many} of many objects are reported as leaked:\n{told}");
        assert!(told.contains(" more objects, "), "the rest are not counted:\n{told}");
        assert!(!told.contains(", 16 bytes"), "an object of the library is reported:\n{told}");
        assert!(told.contains("leaks.c:"), "no place is named:\n{told}");
        assert_eq!(told.matches("written over: 0x").count(), 1, "{told}");
        assert_eq!(told.matches("freed twice: 0x").count(), 1, "{told}");
    }
}

#[test]
fn w3m_shows_the_same_pages() {
    let Some(folder) = folder() else { return };
    let w3m = Path::new("/usr/bin/w3m");
    if !w3m.is_file() {
        vellum_skip::skip(format_args!("there is no {} (Debian's package w3m)", w3m.display()));
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let page = place.path().join("page.html");
    let mut source = String::from("<html><title>Tables</title><body>");
    for table in 0..40 {
        source += &format!("<h2>Part {table}</h2><table border=1>");
        for row in 0..30 {
            source += &format!(
                "<tr><td><a href='x{row}'>row {row}</a><td>{}<td>&auml;&euro; {}",
                "w ".repeat(row % 9),
                row * table
            );
        }
        source += "</table><ul><li>one<li>two<ol><li>three</ol></ul>";
    }
    std::fs::write(&page, source).unwrap();
    for options in [&["-dump"][..], &["-dump", "-cols", "40"], &["-dump_source"], &["-dump_head"]] {
        let plain =
            Command::new(w3m).args(options).arg(&page).env_remove("LD_LIBRARY_PATH").output().unwrap();
        let ours = on_the_library_path(w3m, &folder).args(options).arg(&page).output().unwrap();
        assert!(plain.status.success() && ours.status.success(), "{}", said(&ours));
        assert!(plain.stdout == ours.stdout, "another page with {options:?}");
    }
}

/// Guardians, weak tables, threads, bignums, continuations, strings; it prints what it finds.
const SCHEME: &str = r#"
(use-modules (ice-9 threads) (srfi srfi-1))
(define (tree n) (if (= n 0) '() (cons (tree (- n 1)) (tree (- n 1)))))
(define (count t) (if (null? t) 1 (+ (count (car t)) (count (cdr t)))))
(write (fold + 0 (map (lambda (i) (count (tree 11))) (iota 20)))) (newline)
(define guardian (make-guardian))
(for-each (lambda (i) (guardian (list i i))) (iota 1000))
(gc) (gc)
(write (> (let loop ((k 0)) (if (guardian) (loop (+ k 1)) k)) 900)) (newline)
(define table (make-weak-key-hash-table))
(for-each (lambda (i) (hashq-set! table (list i) i)) (iota 2000))
(define kept (list 'kept))
(hashq-set! table kept 42)
(gc) (gc)
(write (list (hashq-ref table kept) (< (hash-fold (lambda (k v n) (+ n 1)) 0 table) 400))) (newline)
(write (par-map (lambda (i) (let loop ((k 0) (acc '()))
  (if (< k 50000) (loop (+ k 1) (if (= 0 (modulo k 1000)) '() (cons k acc))) (+ i (length acc))))) (iota 8))) (newline)
(write (let loop ((i 0) (acc 1)) (if (= i 300) (modulo acc 1000007) (loop (+ i 1) (* acc (+ i 1)))))) (newline)
(write (call/cc (lambda (k) (for-each (lambda (i) (if (= i 500) (k i))) (iota 1000)) 'none))) (newline)
(write (string-length (string-concatenate (map number->string (iota 20000))))) (newline)
"#;

#[test]
fn guile_computes_and_compiles_the_same() {
    let Some(folder) = folder() else { return };
    let guile = Path::new("/usr/bin/guile");
    if !guile.is_file() {
        vellum_skip::skip(format_args!("there is no {} (Debian's package guile-3.0)", guile.display()));
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let (program, compiler) = (place.path().join("program.scm"), place.path().join("compiler.scm"));
    std::fs::write(&program, SCHEME).unwrap();
    let compile = "(use-modules (system base compile)) (compile-file (cadr (command-line)) #:output-file (caddr (command-line)))";
    std::fs::write(&compiler, compile).unwrap();
    let run = |mut command: Command, object: &Path| {
        let ran = command.arg("--no-auto-compile").arg(&program).output().unwrap();
        assert!(ran.status.success(), "{}", said(&ran));
        let mut again = Command::new(command.get_program());
        again.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let compiled =
            again.arg("--no-auto-compile").args([&compiler, &program]).arg(object).output().unwrap();
        assert!(compiled.status.success(), "{}", said(&compiled));
        (ran.stdout, std::fs::read(object).unwrap())
    };
    let mut plain = Command::new(guile);
    plain.env_remove("LD_LIBRARY_PATH");
    let theirs = run(plain, &place.path().join("theirs.go"));
    let ours = run(on_the_library_path(guile, &folder), &place.path().join("ours.go"));
    assert_eq!(String::from_utf8_lossy(&theirs.0), String::from_utf8_lossy(&ours.0));
    assert!(theirs.1 == ours.1, "another object file");
}

/// Conses, hash tables, strings, bignums, objects, a collection; it prints what it finds.
const LISP: &str = r#"
(defun tree (n) (if (= n 0) nil (cons (tree (- n 1)) (tree (- n 1)))))
(defun leaves (x) (if (null x) 1 (+ (leaves (car x)) (leaves (cdr x)))))
(print (loop for i below 10 sum (leaves (tree 11))))
(let ((table (make-hash-table :test 'equal)))
  (loop for i below 20000 do (setf (gethash (format nil "~a" i) table) (list i)))
  (print (hash-table-count table)))
(print (length (format nil "~{~a~}" (loop for i below 5000 collect (* i i i i)))))
(print (mod (reduce #'* (loop for i from 1 below 400 collect (* i i))) 1000007))
(defclass point () ((x :initarg :x :accessor x)))
(print (reduce #'+ (mapcar #'x (loop for i below 5000 collect (make-instance 'point :x i)))))
(ext:gc t)
(print :done)
(ext:quit 0)
"#;

const NEKO: &str = "tree = function(n) { if n == 0 null else $array(tree(n - 1), tree(n - 1)); }
leaves = function(t) { if t == null 1 else leaves(t[0]) + leaves(t[1]); }
i = 0; s = 0; while i < 20 { s = s + leaves(tree(11)); i = i + 1; }
$print(s, \"\\n\");
";

#[test]
fn ecl_and_neko_compute_the_same() {
    let Some(folder) = folder() else { return };
    let place = tempfile::tempdir().unwrap();
    let (lisp, neko) = (place.path().join("program.lisp"), place.path().join("program.neko"));
    std::fs::write(&lisp, LISP).unwrap();
    std::fs::write(&neko, NEKO).unwrap();
    let object = neko.with_extension("n");
    if Path::new("/usr/bin/nekoc").is_file() {
        assert!(Command::new("/usr/bin/nekoc").arg(&neko).status().unwrap().success());
    }
    for (program, package, arguments) in [
        ("/usr/bin/ecl", "ecl", vec!["--norc", "--shell", text(&lisp)]),
        ("/usr/bin/neko", "neko", vec![text(&object)]),
    ] {
        if !Path::new(program).is_file() {
            vellum_skip::skip(format_args!("there is no {program} (Debian's package {package})"));
            continue;
        }
        let theirs = Command::new(program).args(&arguments).env_remove("LD_LIBRARY_PATH").output().unwrap();
        let ours = on_the_library_path(Path::new(program), &folder).args(&arguments).output().unwrap();
        assert!(theirs.status.success() && ours.status.success(), "{program}: {}", said(&ours));
        assert_eq!(
            String::from_utf8_lossy(&theirs.stdout),
            String::from_utf8_lossy(&ours.stdout),
            "{program}"
        );
    }
}

/// What `clients/libgc/compare.py` gives each client that is installed, once on either library.
#[test]
fn every_client_of_the_harness_prints_the_same() {
    let Some(folder) = folder() else { return };
    if !Path::new("/usr/bin/time").is_file() {
        vellum_skip::skip("there is no /usr/bin/time (Debian's package time)");
        return;
    }
    let mut harness = Command::new("python3");
    harness.arg(Path::new(REPOSITORY).join("clients/libgc/compare.py")).arg("--libgc-folder").arg(&folder);
    match harness.args(["--quick", "--same-only"]).env_remove("LD_PRELOAD").output() {
        Ok(ended) => {
            let told = String::from_utf8_lossy(&ended.stdout);
            eprint!("{told}{}", String::from_utf8_lossy(&ended.stderr));
            assert!(ended.status.success(), "{told}{}", said(&ended));
        }
        Err(error) => vellum_skip::skip(format_args!("python3 cannot be started: {error}")),
    }
}
