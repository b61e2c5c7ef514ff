//! Tests that a program under `vellum` behaves as it does without it.

use crate::common::{
    self, VELLUM, exits, files, harmless_library, heeding_signals, out, program, run, said, sh,
};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Random bytes of every value, which any conversion of text would change.
fn bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed;
    let step = |state: &mut u64| {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) as u8
    };
    (0..length).map(|_| step(&mut state)).collect()
}

#[test]
fn input_and_output_pass_byte_for_byte() {
    let data = bytes(7, 3 << 20);
    let ended = exits(0, common::piped(run(&[]).arg("cat"), &data));
    assert!(ended.stdout == data, "3 MiB went through cat and came out different");
}

#[test]
fn quiet_leaves_standard_error_to_the_program() {
    let ended = sh(&["--quiet"], "echo mine >&2");
    assert_eq!(said(&ended), "mine\n");
}

#[test]
fn arguments_and_environment_arrive() {
    let mut run = run(&["-q"]);
    run.args(["sh", "-c", "printf '%s|' \"$@\" \"$MARK\"", "name", "a b", "", "--json", "'\"*"]);
    let ended = run.env("MARK", "kept").output().unwrap();
    assert_eq!(ended.stdout, b"a b||--json|'\"*|kept|");
}

#[test]
fn lists_in_the_environment_are_extended_and_not_replaced() {
    let library = harmless_library();
    let print = "echo \"$LD_PRELOAD $ASAN_OPTIONS $VELLUM_HUGE $VELLUM_DECAY_MS $VELLUM_MMAP $VELLUM_FRAMES $VELLUM_STORE\"";
    let options = "-q --huge never --decay 250 --no-mmap --frames 1M --store /var/tmp/no-such";
    let mut run = run(&options.split(' ').collect::<Vec<_>>());
    run.args(["sh", "-c", print]).envs([("LD_PRELOAD", "libm.so.6"), ("ASAN_OPTIONS", "detect_leaks=0")]);
    let ended = run.output().unwrap();
    let expected = format!(
        "{}:libm.so.6 detect_leaks=0:verify_asan_link_order=0 never 250 off 1048576 /var/tmp/no-such\n",
        library.display()
    );
    assert_eq!(out(&ended), expected);
}

/// Runs `what` in a shell after `setup`, directly and under vellum, and compares the output.
fn same_with_and_without(setup: &str, what: &str) {
    let under = format!("{VELLUM} run -q --lib {} -- {what}", harmless_library().display());
    let print = |command: &str| {
        out(&Command::new("sh").args(["-c", &format!("{setup} exec {command}")]).output().unwrap())
    };
    assert_eq!(print(&under), print(what), "after: {setup}");
}

#[test]
fn signal_dispositions_and_mask_are_inherited() {
    for (ignored, blocked) in [
        (&[][..], &[][..]),
        (&[libc::SIGPIPE], &[]),
        (&[libc::SIGCHLD], &[]),
        (&[libc::SIGHUP, libc::SIGINT, libc::SIGTSTP], &[libc::SIGUSR1]),
        (&[libc::SIGPIPE, libc::SIGXFSZ, libc::SIGTERM], &[libc::SIGCHLD, libc::SIGTERM]),
    ] {
        let print = |command: &mut Command| {
            // SAFETY: signal and sigprocmask are async-signal-safe; the slices are 'static.
            unsafe {
                command.pre_exec(move || {
                    for signal in ignored {
                        libc::signal(*signal, libc::SIG_IGN);
                    }
                    let mut mask: libc::sigset_t = std::mem::zeroed();
                    for signal in blocked {
                        libc::sigaddset(&mut mask, *signal);
                    }
                    libc::sigprocmask(libc::SIG_SETMASK, &mask, std::ptr::null_mut());
                    Ok(())
                });
            }
            // grep is the tested process itself, and does not change its signals.
            out(&command.args(["^Sig[BI]", "/proc/self/status"]).output().unwrap())
        };
        let mut grep = Command::new("grep");
        heeding_signals(&mut grep);
        let direct = print(&mut grep);
        assert_eq!(direct.lines().count(), 2, "{direct}");
        assert_eq!(print(run(&["-q"]).arg("grep")), direct, "ignored {ignored:?}, blocked {blocked:?}");
    }
}

