//! Errors: those that a program can handle, and those that end it.

use crate::datum::{Place, SyntaxError};
use crate::memory::{OutOfMemory, Value};
use std::fmt;

/// Why a procedure of the machine has no value.
#[derive(Debug)]
pub enum Fail<'s> {
    /// An error that a program can handle: its message, and what it is about.
    Error(String, Option<Value<'s>>),
    /// There is no memory.
    Memory(OutOfMemory),
    /// The program ends itself. By `exit`.
    Exit(i32),
    /// Nothing has handled this.
    Uncaught(String),
}

impl Fail<'_> {
    /// An error about nothing in particular.
    pub fn error<'s>(message: impl Into<String>) -> Fail<'s> {
        Fail::Error(message.into(), None)
    }
}

impl From<OutOfMemory> for Fail<'_> {
    fn from(error: OutOfMemory) -> Self {
        Fail::Memory(error)
    }
}

/// Why a program has ended early.
#[derive(Debug, PartialEq)]
pub enum Ended {
    /// It cannot be read or compiled.
    Syntax(SyntaxError),
    /// An error that it has not handled: the message, and where it was.
    Error(String, Option<Place>),
    /// There is no memory.
    Memory(OutOfMemory),
    /// By `exit`.
    Exit(i32),
}

/// Why a program cannot be compiled.
#[derive(Debug)]
pub enum Compile {
    /// It means nothing.
    Syntax(SyntaxError),
    /// There is no memory.
    Memory(OutOfMemory),
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "there is no memory for {} bytes more", self.bytes)
    }
}
