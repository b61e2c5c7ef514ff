//! Tests of the library on aarch64, with programs under an emulator, `qemu-aarch64-static`.
//!
//! The emulator runs a program's instructions and passes its system calls to this kernel, but not all
//! kinds of calls. A program (`c/emulated.c`) first finds the missing ones. Each test runs without Vellum
//! first. A test that fails in that run is skipped and named. The emulator keeps a record of each page of
//! address space, so programs have a limit on their data: Vellum then reserves no address space.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use vellum_conformance::program::header;
use vellum_conformance::{Outcome, Seat, compiled_by, library, plain, seated, skip};
use vellum_wire::Attach;

const TARGET: &str = "aarch64-unknown-linux-gnu";
const COMPILER: &str = "aarch64-linux-gnu-gcc-12";
const EMULATOR: &str = "qemu-aarch64-static";
/// The folder of the aarch64 C library.
const ROOT: &str = "/usr/aarch64-linux-gnu";
/// The limit on data, in KiB: 64 GiB.
const DATA_KIB: u64 = 64 << 20;

/// Tries to start a program until its library can be mapped.
const TRIES: usize = 5;

/// Scenarios that need a feature, and the probe's word for it.
const ASKING: [(&str, &str); 5] = [
    // The helper thread, which returns unused memory.
    ("vellum_idle_", "helpers"),
    ("vellum_a_burst_goes_back", "helpers"),
    ("vellum_memory_goes_back_after_a_fork", "helpers"),
    ("returns", "helpers"),
    ("filtered", "filters"),
];

/// The tools for programs of aarch64.
struct Machine {
    library: PathBuf,
    /// The features that the emulator lacks.
    lacks: Vec<String>,
}

/// The tools; `None`, and a skip, without a compiler, emulator or standard library.
fn machine() -> Option<&'static Machine> {
    static MACHINE: OnceLock<Result<Machine, String>> = OnceLock::new();
    match MACHINE.get_or_init(found) {
        Ok(machine) => Some(machine),
        Err(reason) => {
            skip(reason);
            None
        }
    }
}

fn found() -> Result<Machine, String> {
    let is_there = |program: &str| {
        Command::new(program).arg("--version").output().is_ok_and(|said| said.status.success())
    };
    if let Some(program) = [COMPILER, EMULATOR].into_iter().find(|program| !is_there(program)) {
        return Err(format!("no {program} on this machine"));
    }
    let probe = compiled_by(COMPILER, "emulated.c", &[])
        .map_err(|said| format!("no C library of aarch64: {said}"))?;
    let lacks: Vec<String> =
        plain(emulated(&probe, &[])).succeeded().text().lines().map(str::to_owned).collect();
    eprintln!("the emulator lacks: {lacks:?}");
    let cargo = std::env::var_os("CARGO").ok_or("not run by cargo, which the library is built by")?;
    let libraries = Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]).output();
    let libraries = libraries.map_err(|error| format!("no rustc: {error}"))?;
    if !Path::new(String::from_utf8_lossy(&libraries.stdout).trim()).is_dir() {
        return Err(format!("no standard library of {TARGET}: rustup target add {TARGET}"));
    }
    let target = library().ancestors().nth(2).expect("TARGET/PROFILE/libvellum.so").join("aarch64");
    let made = Command::new(cargo)
        .args([
            "build",
            "--release",
            "--quiet",
            "--locked",
            "-p",
            "vellum-runtime",
            "--target",
            TARGET,
            "--manifest-path",
        ])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml"))
        .arg("--target-dir")
        .arg(&target)
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", COMPILER)
        .status()
        .expect("cargo starts");
    assert!(made.success(), "libvellum.so does not build for {TARGET}");
    Ok(Machine { library: target.join(TARGET).join("release/libvellum.so"), lacks })
}

/// The command that runs `program` in the emulator with these options.
fn emulated(program: &Path, options: &[&str]) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -d {DATA_KIB} && exec \"$@\""), "sh", EMULATOR, "-L", ROOT]);
    command.args(options).arg(program);
    command
}

impl Machine {
    fn lacks(&self, word: &str) -> bool {
        self.lacks.iter().any(|lacking| lacking == word)
    }

    fn can(&self, name: &str) -> bool {
        let lacking = ASKING.iter().find(|(asking, word)| name.starts_with(asking) && self.lacks(word));
        if let Some((_, word)) = lacking {
            skip(format_args!("aarch64: {name}: the emulator has no {word}"));
        }
        lacking.is_none()
    }

    /// Vellum's capabilities that the emulator implements wrongly, to be masked.
    fn mask(&self) -> Option<String> {
        self.lacks("moves").then(|| "VELLUM_MASK=remap".to_owned())
    }

