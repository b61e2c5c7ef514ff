//! How a program ended, as reports give it: its exit status or the signal that killed it.

use serde::Serialize;
use std::ffi::CStr;

#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Outcome {
    Exited {
        status: u8,
    },
    Killed {
        signal: i32,
        name: String,
        core_dumped: bool,
    },
    /// Still running; or ended, with a status that only its parent gets.
    Running,
    Gone,
}

impl Outcome {
    pub(crate) fn of(outcome: vellum_process::Outcome) -> Outcome {
        match outcome {
            vellum_process::Outcome::Exited(status) => Outcome::Exited { status },
            vellum_process::Outcome::Killed { signal, core } => {
                Outcome::Killed { signal, name: signal_name(signal), core_dumped: core }
            }
        }
    }
}

fn signal_name(signal: i32) -> String {
    // SAFETY: strsignal returns a NUL-terminated string, valid until the next call; it is copied at once, and
    // no other thread of this command calls it.
    let words = unsafe { CStr::from_ptr(libc::strsignal(signal)) };
    words.to_string_lossy().into_owned()
}
