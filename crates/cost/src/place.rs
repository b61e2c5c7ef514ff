//! Finds the place in the program that caused an operation, from the stack.
//!
//! ```text
//! stack, innermost first:  operator new's caller ─ … ─ main
//! with inlined functions:  allocate · _M_allocate · push_back · fill (user's line) · main
//!                                                   ▲          ▲
//!                                                   via        the place
//! ```
//!
//! The *place* is the innermost line that a user wrote. *Via* is the function that this line called, if the
//! line did not do the operation itself. Without such a line, the place is the first of these: (1) the
//! innermost function of an executable without debug information, (2) that of a library outside the system's,
//! (3) that of the whole stack.
//!
//! [`Causes::hiding`] skips wrappers. It also prefers a named function of a library to a nameless function or
//! `main` of an executable, as that name is more informative.

use crate::script::{ScriptLine, is_interpreter};
use crate::wrappers::Wrappers;
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vellum_process::{
    Function, Standing, Symbols, is_jit_map, is_own_library, is_recorder, is_systems_library,
};
use vellum_wire::script::is_package;

/// An instruction of a module, or a line of an interpreted program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Instruction {
    /// The module's file; `None` if the address is in no module.
    pub module: Option<Arc<Path>>,
    /// The address as in the file; without a module, as in the process.
    pub address: u64,
    /// The line of an interpreted program; there is no module and no address then.
    pub line: Option<Arc<ScriptLine>>,
}

impl Instruction {
    /// The instruction at an address of a module.
    pub fn at(module: Option<Arc<Path>>, address: u64) -> Instruction {
        Instruction { module, address, line: None }
    }
}

/// Returns one shared copy of each module's path.
#[derive(Default)]
pub(crate) struct Paths(HashMap<Box<Path>, Arc<Path>>);

impl Paths {
    pub(crate) fn of(&mut self, path: &Path) -> Arc<Path> {
        if let Some(known) = self.0.get(path) {
            return known.clone();
        }
        // Two names of one file must give the same path.
        let new: Arc<Path> = path.canonicalize().map_or_else(|_| path.into(), Into::into);
        self.0.insert(path.into(), new.clone());
        new
    }
}

/// The place that caused an operation, as precisely as the available symbols allow.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// A line of source.
    Line {
        /// The file, as named by the compiler.
        file: Arc<str>,
        /// The line, from 1.
        line: u32,
        /// The function's short name; empty if it has none.
        function: Arc<str>,
    },
    /// A function of a module without debug information.
    Function {
        /// The module's file.
        module: Arc<str>,
        /// The function's short name.
        function: Arc<str>,
    },
    /// An address of a module without symbols.
    Offset {
        /// The module's file.
        module: Arc<str>,
        /// The address as in the file.
        offset: u64,
    },
    /// Code outside all files, as just-in-time compilers make it.
    Unknown,
}

impl Place {
    /// The system library that contains the place, if any: reports seldom need more detail there.
    pub fn system_library(&self) -> Option<&Arc<str>> {
        match self {
            Place::Function { module, .. } | Place::Offset { module, .. } => {
                is_systems_library(Path::new(&**module)).then_some(module)
            }
            Place::Line { .. } | Place::Unknown => None,
        }
    }

    /// Returns whether the place is a source line.
    pub fn is_line(&self) -> bool {
        matches!(self, Place::Line { .. })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line { file, line, .. } => write!(f, "{file}:{line}"),
            Place::Function { module, function } => write!(f, "{function} ({module})"),
            Place::Offset { module, offset } => write!(f, "{module}+{offset:#x}"),
            Place::Unknown => f.write_str("(code outside of any file)"),
        }
    }
}

/// A place, and the function called there that did the operation.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cause {
    /// The place that caused the operation.
    pub place: Place,
    /// The function that the place called; `None` if it did the operation itself.
    pub via: Option<Arc<str>>,
}

/// The position of a place on a stack: the index of its instruction, and of the function inlined there.
pub type Spot = (usize, usize);

