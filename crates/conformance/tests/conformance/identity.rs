//! Tests of programs that drop privileges or enter another namespace while Vellum's background threads run.
//! Also tests programs that run with other rights than their parents, or as other users.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::process::Command;
use vellum_conformance::program::sources;
use vellum_conformance::scenario::check_those;
use vellum_conformance::{Place, check_all, compiled, library, plain, skip, tool};
use vellum_process::library::SONAME;

/// A user without rights.
const NOBODY: u32 = 65534;

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn identities() {
    if !is_root() {
        skip("changing identity is root's to try; what anybody may do is tried");
    }
    check_all(&compiled("identity.c", &["-pthread"]), &[]);
}

/// A change of identity in the calling thread must apply to every thread as soon as the call returns.
/// RACES in the environment sets the number of races in each scenario.
fn every_thread_follows(wanted: impl Fn(&str) -> bool, environment: &[(&str, &str)]) {
    if !is_root() {
        skip("most ways to change one's identity are root's");
    }
    let program = compiled("rights.c", &["-pthread"]);
    check_those(&program, environment, wanted);
}

#[test]
fn every_thread_has_what_the_caller_has() {
    every_thread_follows(|name| name.starts_with("once_"), &[]);
}

#[test]
fn every_thread_has_what_the_caller_has_in_races() {
    every_thread_follows(|name| name.starts_with("race_"), &[]);
}

/// With paged memory, the pager's threads must follow too.
const PAGED: [(&str, &str); 2] = [("VELLUM_FRAMES", "8M"), ("RACES", "2")];

macro_rules! threads_that_page_follow {
    ($($name:ident)+) => {
        mod threads_that_page_follow {
            const ALL: &[&str] = &[$(stringify!($name)),+];
            $(
                #[test]
                fn $name() {
                    super::every_thread_follows(|name| name == stringify!($name), &super::PAGED);
                }
            )+

            #[test]
            fn these_are_all() {
                let program = super::compiled("rights.c", &["-pthread"]);
                let names = vellum_conformance::scenario::names(&program);
                // The program lists only the scenarios that its user may run.
                let may = |name: &&&str| super::is_root() || names.iter().any(|known| known == **name);
                let once: Vec<_> = names.iter().filter(|name| name.starts_with("once_")).collect();
                assert!(!once.is_empty());
                assert_eq!(once, ALL.iter().filter(may).collect::<Vec<_>>());
            }
        }
    };
}

threads_that_page_follow! {
    once_setuid once_seteuid once_setreuid once_setresuid once_there_and_back once_setgroups once_initgroups
    once_setfsuid once_capset once_capset_number once_setgroups_number once_setuid_number once_bounding_set
    once_no_new_privs once_no_new_privs_number once_ambient once_securebits once_keepcaps once_landlock
}

#[test]
fn threads_that_page_follow_in_races() {
    every_thread_follows(|name| name.starts_with("race_"), &PAGED);
}

/// A program with more rights than its caller ignores the caller's environment: it opens no file and reads no
/// variable.
#[test]
fn privileged_program_ignores_the_environment() {
    if !is_root() {
        return skip("only root can make a program set-user-ID for somebody else");
    }
    // The program is linked with the library, as the loader preloads nothing into such a program.
    let place = Place::new();
    let folder = place.path().display().to_string();
    let preloaded = place.file("libvellum.so");
    fs::copy(library(), &preloaded).expect("a copy of the library");
    symlink("libvellum.so", place.file(SONAME)).expect("a link by the name that the loader looks for");
    let flags = [
        format!("-L{folder}"),
        format!("-Wl,-rpath,{folder}"),
        "-Wl,--no-as-needed".into(),
        "-lvellum".into(),
    ];
    // Compiled here and not cached, as its rights are changed and the library is in this folder.
    let program = place.file("secure");
    let mut command = Command::new("cc");
    command.arg(sources().join("secure.c")).args(flags).arg("-o").arg(&program);
    plain(command).succeeded();
    let board = place.file("board");
    fs::write(&board, vec![0; 1 << 20]).expect("a file");
    for (path, mode) in [
        (place.path(), 0o755),
        (preloaded.as_path(), 0o755),
        (program.as_path(), 0o755),
        (board.as_path(), 0o666),
    ] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("one's own file");
    }
    let run = |user: u32| {
        let mut command = Command::new(&program);
        command.uid(user).gid(user).env("VELLUM_BOARD", &board).env("VELLUM_DECAY_MS", "nonsense");
        command.env("VELLUM_FRAMES", "nonsense");
        plain(command)
    };
    let usual = run(NOBODY).succeeded();
    assert!(usual.stderr.contains("VELLUM_DECAY_MS") && usual.stderr.contains("VELLUM_BOARD"), "{usual}");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).expect("one's own file");
    let secure = run(NOBODY).succeeded();
    if secure.text().starts_with("secure 0") {
        return skip("the folder for temporary files is mounted without set-user-ID");
    }
    assert_eq!((secure.text().as_str(), secure.stderr.as_str()), ("secure 1 board 0\n", ""), "{secure}");
}

/// A board of another user, or out of sight, causes no message.
#[test]
fn inaccessible_board_causes_no_message() {
    let place = Place::new();
    let board = place.file("board");
    fs::write(&board, vec![0; 1 << 20]).expect("a file");
    fs::set_permissions(&board, fs::Permissions::from_mode(0o600)).expect("one's own file");
    let run = |path: &std::path::Path, mut command: Command| {
        command.env("LD_PRELOAD", library()).env("VELLUM_BOARD", path);
        plain(command).succeeded()
    };
    let gone = run(&place.file("gone"), Command::new("true"));
    assert_eq!(gone.stderr, "", "{gone}");
    let nonsense = run(&board, Command::new("true"));
    assert!(nonsense.stderr.contains("cannot be opened as a board"), "what is no board is said: {nonsense}");
    if !is_root() {
        return skip("only root can become another user");
    }
    if let Some(setpriv) = tool("setpriv") {
        let mut command = Command::new(setpriv);
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "true"]);
        // The file is not a board; setpriv itself may print one error about it.
        let said = run(&board, command);
        assert!(said.stderr.matches("cannot be opened").count() <= 1, "{said}");
    }
    if let Some(bwrap) = tool("bwrap") {
        let mut command = Command::new(bwrap);
        command.args(["--ro-bind", "/", "/", "--tmpfs", "/tmp", "--dev", "/dev", "true"]);
        command.env("LD_PRELOAD", library()).env("VELLUM_BOARD", &board);
        let said = plain(command);
        if !said.status.success() {
            return skip(format_args!("bwrap cannot be used here: {said}"));
        }
        assert!(said.stderr.matches("cannot be opened").count() <= 1, "{said}");
    }
}
