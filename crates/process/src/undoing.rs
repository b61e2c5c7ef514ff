//! Cleans up even if this process is killed: a shell waits until this process has ended, then runs a script.
//!
//! ```text
//! we ──pipe──▶ sh: read ─┬─ a line: already cleaned up, exit
//!                        └─ end of file: we have ended; try the script until it succeeds
//! ```
//!
//! The shell has its own session, so that a signal to our process group does not end it.

use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// 5 min: the last process may take a while to leave a group, and a disk to be free.
const WAIT: &str =
    "read -r _ && exit; n=3000; until undo \"$@\" || [ $((n -= 1)) -le 0 ]; do sleep 0.1; done";

/// Dropped when the thing is undone. If we die before, a shell undoes it.
#[derive(Debug)]
pub struct Undoing {
    /// `None` where there is no shell: then nothing is undone if we are killed.
    shell: Option<Child>,
}

impl Undoing {
    /// Has a shell run `script`, with `words` as its arguments, if we die. The script is repeated while it
    /// fails.
    pub fn by(script: &str, words: &[&OsStr]) -> Undoing {
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(format!("undo() {{ {script}; }}; {WAIT}")).arg("sh").args(words);
        // A library that we have preloaded has nothing to do there.
        command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // SAFETY: setsid is async-signal-safe and touches nothing of ours.
        unsafe {
            command.pre_exec(|| {
                libc::setsid();
                Ok(())
            });
        }
        Undoing { shell: command.spawn().ok() }
    }
}

impl Drop for Undoing {
    fn drop(&mut self) {
        let Some(shell) = &mut self.shell else { return };
        // If the shell is gone, nothing is left to do.
        let _ = shell.stdin.take().map(|mut pipe| pipe.write_all(b"\n"));
        let _ = shell.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn only_the_dead_have_things_undone() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("it is there");
        let make = || {
            std::fs::write(&file, "").unwrap();
            Undoing::by("rm \"$1\"", &[file.as_os_str()])
        };
        drop(make());
        assert!(file.exists(), "it was undone although we live");

        let mut killed = make();
        // The end of the pipe is all that the shell sees of our death.
        drop(killed.shell.as_mut().unwrap().stdin.take());
        let began = Instant::now();
        while file.exists() {
            assert!(began.elapsed() < Duration::from_secs(60), "nothing was undone");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