/// Finds causes, and caches them by stack.
#[derive(Debug, Default)]
pub struct Causes {
    known: HashMap<Vec<Instruction>, (Cause, Spot)>,
    hidden: Option<Wrappers>,
    texts: HashMap<Box<str>, Arc<str>>,
    sources: BTreeSet<(Arc<str>, PathBuf)>,
}

impl Causes {
    /// The source files of all places so far, each with the modules compiled from it.
    pub fn sources(&self) -> &BTreeSet<(Arc<str>, PathBuf)> {
        &self.sources
    }

    /// Skips wrappers, unless there is no other function on the stack.
    #[must_use]
    pub fn hiding(wrappers: Wrappers) -> Causes {
        Causes { hidden: Some(wrappers), ..Causes::default() }
    }

    /// The cause of an operation whose stack is `stack`, innermost first.
    pub fn cause(&mut self, stack: &[Instruction], symbols: &mut Symbols) -> Cause {
        self.find(stack, symbols).0
    }

    /// The cause, with the position of its place on the stack.
    pub fn find(&mut self, stack: &[Instruction], symbols: &mut Symbols) -> (Cause, Spot) {
        if let Some(known) = self.known.get(stack) {
            return known.clone();
        }
        let mut found = self.by_line(stack, symbols).unwrap_or_else(|| self.by_module(stack, symbols));
        // Requests through different wrappers, or through nameless functions, belong to one place.
        let file = match &found.0.place {
            Place::Function { module, .. } | Place::Offset { module, .. } => module.rsplit('/').next(),
            Place::Line { .. } | Place::Unknown => None,
        };
        let is_folded = |via: &str| {
            self.is_hidden(Some(via)) || self.hidden.is_some() && (file == Some(via) || via == ALLOCATOR)
        };
        found.0.via = found.0.via.filter(|via| !is_folded(via));
        self.known.insert(stack.to_vec(), found.clone());
        found
    }

    fn is_hidden(&self, name: Option<&str>) -> bool {
        name.zip(self.hidden.as_ref()).is_some_and(|(name, hidden)| hidden.has(name))
    }

    fn by_line(&mut self, stack: &[Instruction], symbols: &mut Symbols) -> Option<(Cause, Spot)> {
        let mut called: Option<String> = None;
        let is_script = stack.iter().any(|at| at.line.is_some());
        for (index, instruction) in stack.iter().enumerate() {
            if let Some(line) = &instruction.line {
                if line.is_users() && !self.is_hidden(Some(&line.function)) {
                    return Some((self.script(line, called), (index, 0)));
                }
                called = Some(line.function.to_string());
                continue;
            }
            let Some(module) = instruction.module.as_deref() else {
                called = None;
                continue;
            };
            // Code made at run time is the user's program, except for its libraries.
            if is_jit_map(module) {
                let name = outermost_name(&symbols.functions(module, instruction.address));
                let Some(name) = name else { continue };
                if !made_is_library(&name) && !self.is_hidden(Some(&name)) {
                    return Some((self.made(module, &name, called), (index, 0)));
                }
                called = Some(name);
                continue;
            }
            // The recorder only forwards calls.
            if is_recorder(module) {
                continue;
            }
            // The interpreter's lines are not the user's, and no line calls its work to run the script.
            if is_script && is_interpreter(module) {
                continue;
            }
            // The libraries of a package are not the user's either, even if the user built them.
            let is_package = is_script && is_package(&module.to_string_lossy());
            let may_be_users = symbols.standing(module) == Standing::Lines && !is_package;
            for (inner, function) in symbols.functions(module, instruction.address).iter().enumerate() {
                if let (true, true, Some(file), Some(line)) =
                    (may_be_users, function.is_users(), &function.file, function.line)
                    && !self.is_hidden(function.name.as_deref())
                {
                    let name = self.text(function.name.as_deref().unwrap_or_default());
                    self.sources.insert((file.clone(), module.to_path_buf()));
                    let place = Place::Line { file: file.clone(), line, function: name };
                    let via = called.map(|name| self.text(&name));
                    return Some((Cause { place, via }, (index, inner)));
                }
                called = shown(module, &function.name);
            }
        }
        None
    }

