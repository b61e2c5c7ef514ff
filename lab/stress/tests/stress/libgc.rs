//! Tests of programs written for libgc, on Vellum's `libgc.so.1`: existing programs, a workload of all
//! features, and the C programs of `crates/libgc/tests` with collections at random.

use crate::common::{said, skip, vellum};
use crate::libgc_programs::{
    PROGRAMS, REPOSITORY, compiled, compiled_cpp, folder, on_the_library_path, passes,
};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles the workload of `lab/clients/libgc/stress`: the program, and the library that it opens.
fn stress(folder: &Path, place: &Path) -> Option<(PathBuf, PathBuf)> {
    let sources = Path::new(REPOSITORY).join("lab/clients/libgc/stress");
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
                skip(format_args!("cc cannot be started: {error}"));
                return None;
            }
        }
    }
    Some((program, library))
}

/// Runs the workload for a few seconds; `lab/clients/libgc/stress.py` makes a thousand such runs.
#[test]
fn the_stress_workload_passes_with_collections_at_random() {
    let Some(folder) = folder() else { return };
    let place = tempfile::tempdir().unwrap();
    let Some((program, library)) = stress(&folder, place.path()) else { return };
    let seed = u64::from(vellum_random::test_seed(None) as u32);
    // Mean allocations between collections, and the amount of work.
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
fn threads_in_unusual_places_pass() {
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

/// The program's own library loads libgc.so.1, either with the mathematical library behind it, as ecl does,
/// or without. With it the C library comes first, even though the program calls none of its functions that
/// Vellum defines. Without it Vellum is relocated before the C library.
#[test]
fn programs_pass_when_the_c_library_comes_first() {
    let Some(folder) = folder() else { return };
    let place = tempfile::tempdir().unwrap();
    let main = place.path().join("main.c");
    std::fs::write(&main, "int part(void);\nint main(void)\n{\n    return part();\n}\n").unwrap();
    // That program keeps its objects in its own data instead of a library's.
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

/// Programs with a SIGSEGV handler beside the collector's own, if the collector needs one and if not.
#[test]
fn programs_handle_faults_themselves() {
    let Some(folder) = folder() else { return };
    let place = tempfile::tempdir().unwrap();
    let Some(program) = compiled("handlers", &["-std=gnu17"], &folder, place.path()) else { return };
    for mask in ["track", "track,protect", ""] {
        for eager in [None, Some("2000,seed=1"), Some("20000,seed=2")] {
            let mut preloaded = Command::new(vellum());
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

/// Collections at random points, or at each allocation.
#[test]
fn every_program_passes_with_collections_at_any_point() {
    let Some(folder) = folder() else { return };
    let place = tempfile::tempdir().unwrap();
    for name in PROGRAMS {
        let Some(program) = compiled(name, &["-std=gnu17"], &folder, place.path()) else { return };
        for eager in ["1", "7,seed=1", "60,seed=2", "1000,seed=3"] {
            let mut run = on_the_library_path(&program, &folder);
            passes(&run.env("VELLUM_GC_EAGER", eager).output().unwrap(), name);
        }
    }
    if let Some(program) = compiled_cpp(&folder, place.path()) {
        passes(
            &on_the_library_path(&program, &folder).env("VELLUM_GC_EAGER", "1").output().unwrap(),
            "objects",
        );
    }
}

#[test]
fn w3m_shows_the_same_pages() {
    let Some(folder) = folder() else { return };
    let w3m = Path::new("/usr/bin/w3m");
    if !w3m.is_file() {
        skip(format_args!("there is no {} (Debian's package w3m)", w3m.display()));
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

/// Guardians, weak tables, threads, bignums, continuations, strings; prints its results.
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
        skip(format_args!("there is no {} (Debian's package guile-3.0)", guile.display()));
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

/// Conses, hash tables, strings, bignums, objects, a collection; prints its results.
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
        ("/usr/bin/ecl", "ecl", vec!["--norc", "--shell", lisp.to_str().unwrap()]),
        ("/usr/bin/neko", "neko", vec![object.to_str().unwrap()]),
    ] {
        if !Path::new(program).is_file() {
            skip(format_args!("there is no {program} (Debian's package {package})"));
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

/// Runs `lab/clients/libgc/compare.py`: each installed client once on either library.
#[test]
fn every_client_of_the_harness_prints_the_same() {
    let Some(folder) = folder() else { return };
    if !Path::new("/usr/bin/time").is_file() {
        skip("there is no /usr/bin/time (Debian's package time)");
        return;
    }
    let mut harness = Command::new("python3");
    harness
        .arg(Path::new(REPOSITORY).join("lab/clients/libgc/compare.py"))
        .arg("--libgc-folder")
        .arg(&folder);
    match harness.args(["--quick", "--same-only"]).env_remove("LD_PRELOAD").output() {
        Ok(ended) => {
            let told = String::from_utf8_lossy(&ended.stdout);
            eprint!("{told}{}", String::from_utf8_lossy(&ended.stderr));
            assert!(ended.status.success(), "{told}{}", said(&ended));
        }
        Err(error) => skip(format_args!("python3 cannot be started: {error}")),
    }
}
