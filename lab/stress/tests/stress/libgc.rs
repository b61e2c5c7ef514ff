//! Tests of programs written for libgc with Vellum's `libgc.so.1`: existing programs, one that uses all
//! features, and the C programs of `crates/libgc/tests` with collections at random times.

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

/// Runs `lab/clients/libgc/compare.py`: each installed client (w3m, guile, ecl, neko and others) once on
/// either library.
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
