//! Storms: tests in which programs check every page of their memory while the kernel moves it, by
//! compaction, huge pages, swapping and migration between NUMA nodes.
//!
//! The tests make the kernel do each of these over and over, which needs root. Machine-wide settings are
//! restored afterwards; tests that need a paging device or a cgroup make their own. `VELLUM_STORM_SECONDS`
//! sets the length of all storms together.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use vellum_campaign::confine::{Device, Group};
use vellum_conformance::{Outcome, compiled, served, skip};
use vellum_process::Undoing;
use vellum_wire::Counter;

/// The length of all storms together, unless `VELLUM_STORM_SECONDS` sets another.
const SECONDS: u32 = 20;
/// The longest storm of one program that the watchdog allows; longer storms are divided.
const ONE_MAX: u32 = 120;

const COMPACT: &str = "/proc/sys/vm/compact_memory";
const HUGE: &str = "/sys/kernel/mm/transparent_hugepage";

/// Settings that make `khugepaged` never sleep.
const SLEEPLESS: [(&str, &str); 3] = [
    ("khugepaged/pages_to_scan", "65536"),
    ("khugepaged/scan_sleep_millisecs", "0"),
    ("khugepaged/alloc_sleep_millisecs", "0"),
];

/// Time between two passes of the rare operations.
const BETWEEN: Duration = Duration::from_millis(100);
/// Compactions between two rare operations.
const COMPACTIONS: u32 = 10;
/// Bytes of the paging device; and the group's limit, which is never reached.
const DEVICE_BYTES: u64 = 512 << 20;
const GROUP_BYTES: u64 = 1 << 40;

/// Held by the test that changes the kernel's settings; "alone" in its name makes the runner start no other
/// test beside it.
static SETTINGS: Mutex<()> = Mutex::new(());

/// Kernel settings that are changed until this value is dropped.
struct Settings(Vec<(PathBuf, String, Undoing)>);

impl Settings {
    /// Changes those of the `wanted` settings that can be changed.
    fn change(wanted: &[(&str, &str)]) -> Settings {
        let mut settings = Settings(Vec::new());
        for (name, value) in wanted {
            let path = Path::new(HUGE).join(name);
            let Ok(before) = fs::read_to_string(&path) else { continue };
            // In a list of words the current one is in brackets.
            let before = before.split(['[', ']']).nth(1).unwrap_or(&before).trim().to_owned();
            let undoing = Undoing::by("echo \"$2\" > \"$1\"", &[path.as_os_str(), OsStr::new(&before)]);
            match fs::write(&path, value) {
                Ok(()) => settings.0.push((path, before, undoing)),
                Err(error) => skip(format_args!("{}: {error}", path.display())),
            }
        }
        settings
    }
}

impl Drop for Settings {
    fn drop(&mut self) {
        for (path, before, _) in &self.0 {
            if let Err(error) = fs::write(path, before) {
                eprintln!("{} is to be {before} again: {error}", path.display());
            }
        }
    }
}

/// The number of nodes with memory; pages can only move if there is more than one.
fn nodes() -> usize {
    let is_node = |name: &str| {
        name.strip_prefix("node").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let entries = fs::read_dir("/sys/devices/system/node").into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_name().to_str().is_some_and(is_node)).count()
}