#[test]
fn descriptors_are_inherited() {
    for setup in ["", "exec 0<&-;", "exec 2>&-;", "exec 0<&- 2>&-;", "exec 5</dev/null;"] {
        same_with_and_without(setup, "ls /proc/self/fd");
    }
}

#[test]
fn process_group_is_inherited() {
    same_with_and_without(
        "set --;",
        "sh -c 'test $(ps -o pgid= -p $$) = $(ps -o pgid= -p $PPID) && echo same'",
    );
}

#[test]
fn orphan_gets_the_usual_new_parent() {
    same_with_and_without("", concat!("sh ", env!("CARGO_MANIFEST_DIR"), "/tests/cli/orphan.sh"));
}

/// The signals ignored in this process, and so in the programs it starts: signal `n` at bit `n - 1`.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    u64::from_str_radix(line.trim(), 16).unwrap()
}

#[test]
fn signals_to_vellum_are_forwarded() {
    let ignored = ignored();
    for (number, signal) in [
        (libc::SIGTERM, "TERM"),
        (libc::SIGHUP, "HUP"),
        (libc::SIGUSR1, "USR1"),
        (libc::SIGUSR2, "USR2"),
        (libc::SIGALRM, "ALRM"),
        (libc::SIGINT, "INT"),
        (libc::SIGQUIT, "QUIT"),
        (libc::SIGWINCH, "WINCH"),
    ] {
        // A shell cannot trap a signal that was ignored at its start, such as SIGHUP under nohup.
        if ignored & 1 << (number - 1) != 0 {
            vellum_skip::skip(format_args!("SIG{signal} is ignored here"));
            continue;
        }
        let script =
            format!("trap 'echo got {signal}; exit 7' {signal}; echo ready; while :; do sleep 0.02; done");
        let mut child = run(&["-q"]).args(["sh", "-c", &script]).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "ready");
        let sent =
            Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status().unwrap();
        assert!(sent.success());
        assert_eq!(lines.next().unwrap().unwrap(), format!("got {signal}"));
        assert_eq!(child.wait().unwrap().code(), Some(7));
    }
}

#[test]
fn no_files_are_left_behind() {
    let place = tempfile::tempdir().unwrap();
    // The board's path varies, so all boards of this user are compared before and after.
    let script = "test -f \"$VELLUM_BOARD\" && stat -c %a \"$VELLUM_BOARD\" && echo \"$VELLUM_BOARD\"";
    for end in ["", "; kill -9 $$", "; exit 5"] {
        let mut run = run(&["-q"]);
        run.args(["sh", "-c", &format!("{script}{end}")]).env("TMPDIR", place.path());
        let text = out(&run.output().unwrap());
        let (mode, board) = text.trim_end().split_once('\n').expect("a board");
        assert_eq!(mode, "600");
        let directory = std::path::Path::new(board).parent().unwrap();
        assert!(!directory.exists(), "{} is still there", directory.display());
    }
}

#[test]
fn left_over_children_are_not_waited_for() {
    let (_place, [json]) = files(["r.json"]);
    let script = "sleep 1000 >/dev/null 2>&1 </dev/null & echo $!";
    let ended = sh(&["--json", common::text(&json)], script);
    let pid = out(&ended).trim().to_owned();
    let killed = Command::new("kill").arg(&pid).status().unwrap();
    assert!(killed.success(), "it was left running");
    let report = common::report(&json);
    assert_eq!(report["survivors"][0]["pid"].to_string(), pid);
    assert!(said(&ended).contains("1 background process still running"), "{}", said(&ended));
}

#[test]
fn nested_runs_work() {
    let library = harmless_library();
    let inner = [VELLUM, "run", "--lib", common::text(&library), "--", "sh", "-c"];
    let ended = exits(6, run(&[]).args(inner).arg("echo $LD_PRELOAD; exit 6").output().unwrap());
    assert_eq!(out(&ended).trim_end(), common::text(&library));
    assert_eq!(said(&ended).matches("exit status 6").count(), 2);
}

#[test]
fn i386_programs_get_no_loader_warnings() {
    let source = "#include <stdio.h>\nint main(void) { printf(\"%d\\n\", (int)sizeof(long)); return 0; }\n";
    let Some(program) = program("gcc", &["-m32"], source) else { return };
    let ended = common::vellum(["run", "-q", "--", "sh", "-c", "$0 && exec $0", common::text(&program)]);
    assert_eq!((out(&ended).as_str(), said(&ended).as_str()), ("4\n4\n", ""));
}
