//! Errors that a program can handle, and errors that end it.

use crate::datum::{Place, SyntaxError};
use crate::memory::{OutOfMemory, Value};
use std::fmt;

/// Why a built-in procedure returns no value.
#[derive(Debug)]
pub enum Fail<'s> {
    /// An error that a program can handle: its message, and the value that it concerns.
    Error(String, Option<Value<'s>>),
    /// Memory ran out.
    Memory(OutOfMemory),
    /// The program called `exit`.
    Exit(i32),
    /// An error that no handler has handled.
    Uncaught(String),
}

impl Fail<'_> {
    /// An error without a value.
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
    /// The program cannot be read or compiled.
    Syntax(SyntaxError),
    /// An error that no handler has handled: the message and its place.
    Error(String, Option<Place>),
    /// Memory ran out.
    Memory(OutOfMemory),
    /// The program called `exit`.
    Exit(i32),
}

/// Why a program cannot be compiled.
#[derive(Debug)]
pub enum Compile {
    /// A syntax error.
    Syntax(SyntaxError),
    /// Memory ran out.
    Memory(OutOfMemory),
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "there is no memory for {} bytes more", self.bytes)
    }
}
