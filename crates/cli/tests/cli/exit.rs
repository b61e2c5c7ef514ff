//! Tests of exit statuses and error messages.

use crate::common::{self, exits, files, has, out_of_success, refused, run, said, sh, text, vellum};
use std::process::Command;

#[test]
fn program_status_is_passed_on() {
    for status in [0, 1, 3, 125, 126, 127, 128, 255] {
        let ended = exits(status, sh(&[], &format!("exit {status}")));
        assert!(said(&ended).contains(&format!("exit status {status}\n")), "{}", said(&ended));
    }
}

#[test]
fn killed_program_exits_128_plus_signal_with_a_report() {
    let (_place, [json]) = files(["r.json"]);
    for (signal, number) in [("KILL", 9), ("TERM", 15), ("SEGV", 11), ("INT", 2)] {
        let ended = sh(&["--json", text(&json)], &format!("ulimit -c 0; kill -{signal} $$"));
        assert_eq!(ended.status.code(), Some(128 + number), "{signal}");
        let said = said(&ended);
        assert!(said.contains(&format!("killed by signal {number} (")) && said.contains("wall"), "{said}");
        let report = common::report(&json);
        let outcome = &report["outcome"];
        assert_eq!((&outcome["kind"], &outcome["signal"]), (&"killed".into(), &number.into()), "{report}");
        assert_eq!(report["exit_status"], 128 + number);
    }
}

#[test]
fn run_exits_127_for_missing_and_126_for_unexecutable_programs() {
    for missing in ["no-such-program-here", "/no/such/program", "/etc/passwd/x"] {
        let ended = run(&[]).arg(missing).output().unwrap();
        assert_eq!(ended.status.code(), Some(127), "{missing}");
        assert_eq!(said(&ended), format!("error: {missing}: not found\n"));
    }
    let (_place, [orphan]) = files(["orphan"]);
    std::fs::write(&orphan, "#!/no/such/interpreter\n").unwrap();
    assert!(Command::new("chmod").arg("755").arg(&orphan).status().unwrap().success());
    for unable in ["/etc/passwd", "/etc", text(&orphan)] {
        let ended = run(&[]).arg(unable).output().unwrap();
        assert_eq!(ended.status.code(), Some(126), "{unable}");
        assert!(said(&ended).starts_with(&format!("error: {unable}: cannot be executed: ")), "{ended:?}");
    }
}

#[test]
fn script_without_interpreter_line_runs_in_the_shell() {
    let (_place, [script]) = files(["script"]);
    std::fs::write(&script, "echo \"$1 of $#\"; exit 4\n").unwrap();
    assert!(Command::new("chmod").arg("755").arg(&script).status().unwrap().success());
    let ended = run(&["-q"]).arg(&script).args(["one", "two"]).output().unwrap();
    assert_eq!((ended.status.code(), ended.stdout), (Some(4), b"one of 2\n".to_vec()));
}

#[test]
fn own_failures_exit_125() {
    refused(&vellum(["run", "--lib", "/no/such/libvellum.so", "true"]), "/no/such/libvellum.so");
    let mut other = Command::new(common::VELLUM);
    other.args(["run", "true"]).env("VELLUM_LIB", "/no/such/other.so");
    refused(&other.output().unwrap(), "/no/such/other.so");
    for (line, wanted) in [
        ("run", "the following required arguments were not provided"),
        ("bogus", "unrecognized subcommand 'bogus'"),
        ("run --no-such-option true", "unexpected argument '--no-such-option'"),
        ("run --decay abc true", "'abc' for '--decay <MS>': write a whole number\n"),
        ("run --decay=-1 true", "'-1' for '--decay <MS>': write a whole number from 0 to 4294967295\n"),
        ("plot --width=99999999999999999999", "for '--width <COLUMNS>': write a smaller whole number\n"),
        ("cost --diff /etc/passwd /etc/passwd", "/etc/passwd: it is not JSON; name two files"),
    ] {
        let ended = vellum(line.split(' '));
        let message = said(&ended);
        assert_eq!(ended.status.code(), Some(125), "{line}: {message}");
        assert!(message.starts_with("error: ") && message.contains(wanted), "{line}: {message}");
    }
}

