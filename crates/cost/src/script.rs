//! Lines of an interpreted program on a stack: which of them are the user's, and where they belong.
//!
//! The runtime notes the frames of machine code first, then the lines of Python, each innermost first. The
//! interpreter's function that runs code is on the stack for each run of them:
//!
//! ```text
//! noted:     malloc's caller · … · eval · … · eval · … · main   f (a.py:3) · g (a.py:9)
//! in order:  malloc's caller · … · f (a.py:3) · g (a.py:9)
//! ```
//!
//! Code of a library that Python code calls and that calls Python code again is left out.

use crate::place::Instruction;
use std::path::Path;
use std::sync::Arc;
use vellum_process::Symbols;

/// What CPython calls the function that runs code, also in parts (`.cold`).
const RUNS: &str = "_PyEval_EvalFrameDefault";
/// Where Python keeps its own modules, and packages of others.
const LIBRARIES: &[&str] = &["/lib/python3", "/lib64/python3", "/site-packages/", "/dist-packages/"];

/// A line of an interpreted program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ScriptLine {
    /// The file, as the interpreter names it.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: u32,
    /// The function, with the classes and functions it is in.
    pub function: Arc<str>,
}

impl ScriptLine {
    /// Whether it is the user's: of no module of Python's own, and of no package.
    pub(crate) fn is_users(&self) -> bool {
        let file = &*self.file;
        let is_frozen = file.starts_with('<') && file != "<string>" && file != "<stdin>";
        !is_frozen && !is_package(file)
    }
}

/// Whether a file is one of Python's own, or of a package.
pub(crate) fn is_package(file: &str) -> bool {
    LIBRARIES.iter().any(|place| file.contains(place))
}

/// Whether a module is the interpreter.
pub(crate) fn is_interpreter(module: &Path) -> bool {
    let name = module.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("python") || name.starts_with("libpython")
}

/// A stack with its lines where the interpreter ran them.
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
    // Of a stripped interpreter, addresses would hide what is there.
    stack.retain(|at| {
        let Some(module) = at.module.as_deref().filter(|module| is_interpreter(module)) else { return true };
        symbols.functions(module, at.address).iter().any(|function| function.name.is_some())
    });
    stack
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_lines_are_those_of_no_library() {
        let is_users =
            |file: &str| ScriptLine { file: file.into(), line: 1, function: "f".into() }.is_users();
        assert!(["/home/a/job.py", "job.py", "<string>"].into_iter().all(is_users));
        let others = [
            "<frozen importlib._bootstrap>",
            "/usr/lib/python3.11/json/decoder.py",
            "/usr/lib/python3/dist-packages/numpy/core/numeric.py",
            "/venv/lib/python3.12/site-packages/pandas/io.py",
        ];
        assert!(!others.into_iter().any(is_users));
    }
}
