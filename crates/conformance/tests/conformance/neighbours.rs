//! Tests of Vellum together with other tools in one process: debuggers and checkers, other allocators, other
//! C libraries, other preloaded libraries.

use std::path::{Path, PathBuf};
use std::process::Command;
use vellum_conformance::library::command as vellum;
use vellum_conformance::program::sources;
use vellum_conformance::{
    Outcome, compiled, compiled_by, library, plain, same, served, skip, tool, with_args as with, with_env,
};
use vellum_wire::Attach;

#[test]
fn debugger_runs_a_served_program() {
    let Some(gdb) = tool("gdb") else { return };
    let program = compiled("plain.c", &["-pthread"]);
    let mut command = Command::new(gdb);
    command.args(["-batch", "-nx", "-ex"]);
    command.arg(format!("set environment LD_PRELOAD {}", library().display()));
    command.args(["-ex", "break middle", "-ex", "run", "-ex", "bt"]);
    // The debugger calls the program's malloc itself, for a string.
    command
        .args(["-ex", "print (char*)strdup(\"from the debugger\")", "-ex", "continue", "--args"])
        .arg(&program);
    let outcome = plain(command);
    let said = outcome.text();
    if said.contains("ptrace: Operation not permitted")
        || outcome.stderr.contains("ptrace: Operation not permitted")
    {
        return skip("a debugger may not attach here");
    }
    let mut wanted = vec!["Breakpoint 1, middle", "#1", "in main", "\n121\n", "exited normally"];
    // A debugger older than the processor can set no registers, and so cannot call functions in any program.
    if outcome.stderr.contains("Couldn't write extended state status") {
        skip("calling malloc from the debugger, which does not know this processor's registers");
    } else {
        wanted.push("\"from the debugger\"");
    }
    for wanted in wanted {
        assert!(said.contains(wanted), "no {wanted:?} in {outcome}");
    }
    assert!(!said.contains("SIG"), "{outcome}");
}

#[test]
fn valgrind_reports_the_same_errors() {
    let Some(valgrind) = tool("valgrind") else { return };
    let program = compiled("plain.c", &["-pthread"]);
    let check = |what: Option<&str>| -> Outcome {
        let mut command = Command::new(&valgrind);
        command.args(["--leak-check=full", "--error-exitcode=9"]).arg(&program).args(what);
        served(command)
    };
    let clean = check(None).succeeded();
    assert!(clean.stderr.contains("ERROR SUMMARY: 0 errors"), "{clean}");
    assert!(clean.seats.iter().any(|seat| seat.attach == Attach::MemoryChecker), "{:?}", clean.seats);
    let leak = check(Some("leak"));
    assert!(leak.stderr.contains("definitely lost: 123 bytes in 1 blocks"), "{leak}");
    let overflow = check(Some("overflow"));
    assert!(overflow.stderr.contains("Invalid write of size 1"), "{overflow}");
    let after = check(Some("after"));
    assert!(after.stderr.contains("Invalid read of size 1"), "{after}");
}

/// A sanitizer linked into the program is also an allocator, and is reported as either.
fn left_alone(outcome: &Outcome) -> bool {
    [Attach::MemoryChecker, Attach::OwnAllocator].contains(&outcome.attach())
}

fn sanitized(compiler: &str, flags: &[&str]) {
    let all: Vec<&str> = flags.iter().copied().chain(["-fsanitize=address", "-pthread"]).collect();
    let program = match compiled_by(compiler, "plain.c", &all) {
        Ok(program) => program,
        Err(said) => {
            return skip(format_args!(
                "{compiler} {flags:?} makes no program with AddressSanitizer here: {said}"
            ));
        }
    };
    let clean = served(with(&program, &[])).succeeded();
    assert_eq!(clean.text(), "121\n", "{clean}");
    assert!(left_alone(&clean), "{:?} {clean}", clean.seats);
    let overflow = served(with(&program, &["overflow"]));
    assert!(overflow.stderr.contains("heap-buffer-overflow"), "{overflow}");
    let after = served(with(&program, &["after"]));
    assert!(after.stderr.contains("heap-use-after-free"), "{after}");
    let leak = served(with(&program, &["leak"]));
    let without = plain(with(&program, &["leak"]));
    if without.stderr.contains("123 byte(s) leaked") {
        assert!(leak.stderr.contains("123 byte(s) leaked"), "{leak}");
    } else {
        skip("AddressSanitizer finds no leaks here");
    }
}