fn members(group: &Group) -> Vec<i32> {
    let text = fs::read_to_string(group.members()).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

/// Makes the kernel move all pages of `group`'s processes to one node and back.
fn migrate(group: &Group) {
    for pid in members(group) {
        for (from, to) in [(1u64, 2u64), (2, 1)] {
            // SAFETY: the kernel reads two words, which live here, and moves another process's pages.
            unsafe {
                libc::syscall(libc::SYS_migrate_pages, pid, 3u64, &raw const from, &raw const to);
            }
        }
    }
}

/// Makes the kernel page out the memory of `group`, if possible.
fn reclaim(group: &Group) {
    let members = group.members();
    let directory = members.parent().expect("the file lies in the group's directory");
    // The first file exists in version 1, the second in version 2. Neither write need complete.
    let _ = fs::write(directory.join("memory.force_empty"), "0");
    let _ = fs::write(directory.join("memory.reclaim"), "64M");
    group.relieve();
}

/// Runs `command` in `group` while the kernel moves its memory.
fn in_the_storm(mut command: Command, group: Option<&Group>) -> Outcome {
    let is_over = AtomicBool::new(false);
    let (compactions, reclaims) = (AtomicU32::new(0), AtomicU32::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Relaxed) {
                let _ = fs::write(COMPACT, "1");
                compactions.fetch_add(1, Relaxed);
            }
        });
        if let Some(group) = group {
            let entrance = group.members();
            // SAFETY: the closure opens, writes and closes one file, by a path made before; a forked child
            // may do this.
            unsafe { command.pre_exec(move || fs::write(&entrance, "0")) };
        }
        let run = scope.spawn(|| {
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| served(command)));
            is_over.store(true, Relaxed);
            outcome
        });
        while let Some(group) = group.filter(|_| !is_over.load(Relaxed)) {
            if compactions.load(Relaxed) >= COMPACTIONS * (reclaims.load(Relaxed) + 1) {
                reclaim(group);
                reclaims.fetch_add(1, Relaxed);
                if nodes() > 1 {
                    migrate(group);
                }
            }
            std::thread::sleep(BETWEEN);
        }
        let outcome =
            run.join().expect("the run was caught").unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let huge = fs::read_to_string(Path::new(HUGE).join("khugepaged/pages_collapsed")).unwrap_or_default();
        eprintln!(
            "{} compactions, {} reclaims, {} huge pages made by now; {}",
            compactions.load(Relaxed),
            reclaims.load(Relaxed),
            huge.trim(),
            outcome.stderr.trim()
        );
        outcome
    })
}

#[test]
fn no_page_is_lost_while_moved_alone() {
    let _held = SETTINGS.lock().unwrap_or_else(PoisonError::into_inner);
    if fs::write(COMPACT, "1").is_err() {
        return skip("memory can only be compacted by root, by a kernel that can");
    }
    let asked = std::env::var("VELLUM_STORM_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
    let seconds: u32 = asked.unwrap_or(SECONDS);
    let program = compiled("storm.c", &["-pthread"]);
    // Declared in the order in which they may be dropped: the settings, then the group, and the device when
    // no page is on it.
    let device = Device::new(DEVICE_BYTES).map_err(|error| skip(format_args!("swapping: {error}")));
    let group =
        Group::new("vellum-storm", GROUP_BYTES).map_err(|error| skip(format_args!("swapping: {error}")));
    let group = group.ok().filter(|_| device.is_ok());
    if nodes() < 2 {
        skip("one node only: pages are not moved to another");
    }
    let _settings = Settings::change(&SLEEPLESS);
    let cases: [(&str, &[(&str, &str)]); 4] = [
        ("paged", &[("VELLUM_FRAMES", "16M")]),
        ("growing", &[("VELLUM_MASK", "remap")]),
        ("growing", &[("VELLUM_HUGE", "always"), ("VELLUM_MASK", "remap")]),
        ("growing", &[]),
    ];
    let each = seconds.div_ceil(cases.len() as u32);
    for (kind, environment) in cases {
        let mut left = each;
        while left > 0 {
            let now = left.min(ONE_MAX);
            left -= now;
            let mut command = Command::new(&program);
            command.args([kind, &now.to_string()]).envs(environment.iter().copied());
            let run = in_the_storm(command, group.as_ref());
            assert_eq!(run.text(), "done\n", "{kind} {environment:?}: {run}");
            assert!(run.status.success(), "{run}");
            let frames: u64 = run.seats.iter().map(|seat| seat.get(Counter::PeakPagedFrames)).sum();
            if kind == "paged" && frames == 0 {
                skip("memory cannot be paged here: no cachestat, or no store on a disk");
            }
        }
    }
}

/// Pages returned to the kernel stay returned under a `khugepaged` that never sleeps and restores huge pages.
#[test]
fn returned_pages_stay_returned_alone() {
    let _held = SETTINGS.lock().unwrap_or_else(PoisonError::into_inner);
    let program = compiled("sparse.c", &["-pthread"]);
    if fs::write(COMPACT, "1").is_err() {
        return skip("only root can keep khugepaged awake");
    }
    let _settings = Settings::change(&SLEEPLESS);
    for scenario in ["vellum_pages_among_survivors_go_back", "vellum_pages_of_sleeping_threads_go_back"] {
        let mut command = Command::new(&program);
        command.arg(scenario);
        served(command).succeeded();
    }
}