    /// The cause for a function made at run time, and the function it called.
    fn made(&mut self, module: &Path, name: &str, called: Option<String>) -> Cause {
        let place =
            Place::Function { module: self.text(&module.to_string_lossy()), function: self.text(name) };
        Cause { place, via: called.map(|name| self.text(&name)) }
    }

    /// The cause for a line of an interpreted program, and the function it called.
    fn script(&mut self, line: &ScriptLine, called: Option<String>) -> Cause {
        let place = Place::Line { file: line.file.clone(), line: line.line, function: line.function.clone() };
        Cause { place, via: called.map(|name| self.text(&name)) }
    }

    fn by_module(&mut self, stack: &[Instruction], symbols: &mut Symbols) -> (Cause, Spot) {
        // If no line is the user's, the innermost line is the place.
        if let Some((index, line)) =
            stack.iter().enumerate().find_map(|(index, at)| Some((index, at.line.as_ref()?)))
        {
            return (self.script(line, None), (index, 0));
        }
        let name = |symbols: &mut Symbols, at: &Instruction| {
            outermost_name(&symbols.functions(at.module.as_deref()?, at.address))
        };
        let is_in = |at: &Instruction, kind: fn(&Path) -> bool| at.module.as_deref().is_some_and(kind);
        let is_hidden = |at: &Instruction| {
            let name = self.hidden.as_ref().and_then(|_| name(symbols, at));
            self.is_hidden(name.as_deref()) || name.is_some_and(|name| is_standard(&name))
        };
        let hidden: Vec<bool> = stack.iter().map(is_hidden).collect();
        let open = |from: &[Instruction], is: &mut dyn FnMut(&Instruction) -> bool| {
            from.iter().zip(&hidden).position(|(at, is_hidden)| !is_hidden && is(at))
        };
        let mut is_bare = |at: &Instruction| {
            at.module.as_deref().is_some_and(|module| symbols.standing(module) == Standing::Bare)
        };
        let bare = open(stack, &mut is_bare);
        let mut says_much = |at: &Instruction| {
            !is_in(at, is_languages)
                && name(symbols, at).is_some_and(|name| name != "main" && !is_entry(&name))
        };
        let named = self.hidden.as_ref().and(bare).and_then(|bare| match says_much(&stack[bare]) {
            true => Some(bare),
            false => open(&stack[..bare], &mut says_much).or_else(|| open(stack, &mut says_much)),
        });
        let own = || open(stack, &mut |at| is_in(at, |module| !is_systems_library(module)));
        let other = || self.hidden.as_ref().and_then(|_| open(stack, &mut |at| !is_in(at, is_own_library)));
        let index = named.or(bare).or_else(own).or_else(other).unwrap_or(0);
        let cause = self.of_function(stack, index, symbols);
        let module = stack.get(index).and_then(|at| Some((at.module.as_deref()?, at.address)));
        let functions = module.map_or(0, |(module, address)| symbols.functions(module, address).len());
        (cause, (index, functions.saturating_sub(1)))
    }

    fn of_function(&mut self, stack: &[Instruction], index: usize, symbols: &mut Symbols) -> Cause {
        let Some(at) = stack.get(index) else {
            return Cause { place: Place::Unknown, via: None };
        };
        let Some(module) = at.module.as_deref() else {
            return Cause { place: Place::Unknown, via: None };
        };
        let name = outermost_name(&symbols.functions(module, at.address));
        let module = self.text(&module.to_string_lossy());
        let place = match name {
            Some(function) => Place::Function { module, function: self.text(&function) },
            None => Place::Offset { module, offset: at.address },
        };
        let passes = |at: &&Instruction| !at.module.as_deref().is_some_and(is_recorder);
        let callee = stack[..index].iter().rev().find(passes);
        let via = callee.and_then(|at| {
            let module = at.module.as_deref()?;
            shown(module, &outermost_name(&symbols.functions(module, at.address)))
        });
        Cause { place, via: via.map(|name| self.text(&name)) }
    }