#[test]
fn address_sanitizer_inside_the_program() {
    sanitized("gcc", &["-static-libasan"]);
    sanitized("clang", &[]);
}

/// AddressSanitizer as a shared library refuses to start when another is preloaded before it. Through
/// `vellum run` such a program runs without Vellum.
#[test]
fn address_sanitizer_as_a_library() {
    let Ok(program) = compiled_by("gcc", "plain.c", &["-fsanitize=address", "-pthread"]) else {
        return skip("gcc makes no program with AddressSanitizer here");
    };
    let Some(vellum) = vellum() else {
        return skip("the command vellum is not built beside the library");
    };
    let run = |arguments: &[&str]| {
        let mut command = with(&vellum, &["run", "--lib"]);
        command.arg(library()).arg("--").arg(&program).args(arguments);
        plain(command)
    };
    let clean = run(&[]).succeeded();
    assert_eq!(clean.text(), "121\n", "{clean}");
    let overflow = run(&["overflow"]);
    assert!(overflow.stderr.contains("heap-buffer-overflow"), "{overflow}");
}

#[test]
fn thread_sanitizer_inside_the_program() {
    for (compiler, flags) in [("gcc", vec!["-static-libtsan"]), ("clang", vec![])] {
        let all: Vec<&str> = flags.iter().copied().chain(["-fsanitize=thread", "-pthread"]).collect();
        let Ok(program) = compiled_by(compiler, "plain.c", &all) else {
            skip(format_args!("{compiler} makes no program with ThreadSanitizer here"));
            continue;
        };
        let without = plain(with(&program, &[]));
        if !without.status.success() {
            skip(format_args!("ThreadSanitizer does not run here: {without}"));
            continue;
        }
        let clean = served(with(&program, &[])).succeeded();
        assert_eq!(clean.text(), "121\n", "{clean}");
        assert!(left_alone(&clean), "{:?} {clean}", clean.seats);
    }
}

/// Sanitizers that are libraries behave as without Vellum, both directly and when started by a served
/// shell. Repeated, as the addresses of mappings are random.
#[test]
fn sanitizers_as_libraries_get_every_request() {
    const RUNS: u32 = 10;
    for (compiler, kind) in
        [("gcc", "thread"), ("gcc", "address"), ("gcc", "leak"), ("gcc", "undefined"), ("clang", "memory")]
    {
        let flag = format!("-fsanitize={kind}");
        let Ok(program) = compiled_by(compiler, "plain.c", &[&flag, "-pthread"]) else {
            skip(format_args!("{compiler} makes no program with {flag} here"));
            continue;
        };
        // AddressSanitizer refuses a library preloaded before it, unless this check is off.
        let blind = |mut command: Command| {
            command.env("ASAN_OPTIONS", "verify_asan_link_order=0:detect_leaks=0");
            command.env("LSAN_OPTIONS", "detect_leaks=0");
            command
        };
        let direct = || blind(with(&program, &[]));
        let shell = || blind(with("sh", &["-c", &format!("'{}'; exit $?", program.display())]));
        let without = plain(direct());
        if !without.status.success() {
            skip(format_args!("{flag} does not run here: {without}"));
            continue;
        }
        for _ in 0..RUNS {
            for command in [direct(), shell()] {
                let outcome = served(command).succeeded();
                assert_eq!(
                    (&outcome.stdout, &outcome.stderr),
                    (&without.stdout, &without.stderr),
                    "{outcome}"
                );
            }
        }
    }
}