    fn compiled(&self, name: &str, is_linked: bool) -> PathBuf {
        let folder = self.library.parent().expect("it lies in a folder").display().to_string();
        let flags =
            [format!("-I{}", header().display()), format!("-L{folder}"), format!("-Wl,-rpath,{folder}")];
        let mut flags: Vec<&str> = flags.iter().map(String::as_str).chain(["-pthread"]).collect();
        if is_linked {
            flags.extend(["-Wl,--no-as-needed", "-lvellum"]);
        }
        compiled_by(COMPILER, &format!("{name}.c"), &flags).unwrap_or_else(|said| panic!("{name}: {said}"))
    }

    fn served(&self, program: &Path, arguments: &[&str], more: &[&str]) -> Outcome {
        let preload = format!("LD_PRELOAD={}", self.library.display());
        let mask = self.mask();
        let mut options = more.to_vec();
        options.extend(["-E", &preload]);
        options.extend(mask.iter().flat_map(|mask| ["-E", mask.as_str()]));
        let mut command = emulated(program, &options);
        command.args(arguments);
        seated(command)
    }
}

/// Runs each scenario of a program plain and preloaded, and compares.
fn check(name: &str, is_left_out: impl Fn(&str) -> bool) {
    let Some(machine) = machine() else { return };
    let program = machine.compiled(name, false);
    let run = |scenario: &str| {
        let mut command = emulated(&program, &[]);
        command.arg(scenario);
        plain(command)
    };
    let names = plain(emulated(&program, &[])).succeeded().text();
    assert!(!names.is_empty(), "{name} has no scenarios");
    let mut failures = Vec::new();
    for scenario in names.lines().filter(|scenario| !is_left_out(scenario) && machine.can(scenario)) {
        let without = (!scenario.starts_with("vellum_")).then(|| run(scenario));
        if without.as_ref().is_some_and(|without| !without.status.success()) {
            skip(format_args!("aarch64: {scenario} fails in the emulator without Vellum, too"));
            continue;
        }
        let with = machine.served(&program, &[scenario], &[]);
        let is_served = with.seats.first().map(|seat: &Seat| seat.attach) == Some(Attach::Serving);
        let agrees =
            without.is_none_or(|without| with.stdout == without.stdout && with.stderr == without.stderr);
        if !(with.status.success() && is_served && agrees) {
            failures.push(format!("served {is_served}, agrees {agrees}: {with}"));
        }
    }
    assert!(failures.is_empty(), "{} failed:\n{}", failures.len(), failures.join("\n\n"));
}

#[test]
fn blocks() {
    for name in ["interface", "vel", "waits"] {
        check(name, |_| false);
    }
}

#[test]
fn threads_and_signals() {
    check("threads", |_| false);
    check("signals", |_| false);
}

#[test]
fn mappings() {
    check("mappings", |_| false);
    check("remaps", |_| false);
}

/// Leaves out two kinds of scenarios. Programs of this machine cannot be started, since they would have to
/// load the library. Forks beside running threads can leave one of the emulator's own locks held in the child
/// for ever; without Vellum they sometimes hang, too.
#[test]
fn forks() {
    const LEFT_OUT: [&str; 2] = ["programs_are_started_at_any_moment", "threads_fork_at_any_moment"];
    if machine().is_some() {
        skip("aarch64: forks of many threads: the emulator hangs at times, without Vellum, too");
    }
    check("forks", |scenario| LEFT_OUT.contains(&scenario));
}

/// Programs linked with the library: the collector finds objects in registers, on stacks and in thread-local
/// data.
#[test]
fn the_collector() {
    let Some(machine) = machine() else { return };
    for (name, scenarios) in [("collector", 14), ("movement", 6)] {
        let program = machine.compiled(name, true);
        let names = plain(emulated(&program, &[])).succeeded().text();
        assert_eq!(names.lines().count(), scenarios, "{names}");
        for scenario in names.lines().filter(|scenario| machine.can(scenario)) {
            let mask = machine.mask();
            let options: Vec<&str> = mask.iter().flat_map(|mask| ["-E", mask.as_str()]).collect();
            let mut command = emulated(&program, &options);
            command.arg(scenario);
            plain(command).succeeded();
        }
    }
}

/// On a kernel with larger pages the C library serves all requests, without a message.
#[test]
fn the_c_library_serves_on_larger_pages() {
    let Some(machine) = machine() else { return };
    let program = machine.compiled("interface", false);
    for (bytes, attach) in
        [("4096", Attach::Serving), ("16384", Attach::Unsuited), ("65536", Attach::Unsuited)]
    {
        let run = || machine.served(&program, &["realloc_of_aligned_blocks"], &["-p", bytes]).succeeded();
        let is_mapped = |outcome: &Outcome| !outcome.stderr.contains("cannot be preloaded");
        let outcome = (0..TRIES).map(|_| run()).find(is_mapped);
        // With larger pages than this machine's, the emulator sometimes maps no library.
        let Some(outcome) = outcome else {
            assert_ne!(attach, Attach::Serving, "never loaded: {}", run());
            skip(format_args!("aarch64: the emulator maps no library at pages of {bytes} bytes"));
            continue;
        };
        assert_eq!((outcome.attach(), outcome.stderr.as_str()), (attach, ""), "{bytes}: {outcome}");
    }
}