#[test]
fn unwritable_output_exits_125_and_closed_pipe_is_silent() {
    let sh = |script: String| {
        let ended = Command::new("bash").args(["-c", &script]).output().unwrap();
        (ended.status.code(), said(&ended))
    };
    for line in ["--help >", "run --help >", "--version >", "version >", "man >", "bench -t 20ms -- true >"] {
        let (status, message) = sh(format!("{} {line}/dev/full", common::VELLUM));
        assert_eq!(status, Some(125), "{line}");
        let expected = "error: cannot write standard output: No space left on device\n";
        assert!(message.ends_with(expected), "{message}");
    }
    for (line, status) in [("true", 125), ("sh -c 'exit 3'", 3)] {
        assert_eq!(sh(format!("{} run -- {line} 2>/dev/full", common::VELLUM)).0, Some(status), "{line}");
    }
    for line in ["run --help", "completions bash"] {
        let piped = format!("{} {line} | head -1 >/dev/null; exit ${{PIPESTATUS[0]}}", common::VELLUM);
        assert_eq!(sh(piped), (Some(0), String::new()), "{line}");
    }
}

#[test]
fn unwritable_report_is_detected_before_the_program_runs() {
    let (_place, [mark]) = files(["ran"]);
    for option in ["--json", "--report"] {
        let report = "/no/such/directory/report";
        refused(&sh(&[option, report], &format!("touch {}", mark.display())), report);
        assert!(!mark.exists());
    }
}

#[test]
fn help_completions_manual_pages_and_version_are_printed() {
    let (_place, [pages]) = files(["man"]);
    exits(0, Command::new(common::VELLUM).arg("man").arg(&pages).output().unwrap());
    for page in
        ["vellum.1", "vellum-run.1", "vellum-bench.1", "vellum-plot.1", "vellum-obs.1", "vellum-obs-grep.1"]
    {
        assert!(pages.join(page).exists(), "{page}");
    }
    for shell in ["bash", "zsh", "fish"] {
        has(&out_of_success(&vellum(["completions", shell])), &["compare"]);
    }
    has(&out_of_success(&vellum(["run", "--help"])), &["--compare"]);
    let version = out_of_success(&vellum(["version"]));
    assert!(version.starts_with("vellum ") && version == out_of_success(&vellum(["--version"])), "{version}");
}

#[test]
fn copied_command_reports_the_missing_library() {
    let (_place, [copy]) = files(["vellum"]);
    // Copied by another process: a child forked by another test could have the copy open for writing.
    assert!(Command::new("cp").arg(common::VELLUM).arg(&copy).status().unwrap().success());
    let ended = Command::new(&copy).args(["run", "--", "true"]).env_remove("VELLUM_LIB").output().unwrap();
    refused(&ended, "libvellum.so not found");
    assert!(said(&ended).contains("./build makes it") && !said(&ended).contains("cargo"), "{ended:?}");
}

#[test]
fn resource_limits_are_respected_or_reported() {
    if vellum_skip::built("libvellum.so").is_none() {
        return;
    }
    let status = |script: &str| {
        let ended = Command::new("sh").args(["-c", script]).env_remove("VELLUM_LIB").output().unwrap();
        (ended.status.code(), said(&ended))
    };
    let run = format!("exec {} run -q -- sh -c 'exit 7'", common::VELLUM);
    for limit in ["-f 8", "-s 64", "-n 9"] {
        assert_eq!(status(&format!("ulimit {limit}; {run}")), (Some(7), String::new()), "{limit}");
    }
    let (code, said) = status(&format!("ulimit -f 0; {run}"));
    assert!(code == Some(7) && said.contains("files are limited to 0 bytes here; raise the limit"), "{said}");
    // The same without /proc, which a user can hide in a namespace.
    let hidden = "unshare -rm sh -c 'mount -t tmpfs none /proc && eval \"$0\"'";
    if status(&format!("{hidden} true")).0 != Some(0) {
        return common::skip("no mount namespace can be made here");
    }
    assert_eq!(status(&format!("{hidden} \"{run}\"")), (Some(7), String::new()));
}
