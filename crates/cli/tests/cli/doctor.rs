//! Tests of `vellum doctor`: its findings on this machine, and under filters that deny a feature.

use crate::common::{self, VELLUM, exits, files, has, out, said, text};
use serde_json::Value;
use std::collections::BTreeSet;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The system call number of `cachestat`, the same on every architecture.
const CACHESTAT: libc::c_long = 451;

fn doctor(options: &[&str]) -> Command {
    let mut command = Command::new(VELLUM);
    command.arg("doctor").args(options).env_remove("VELLUM_MASK");
    command
}

/// The report that `command` writes as JSON to standard output.
fn examined(command: &mut Command) -> Value {
    let ended = command.output().expect("vellum starts");
    serde_json::from_slice(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
}

fn feature<'r>(report: &'r Value, name: &str) -> &'r Value {
    let features = report["features"].as_array().expect("a list");
    features.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("no {name}: {report}"))
}

/// Makes `command` run under a filter in which the system call `number` fails with `errno`.
fn denying(mut command: Command, number: libc::c_long, errno: i32) -> Command {
    let line = |code: u32, jt: u8, jf: u8, k: u32| libc::sock_filter { code: code as u16, jt, jf, k };
    let filter = [
        line(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        line(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, number as u32),
        line(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | errno as u32),
        line(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    // SAFETY: both calls are async-signal-safe; the filter is owned by the closure, and the kernel copies it.
    unsafe {
        command.pre_exec(move || {
            let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
            let mode = libc::c_ulong::from(libc::SECCOMP_MODE_FILTER);
            if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
                || libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program) != 0
            {
                return Err(std::io::Error::last_os_error());
            }
            Ok(())
        });
    }
    command
}

#[test]
fn doctor_report_is_narrow_plain_and_complete() {
    let ended = exits(0, doctor(&[]).output().unwrap());
    let shown = out(&ended);
    for line in shown.lines() {
        // A path is never wrapped.
        let last = line.split_ascii_whitespace().last().unwrap_or_default();
        assert!(line.chars().count() <= 80 || last.starts_with('/'), "{line}");
    }
    assert!(!shown.contains('\x1b'), "{shown}");
    let report = examined(&mut doctor(&["--json"]));
    for row in report["features"].as_array().unwrap() {
        let name = row["name"].as_str().unwrap();
        assert!(shown.lines().any(|line| line.starts_with(&format!("  {name} "))), "{name}: {shown}");
    }
    let last = shown.lines().last().unwrap();
    assert!(last.contains(" work"), "{last}");
}

#[test]
fn doctor_json_has_documented_fields_and_remedies() {
    let (_place, [file]) = files(["r.json"]);
    let ended = doctor(&["--json", text(&file)]).output().unwrap();
    assert!(ended.status.success() && ended.stdout.is_empty(), "{}", said(&ended));
    let report = common::report(&file);
    assert_eq!(report["schema"], "vellum.doctor/1");
    let mut names = BTreeSet::new();
    for row in report["features"].as_array().unwrap() {
        let name = row["name"].as_str().unwrap();
        assert!(names.insert(name), "{name} is there twice");
        let is_text = |field: &str| row[field].as_str().is_some_and(|words| !words.is_empty());
        match row["state"].as_str().unwrap() {
            "works" => assert!(is_text("what"), "{row}"),
            "not_shown" => assert!(is_text("why"), "{row}"),
            "falls_back" | "missing" => {
                assert!(is_text("instead") && is_text("why"), "{row}");
                // A source that does not support this processor has no remedy.
                assert!(is_text("cure") || row["section"] == "watching", "{row}");
            }
            other => panic!("{other}: {row}"),
        }
        common::documented("doctor.md", row.as_object().unwrap().keys());
    }
    common::documented("doctor.md", names);
    common::documented("doctor.md", report.as_object().unwrap().keys());
}

#[test]
fn filtered_system_calls_are_reported_with_errno() {
    for (name, call, errno, words) in [
        ("membarrier", libc::SYS_membarrier, libc::ENOSYS, "(os error 38)"),
        ("uffd-move", libc::SYS_userfaultfd, libc::EPERM, "(os error 1)"),
        ("write-tracking", libc::SYS_userfaultfd, libc::EPERM, "(os error 1)"),
        ("fault-events", libc::SYS_perf_event_open, libc::EACCES, "(os error 13)"),
        ("page-tables", libc::SYS_bpf, libc::EPERM, "(os error 1)"),
    ] {
        let options = ["--json", "-", "--check", name];
        let allowed = doctor(&options).output().unwrap();
        let Ok(denied) = denying(doctor(&options), call, errno).output() else {
            return vellum_skip::skip("no filter of system calls may be set here");
        };
        if allowed.status.code() != Some(0) {
            vellum_skip::skip(format_args!("{name} does not work here: {}", out(&allowed).trim()));
            continue;
        }
        let report: Value = serde_json::from_slice(&exits(1, denied).stdout).expect("JSON");
        let row = feature(&report, name);
        assert!(row["state"] == "falls_back" || row["state"] == "missing", "{row}");
        assert!(row["why"].as_str().unwrap().contains(words), "{row}");
    }
}

#[test]
fn store_must_be_on_a_disk() {
    let options = ["--json", "-", "--check", "store"];
    let row = |command: &mut Command| feature(&examined(command), "store").clone();
    let place = tempfile::tempdir().unwrap();
    let missing = row(doctor(&options).env("VELLUM_STORE", place.path().join("no/store")));
    assert_eq!(missing["state"], "missing", "{missing}");
    assert!(missing["cure"].as_str().unwrap().contains("name a directory"), "{missing}");
    if std::fs::read_to_string("/proc/mounts").unwrap().contains(" /dev/shm tmpfs ") {
        let memory = row(doctor(&options).env("VELLUM_STORE", "/dev/shm"));
        assert_eq!(memory["state"], "missing", "{memory}");
        assert!(memory["why"].as_str().unwrap().contains("tmpfs"), "{memory}");
    } else {
        vellum_skip::skip("/dev/shm is no tmpfs");
    }
    if doctor(&options).output().unwrap().status.code() != Some(0) {
        return vellum_skip::skip("memory cannot be paged here");
    }
    for (call, words) in [(libc::SYS_fallocate, "fallocate"), (CACHESTAT, "cachestat")] {
        let Ok(ended) = denying(doctor(&options), call, libc::ENOSYS).output() else {
            return vellum_skip::skip("no filter of system calls may be set here");
        };
        let report: Value = serde_json::from_slice(&exits(1, ended).stdout).expect("JSON");
        has(feature(&report, "store")["why"].as_str().unwrap(), &[words, "(os error 38)"]);
    }
}

#[test]
fn dropped_privilege_is_reported() {
    let options = ["--json", "-", "--check", "page-out"];
    let before = doctor(&options).output().unwrap();
    let mut without = doctor(&options);
    // SAFETY: prctl is async-signal-safe. A capability outside the bounding set has no effect after exec.
    unsafe {
        without.pre_exec(|| match libc::prctl(libc::PR_CAPBSET_DROP, 23, 0, 0, 0) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        });
    }
    match (before.status.code(), without.output()) {
        (Some(0), Ok(ended)) => {
            has(&out(&exits(1, ended)), &["CAP_SYS_NICE"]);
        }
        _ => vellum_skip::skip("there is no privilege to give up"),
    }
}

#[test]
fn masked_capability_is_reported_as_the_reason() {
    let report = examined(doctor(&["--json"]).env("VELLUM_MASK", "lazy_free,track"));
    for name in ["lazy-free", "write-tracking"] {
        let row = feature(&report, name);
        assert_eq!((&row["state"], &row["why"]), (&"falls_back".into(), &"VELLUM_MASK names it".into()));
    }
}

#[test]
fn unknown_feature_is_refused_with_the_known_ones() {
    let ended = exits(125, doctor(&["--check", "warp"]).output().unwrap());
    assert!(said(&ended).contains("\"warp\"") && said(&ended).contains("uffd-move"), "{}", said(&ended));
    let found = exits(0, doctor(&["--check", "variables"]).output().unwrap());
    assert!(!out(&found).contains("uffd-move"), "{}", out(&found));
}