/// The allocator of `unready.c` is not ready before the program begins, and gets no request before.
#[test]
fn program_keeps_its_own_allocator() {
    for source in ["own.c", "unready.c"] {
        let program = compiled(source, &[]);
        let without = plain(Command::new(&program)).succeeded();
        let outcome = served(Command::new(&program)).succeeded();
        assert_eq!(outcome.stdout, without.stdout);
        assert_eq!((outcome.stderr.as_str(), outcome.attach()), ("", Attach::OwnAllocator), "{outcome}");
    }
}

/// Compiles a library from `c/SOURCE`; returns its folder, as a linker option and as a path.
fn library_of(name: &str, source: &str, flags: &[&str]) -> (String, PathBuf) {
    let flags = [&["-DLIBRARY", "-O1", "-shared", "-fPIC"], flags].concat();
    let compiler = if source.ends_with(".cc") { "c++" } else { "cc" };
    let library = vellum_skip::compiled(compiler, name, &[sources().join(source)], &flags);
    let folder = library.unwrap_or_else(|why| panic!("{why}")).with_file_name("");
    (format!("-L{}", folder.display()), folder)
}

/// Compares the output with and without Vellum of a program whose libraries are in `folder`; returns it.
fn same_in(folder: &Path, program: &Path, arguments: &[&str]) -> String {
    let path = format!("LD_LIBRARY_PATH={}", folder.display());
    same(|| with(Path::new("env"), &[&[&*path, &program.display().to_string()], arguments].concat())).text()
}

/// The `operator new` of a library comes before the C++ library's, and so before Vellum's.
#[test]
fn library_keeps_its_own_operators() {
    let (there, folder) = library_of("libown.so", "operators.cc", &[]);
    let program = compiled("operators.cc", &[&there, "-lown"]);
    let said = same_in(&folder, &program, &[]);
    assert!(said.starts_with("1 1 1 1 1 0 "), "{said}");
}

/// Operators that are not replaced call the replaced ones, as the C++ standard requires: with the same
/// numbers of calls as without Vellum.
#[test]
fn partly_replaced_operators_call_each_other() {
    // Each bit is a form, numbered as in the source. First closed sets, then sets that split each pair.
    let closed =
        [0x101, 0x303, 0x202, 0x4010, 0x4111, 0xd01, 0x1105, 0x8222].map(|forms| (forms, "-DHEADER"));
    let apart = [0xa_aaaa, 0xc_cccc, 0x0_f0f0, 0x0_ff00, 0xf_0000];
    let counted = apart.iter().flat_map(|forms| [*forms, 0xf_ffff ^ forms]).map(|forms| (forms, "-DCOUNT"));
    for (forms, kind) in closed.into_iter().chain(counted) {
        let replaced = format!("-DREPLACED={forms:#x}");
        let (there, folder) = library_of("libown.so", "subsets.c", &[&replaced, kind]);
        let said = |flags: &[&str]| same_in(&folder, &compiled("subsets.c", flags), &[]);
        let counts = said(&[&replaced, kind, "-lstdc++"]);
        assert!(counts.contains(['2', '4', '6']), "{replaced}: {counts}");
        assert_eq!(said(&[&there, "-lown", "-lstdc++"]), counts, "{replaced} in a library");
    }
}

/// `dlsym` on the C library's handle, and after a library, finds functions of one allocator.
#[test]
fn memory_functions_are_looked_up_by_handle() {
    let (there, folder) = library_of("libnext.so", "handles.c", &[]);
    let plugin = library_of("libplugin.so", "handles.c", &[]).1.join("libplugin.so");
    let program = compiled("handles.c", &[&there, "-lnext", "-pthread", "-ldl"]);
    same_in(&folder, &program, &[plugin.to_str().expect("a plain path")]);
}