    /// Returns the one shared copy of a text.
    fn text(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return known.clone();
        }
        let new: Arc<str> = text.into();
        self.texts.insert(text.into(), new.clone());
        new
    }
}

/// Libraries of languages: their functions are less informative than their callers' addresses.
const LANGUAGES: [&str; 7] =
    ["libc.so", "libc-", "ld-", "libstdc++.so", "libc++.so", "libgcc_s.so", "libpthread"];
/// Prefixes of the functions that standard libraries put into programs.
const STANDARD: [&str; 7] = ["std::", "<std::", "core::", "<core::", "alloc::", "<alloc::", "__gnu_cxx::"];
/// Functions in which programs and threads start, before their own code.
const ENTRIES: [&str; 6] =
    ["_start", "__libc_start_main", "__libc_start_call_main", "start_thread", "clone", "clone3"];

/// Returns whether a module is the C library, or another language's.
pub fn is_languages(module: &Path) -> bool {
    let name = module.file_name().unwrap_or_default().to_string_lossy();
    is_own_library(module) || LANGUAGES.iter().any(|library| name.starts_with(library))
}

/// Returns whether programs or threads start in the function of that name, before their own code.
pub fn is_entry(name: &str) -> bool {
    ENTRIES.contains(&name)
}

/// Returns whether a function of that name belongs to a standard library of C++ or Rust.
pub fn is_standard(name: &str) -> bool {
    STANDARD.iter().any(|begin| name.starts_with(begin))
}

fn outermost_name(functions: &[Function]) -> Option<String> {
    functions.last().and_then(|function| function.name.clone())
}

/// The name shown for a function of a library: its own, or else the library's. All functions of Vellum's
/// own runtime get one name, [`ALLOCATOR`].
fn shown(module: &Path, name: &Option<String>) -> Option<String> {
    if is_own_library(module) {
        return Some(ALLOCATOR.to_owned());
    }
    let file = || module.file_name().map(|file| file.to_string_lossy().into_owned());
    name.clone().filter(|name| !name.is_empty()).or_else(file)
}

/// Prefixes of functions that a just-in-time compiler (V8) made for its own use.
const COMPILERS_OWN: [&str; 4] = ["Builtin:", "BytecodeHandler:", "Stub:", "RegExp:"];
/// Parts of the names of functions in node's own modules and in packages.
const MADE_LIBRARIES: [&str; 2] = [" node:", "/node_modules/"];

/// Returns whether a function made at run time is not the user's.
fn made_is_library(name: &str) -> bool {
    COMPILERS_OWN.iter().any(|own| name.starts_with(own))
        || MADE_LIBRARIES.iter().any(|part| name.contains(part))
}

/// The name shown for all functions of Vellum's runtime.
pub const ALLOCATOR: &str = "the allocator";

/// The names on a stack for a flame graph, outermost first: functions with those inlined into them.
pub fn names(stack: &[Instruction], symbols: &mut Symbols) -> Vec<String> {
    let mut names = Vec::new();
    for at in stack.iter().rev() {
        if let Some(line) = &at.line {
            names.push(line.function.to_string());
            continue;
        }
        let Some(module) = at.module.as_deref() else {
            names.push("?".to_owned());
            continue;
        };
        if is_recorder(module) {
            continue;
        }
        for function in symbols.functions(module, at.address).iter().rev() {
            names.push(function.name.clone().unwrap_or_else(|| offset_name(module, at.address)));
        }
    }
    names
}

fn offset_name(module: &Path, address: u64) -> String {
    let file = module.file_name().map_or_else(|| PathBuf::from(module), PathBuf::from);
    format!("{}+{address:#x}", file.display())
}
