//! Tests with whole jobs, from start to end, which use all parts of this crate.
//!
//! Each test forks a process with one thread, like the command's, because a wait collects any child of the
//! process, and signals are blocked for each thread separately.

use std::ffi::OsString;
use std::io::{Read, Seek};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use vellum_process::{
    BoardFile, Bytes, Child, Command, Ended, Outcome, Pid, Sampled, Sampler, Signals, SpawnError, Tree,
};

/// Runs a test's `scene` in a forked child.
fn forked(scene: fn()) {
    let status = vellum_skip::forked(|| {
        scene();
        0
    });
    assert_eq!(status, 0, "wait status {status:#x}");
}

fn shell(script: &str) -> Command {
    Command {
        program: "/bin/sh".into(),
        argv: ["sh", "-c", script].map(OsString::from).into(),
        env: std::env::vars_os().collect(),
        stdio: [None, None, None],
    }
}

fn watch(command: &Command, board: Option<Arc<BoardFile>>) -> (Pid, Ended, Sampled) {
    let signals = Signals::block().unwrap();
    let tree = Tree::below_us(board.as_deref());
    let child = Child::spawn(command, &signals).unwrap();
    let pid = child.pid();
    let sampler = Sampler::start(tree, pid, child.started(), board, true);
    let ended = child.wait(Some(Duration::from_millis(1)), |_| ()).unwrap();
    let mut sampled = sampler.stop();
    sampled.series.finish(ended.wall, ended.usage.minor_faults, ended.usage.major_faults);
    (pid, ended, sampled)
}

#[test]
fn outcomes_and_usage() {
    forked(|| {
        let (_, ended, sampled) = watch(&shell("exit 5"), None);
        assert_eq!((ended.outcome, ended.outcome.shell_status()), (Outcome::Exited(5), 5));
        assert!(ended.usage.minor_faults > 0 && ended.usage.largest_process > Bytes(0));
        assert!(ended.wall > Duration::ZERO && sampled.readable);
        let (_, ended, _) = watch(&shell("ulimit -c 0; kill -USR1 $$"), None);
        assert_eq!(ended.outcome, Outcome::Killed { signal: libc::SIGUSR1, core: false });
        assert_eq!(ended.outcome.shell_status(), 128 + libc::SIGUSR1 as u8);
    });
}

#[test]
fn output_goes_where_it_is_sent() {
    forked(|| {
        let mut file = tempfile::tempfile().unwrap();
        let mut command = shell("cat; echo more");
        let input = std::fs::File::open("/proc/self/comm").unwrap();
        command.stdio = [Some(OwnedFd::from(input)), Some(file.try_clone().unwrap().into()), None];
        watch(&command, None);
        let mut text = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut text).unwrap();
        assert!(text.ends_with("\nmore\n") && text.len() > 6, "{text:?}");
    });
}

#[test]
fn a_program_that_cannot_run_is_an_error() {
    forked(|| {
        let signals = Signals::block().unwrap();
        let mut command = shell("");
        command.program = PathBuf::from("/no/such/program");
        assert!(matches!(Child::spawn(&command, &signals), Err(SpawnError::NotFound(_))));
        command.program = PathBuf::from("/etc/passwd");
        assert!(matches!(Child::spawn(&command, &signals), Err(SpawnError::NotExecutable { .. })));
        command.program = PathBuf::from("/bin/sh");
        command.argv = vec!["a\0b".into()];
        assert!(matches!(Child::spawn(&command, &signals), Err(SpawnError::Nul)));
    });
}

/// Two names for the same program, so that a shell's own name is not what is found.
const LINGER: &str = "sh -c 'read end' <&3 & ";

#[test]
fn strangers_and_survivors_are_named() {
    forked(|| {
        let board = Arc::new(BoardFile::create().unwrap());
        let (reader, writer) = std::io::pipe().unwrap();
        let mut command = shell(&format!("exec 3<&0; {LINGER} sleep 0.3"));
        command.stdio[0] = Some(reader.into());
        let (pid, _, sampled) = watch(&command, Some(board));
        assert_eq!(sampled.survivors.len(), 1, "{:?}", sampled.survivors);
        assert_ne!(sampled.survivors[0].0, pid);
        let names: Vec<&str> = sampled.strangers.iter().map(|stranger| stranger.comm.as_str()).collect();
        assert!(names.contains(&"sleep") && names.contains(&"sh"), "{names:?}");
        assert!(sampled.series.peak().is_some_and(|peak| peak > Bytes(0)));
        drop(writer);
        // SAFETY: waits for a child of this process and asks for nothing back.
        while unsafe { libc::wait(std::ptr::null_mut()) } >= 0 {}
    });
}

#[test]
fn strays_are_followed() {
    forked(|| {
        // The middle shell ends at once, so that its child goes where it would without us.
        let board = Arc::new(BoardFile::create().unwrap());
        let stray = "dd bs=64M count=1 if=/dev/zero of=/dev/null 2>/dev/null; echo $PPID; read end <&3";
        let mut command =
            shell("exec 3<&0; pid=$(sh -c 'sh -c \"$0\" & exit 0' \"$0\" | head -1); sleep 0.1");
        command.argv.push(stray.into());
        command.env.push(("VELLUM_BOARD".into(), board.path().into()));
        let (reader, writer) = std::io::pipe().unwrap();
        command.stdio[0] = Some(reader.into());
        let (_, ended, sampled) = watch(&command, Some(board));
        drop(writer);
        assert_eq!((ended.outcome, sampled.survivors.len()), (Outcome::Exited(0), 1));
        let (strays, used) = sampled.strays;
        assert!(strays == 1 && used.minor_faults > 100, "{strays}: {used:?}");
        // SAFETY: asks for a child, of which there is none: it went elsewhere.
        assert_eq!(unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) }, -1);
    });
}
