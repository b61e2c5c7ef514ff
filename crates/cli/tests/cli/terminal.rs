//! Tests of `vellum run` on a terminal: job control, Ctrl-C, the status line.

use crate::common::terminal::{on_terminal, terminal, until};
use crate::common::{self, VELLUM, files, harmless_library, run};
use std::io::Write;
use std::process::{Command, Stdio};

/// `vellum run OPTIONS -- sh -c SCRIPT` on a terminal, and a Ctrl-C there when it has printed `ready`.
/// Returns the exit status and the output, which has `end`.
fn interrupted(options: &[&str], script: &str, ready: &str, end: &str) -> (Option<i32>, String) {
    let (mut master, slave) = terminal();
    let mut command = run(options);
    command.args(["sh", "-c", script]).stdout(slave.try_clone().unwrap());
    let mut child = on_terminal(&mut command, &slave);
    let mut seen = String::new();
    until(&mut master, &mut seen, ready);
    master.write_all(b"\x03").unwrap();
    until(&mut master, &mut seen, end);
    (child.wait().unwrap().code(), seen)
}

#[test]
fn ctrl_c_reaches_the_program_once() {
    let script = "trap 'echo caught; exit 9' INT; echo ready; while :; do sleep 0.02; done";
    let (status, seen) = interrupted(&["-q"], script, "ready", "caught");
    assert_eq!((status, seen.matches("caught").count()), (Some(9), 1), "{seen:?}");
}

#[test]
fn ctrl_c_ends_a_comparison_with_complete_pairs() {
    let (_place, [json]) = files(["c.json"]);
    let options = ["--compare=1000", "--json", common::text(&json)];
    let (status, seen) = interrupted(&options, "exec sleep 0.01", "run 25 of 3000", "complete");
    assert_eq!(status, Some(128 + libc::SIGINT), "{seen:?}");
    assert!(seen.contains("was stopped early") && seen.contains("pairs in random order"), "{seen:?}");
    assert!(!seen.contains("failed"), "{seen:?}");
    let report = common::report(&json);
    let pairs = report["pairs"].as_u64().unwrap();
    assert!((8..1000).contains(&pairs), "{pairs}");
    assert_eq!((&report["pairs_asked"], &report["stopped_by"]), (&1000.into(), &libc::SIGINT.into()));
    assert_eq!(report["runs"].as_array().unwrap().len() as u64, 3 * pairs);
}

#[test]
fn ctrl_c_before_the_first_pair_is_no_command_failure() {
    let script = "echo ready; while :; do sleep 0.02; done";
    let end = "before the first pair was complete";
    let (status, seen) = interrupted(&["--compare=5"], script, "ready", end);
    assert!(status == Some(128 + libc::SIGINT) && !seen.contains("failed"), "{seen:?}");
}

#[test]
fn stopped_program_stops_and_continues_with_vellum() {
    let (mut master, slave) = terminal();
    let inner = "kill -TSTP $$; echo resumed; exit 3";
    let library = harmless_library();
    let script = format!(
        "set -m; {VELLUM} run -q --lib {} -- sh -c '{inner}'; echo \"stopped $?\"; fg >/dev/null; echo \"ended $?\"",
        library.display()
    );
    let mut shell =
        on_terminal(Command::new("sh").args(["-c", &script]).stdout(slave.try_clone().unwrap()), &slave);
    let mut seen = String::new();
    until(&mut master, &mut seen, "ended");
    until(&mut master, &mut seen, "\n");
    assert!(shell.wait().unwrap().success());
    let stopped = seen.find(&format!("stopped {}", 128 + libc::SIGTSTP)).expect(&seen);
    let resumed = seen.find("resumed").expect(&seen);
    let ended = seen.find("ended 3").expect(&seen);
    assert!(stopped < resumed && resumed < ended, "{seen:?}");
}

#[test]
fn silent_run_shows_a_live_line_and_erases_it() {
    for shared in [false, true] {
        let (mut master, slave) = terminal();
        let mut command = run(&[]);
        command.args(["sh", "-c", "read line; exit 2"]);
        command.stdout(if shared { slave.try_clone().unwrap().into() } else { Stdio::null() });
        let mut child = on_terminal(&mut command, &slave);
        let mut seen = String::new();
        until(&mut master, &mut seen, "faults/s");
        assert!(seen.contains("resident"), "{seen:?}");
        master.write_all(b"\n").unwrap();
        until(&mut master, &mut seen, "exit status 2");
        assert_eq!(child.wait().unwrap().code(), Some(2));
        let erased = seen.rfind("\x1b[J").expect("the line is erased");
        let (line, end) = (seen.rfind("faults/s").unwrap(), seen.find("exit status").unwrap());
        assert!(line < erased && erased < end, "{seen:?}");
    }
}

#[test]
fn program_in_raw_mode_gets_no_live_line() {
    let (mut master, slave) = terminal();
    // Longer than the silence that the live line needs, on a terminal in the program's own mode.
    let library = harmless_library();
    let script = format!("stty -icanon -echo && exec {VELLUM} run --lib {} -- sleep 1.5", library.display());
    let mut child = on_terminal(Command::new("sh").args(["-c", &script]).stdout(Stdio::null()), &slave);
    let mut seen = String::new();
    until(&mut master, &mut seen, "exit status 0");
    assert!(child.wait().unwrap().success());
    assert!(!seen.contains("faults/s"), "{seen:?}");
}

#[test]
fn colour_depends_on_the_terminal() {
    let coloured = |set: fn(&mut Command) -> &mut Command| {
        let (mut master, slave) = terminal();
        let mut command = run(&["--no-live"]);
        command.arg("true").stdout(Stdio::null());
        command.stdin(Stdio::null()).stderr(slave.try_clone().unwrap());
        let mut child = set(command.env("TERM", "xterm").env_remove("NO_COLOR")).spawn().unwrap();
        let mut seen = String::new();
        until(&mut master, &mut seen, "faults");
        child.wait().unwrap();
        seen.contains("\x1b[")
    };
    assert!(coloured(|command| command));
    assert!(!coloured(|command| command.env("NO_COLOR", "1")));
    assert!(!coloured(|command| command.env("TERM", "dumb")));
}
