//! Puts the lines of an interpreted Python program in their places on a stack of machine code.
//!
//! The runtime records the frames of machine code first, then the lines of Python, each innermost first. The
//! interpreter's evaluation function is on the stack once for each group of Python lines:
//!
//! ```text
//! recorded:  malloc's caller · … · eval · … · eval · … · main   f (a.py:3) · g (a.py:9)
//! in order:  malloc's caller · … · f (a.py:3) · g (a.py:9)
//! ```
//!
//! All machine code from the innermost evaluation function outwards is dropped.

use crate::place::Instruction;
use std::path::Path;
use std::sync::Arc;
use vellum_process::Symbols;
use vellum_wire::script;

/// CPython's name for its evaluation function, also of its separate parts (`.cold`).
const RUNS: &str = "_PyEval_EvalFrameDefault";

/// A line of an interpreted program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ScriptLine {
    /// The file, as named by the interpreter.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: u32,
    /// The function, qualified by the enclosing classes and functions.
    pub function: Arc<str>,
}

impl ScriptLine {
    /// Returns whether the line is the user's.
    pub(crate) fn is_users(&self) -> bool {
        script::is_users(&self.file)
    }
}

/// Returns whether a module is the interpreter.
pub(crate) fn is_interpreter(module: &Path) -> bool {
    script::is_interpreter(module.file_name().unwrap_or_default().as_encoded_bytes())
}

/// Moves the lines of a stack to the frames where the interpreter ran them.
#[must_use]
pub fn in_order(mut stack: Vec<Instruction>, symbols: &mut Symbols) -> Vec<Instruction> {
    let Some(lines) = stack.iter().position(|at| at.line.is_some()) else { return stack };
    let mut runs = |at: &Instruction| {
        let Some(module) = at.module.as_deref() else { return false };
        let functions = symbols.functions(module, at.address);
        functions.iter().any(|function| function.name.as_deref().is_some_and(|name| name.starts_with(RUNS)))
    };
    if let Some(first) = stack[..lines].iter().position(&mut runs) {
        stack.drain(first..lines);
    }
    // The remaining addresses of a stripped interpreter would hide the Python lines.
    stack.retain(|at| {
        let Some(module) = at.module.as_deref().filter(|module| is_interpreter(module)) else { return true };
        symbols.functions(module, at.address).iter().any(|function| function.name.is_some())
    });
    stack
}