#[test]
fn closed_libraries_stay_loaded() {
    let program = compiled("closed.c", &["-pthread", "-ldl"]);
    for name in ["libvellum.so", "libvellum_cost.so", "libgc/libgc.so.1", "libgc/libgccpp.so.1"] {
        let library = library().with_file_name(name).display().to_string();
        let outcome = plain(with(&program, &[&library])).succeeded();
        assert_eq!(outcome.text(), "0 1\n".repeat(3), "{name}: {outcome}");
    }
}

#[test]
fn disabled_library_has_no_effect() {
    let program = compiled("plain.c", &["-pthread"]);
    let outcome = served(with_env(with(&program, &[]), &[("VELLUM_DISABLE", "1")])).succeeded();
    assert_eq!((outcome.text().as_str(), outcome.attach()), ("121\n", Attach::Disabled));
    assert_eq!(outcome.seats[0].get(vellum_wire::Counter::BytesIn), 0, "{:?}", outcome.seats);
}

#[test]
fn other_c_libraries() {
    match compiled_by("musl-gcc", "musl.c", &["-pthread"]) {
        Ok(program) => {
            let without = plain(Command::new(&program)).succeeded();
            let outcome = served(Command::new(&program)).succeeded();
            assert_eq!((outcome.stdout.clone(), outcome.stderr.as_str()), (without.stdout, ""), "{outcome}");
        }
        Err(_) => skip("no musl-gcc on this machine"),
    }
    // Without a dynamic loader nothing is preloaded, and the program works.
    let fixed = compiled("musl.c", &["-static", "-pthread"]);
    let outcome = served(Command::new(&fixed)).succeeded();
    assert_eq!((outcome.text().as_str(), outcome.stderr.as_str()), ("done\n", ""));
    assert!(outcome.seats.is_empty());
}

#[test]
fn libraries_come_and_go() {
    let library = compiled("early.cc", &["-shared", "-fPIC"]);
    let loader = compiled("loader.c", &["-pthread", "-ldl"]);
    let text = library.to_str().expect("a plain path");
    same(|| with(&loader, &[text]));
    same(|| with(&loader, &[text, "deep"]));
}

#[test]
fn memory_is_used_before_vellums_constructors() {
    let early = compiled("early.cc", &["-shared", "-fPIC"]);
    let program = compiled("plain.c", &["-pthread"]);
    preloaded_with(&program, &early, Attach::Serving);
}

/// Runs `plain.c` with a library preloaded before Vellum, which is then attached like this, and after it.
fn preloaded_with(program: &Path, other: &Path, attach: Attach) {
    let with_list = |list: &str| with_env(with(program, &[]), &[("LD_PRELOAD", list)]);
    let other = other.display().to_string();
    let outcome = served(with_list(&other)).succeeded();
    assert_eq!((outcome.text().as_str(), outcome.attach()), ("121\n", attach), "{outcome}");
    let outcome = plain(with_list(&format!("{}:{other}", library().display()))).succeeded();
    assert_eq!((outcome.text().as_str(), outcome.stderr.as_str()), ("121\n", ""), "{outcome}");
}

/// Another allocator preloaded before Vellum serves the program; preloaded after it, it is unused.
#[test]
fn another_allocator_is_preloaded_too() {
    let places = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"];
    let names = ["libmimalloc.so.2", "libjemalloc.so.2", "libtcmalloc_minimal.so.4"];
    let program = compiled("plain.c", &["-pthread"]);
    let mut found = false;
    for other in places
        .iter()
        .flat_map(|place| names.map(|name| Path::new(place).join(name)))
        .filter(|path| path.exists())
    {
        found = true;
        preloaded_with(&program, &other, Attach::OwnAllocator);
    }
    if !found {
        skip("no other allocator is installed as a shared library");
    }
}
