//! A whole job, from start to end, watched by everything this crate has.
//!
//! Each test forks a process with one thread, as the command is: waiting takes any child of the process, and
//! signals are held back a thread at a time.

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
    let signals = Signals::hold().unwrap();
    let tree = Tree::below_us();
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
        let signals = Signals::hold().unwrap();
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
fn strays_are_accounted() {
    forked(|| {
        // The middle shell ends at once, so its child comes to us; the program waits until that one is gone,
        // which it is only when we have waited for it.
        let work = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
        let stray = format!("echo $$; exec >&-; {work}");
        let wait = "while kill -0 $pid 2>/dev/null; do sleep 0.01; done";
        let mut command = shell(&format!("pid=$(sh -c 'sh -c \"$0\" & exit 0' \"$1\"); {wait}"));
        command.argv.extend(["name".into(), stray.into()]);
        let (_, ended, _) = watch(&command, None);
        let (_, idle, _) = watch(&shell("pid=$(echo 0); sleep 0.01"), None);
        assert_eq!(ended.outcome, Outcome::Exited(0));
        let cpu = |ended: &Ended| ended.usage.user + ended.usage.system;
        assert!(cpu(&ended) > cpu(&idle), "{:?} is not more than {:?}", cpu(&ended), cpu(&idle));
    });
}

#[test]
fn an_earlier_jobs_leftovers_are_not_this_ones() {
    forked(|| {
        let (reader, writer) = std::io::pipe().unwrap();
        let big = "sh -c 'read end; exec dd bs=64M count=1 if=/dev/zero of=/dev/null 2>/dev/null' <&3 &";
        let mut command = shell(&format!("exec 3<&0; {big} exit 0"));
        command.stdio[0] = Some(reader.into());
        let left = watch(&command, None).2.survivors;
        drop(command);
        assert_eq!(left.len(), 1, "{left:?}");
        drop(writer);
        let wait = format!("while kill -0 {} 2>/dev/null; do sleep 0.01; done", left[0].0);
        let (_, ended, sampled) = watch(&shell(&wait), None);
        assert_eq!(sampled.survivors, []);
        assert!(ended.usage.largest_process < Bytes(32 << 20), "{:?}", ended.usage);
        assert!(sampled.series.peak().is_none_or(|peak| peak < Bytes(32 << 20)));
    });
}
