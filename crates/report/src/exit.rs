//! Exit statuses that all of Vellum's commands share. They are those of env(1).

/// The command itself failed, and not the program it runs.
pub const FAILED: u8 = 125;
/// A signal ended the command: this and the signal's number.
pub const SIGNALLED: u8 = 128;
