//! The virtual machine that runs the compiler's instructions.
//!
//! ```text
//! stack: | ... | saved fp | saved pc | closure | argument 0 | ... | variables, intermediate values |
//!                                              ▲ fp (the running procedure's frame)          top ▲
//! ```
//!
//! All values of a running program are on this stack, in global variables or in objects. A call therefore
//! needs no Rust stack, a continuation is a copy of this stack, and the collector finds every value.
//!
//! # Invariants
//! * A scope lasts for a few instructions (`run`); between two scopes, values are kept on the stack only.
//! * An error leaves the stack valid: the call of the handler lies on top of the failed call.

use crate::call::Row;
use crate::compiler::op::Op;
use crate::compiler::{Analyser, Emitter};
use crate::datum::{Datum, Place};
use crate::fail::Compile;
use crate::immediate;
use crate::memory::{OutOfMemory, Stack, Value, in_scope};
use crate::symbols::Symbols;
use crate::value::from_datum;

/// Greatest number of values on the stack.
pub const STACK_MAX: usize = 1 << 24;

/// A virtual machine that runs programs.
#[derive(Debug)]
pub struct Machine {
    pub(crate) symbols: Symbols,
    pub(crate) stack: Stack,
    pub(crate) analyser: Analyser,
    pub(crate) emitter: Emitter,
    pub(crate) constants: Stack,
    pub(crate) globals: Stack,
    /// Names of the texts that were read, for errors.
    pub sources: Vec<String>,
    /// The arguments of `(command-line)`.
    pub arguments: Vec<String>,
    pub(crate) procedures: Vec<&'static Row>,
    pub(crate) pc: usize,
    pub(crate) fp: usize,
    /// Number of arguments of the call that is beginning.
    pub(crate) count: usize,
    /// The place in the code after that call.
    pub(crate) called_from: usize,
    /// The place after a call with a wrong number of arguments.
    pub(crate) blame: Option<usize>,
    /// The number of the global variable that handles errors.
    pub(crate) throw: u32,
}

impl Machine {
    /// A machine with these procedures, and without a prelude.
    pub fn bare(procedures: Vec<&'static Row>) -> Result<Machine, OutOfMemory> {
        let mut machine = Machine {
            symbols: Symbols::default(),
            stack: Stack::new()?,
            analyser: Analyser::default(),
            emitter: Emitter::default(),
            constants: Stack::new()?,
            globals: Stack::new()?,
            sources: Vec::new(),
            arguments: Vec::new(),
            procedures,
            pc: 0,
            fp: 0,
            count: 0,
            called_from: 0,
            blame: None,
            throw: 0,
        };
        machine.emitter.code.push(Op::Halt);
        machine.throw = machine.emitter.global(&"%throw".into());
        for number in 0..machine.procedures.len() {
            let global = machine.emitter.global(&machine.procedures[number].0.into());
            machine.make_globals()?;
            machine.globals.set(global as usize, &Value::immediate(immediate::primitive(number)));
        }
        Ok(machine)
    }

    /// Compiles a program; returns the place of its code.
    pub(crate) fn compile(&mut self, datum: &Datum) -> Result<u32, Compile> {
        let expression = self.analyser.program(datum).map_err(Compile::Syntax)?;
        let entry = self.emitter.program(expression);
        self.make_globals().map_err(Compile::Memory)?;
        for constant in self.emitter.take_constants() {
            in_scope(|scope| {
                let value = from_datum(&mut self.symbols, scope, &constant)?;
                self.constants.push(&value)
            })
            .map_err(Compile::Memory)?;
        }
        Ok(entry)
    }

    pub(crate) fn make_globals(&mut self) -> Result<(), OutOfMemory> {
        while self.globals.len() < self.emitter.globals.len() {
            self.globals.push(&Value::immediate(immediate::UNBOUND))?;
        }
        Ok(())
    }

    /// A place as text: `FILE:LINE:COLUMN`.
    pub fn place(&self, place: Option<Place>) -> String {
        match place.filter(|place| place.line > 0) {
            Some(place) => {
                let source = self.sources.get(place.source as usize).map_or("?", |name| name);
                format!("{source}:{}:{}", place.line, place.column)
            }
            None => "?".to_owned(),
        }
    }

    /// The place of the running instruction. In the prelude, it is the place of the prelude's caller.
    pub(crate) fn here(&self) -> Option<Place> {
        let mut place = self.emitter.place_before(self.blame.unwrap_or(self.pc) as u32);
        let mut fp = self.fp;
        // The prelude is the first text: an error in it is reported at its caller.
        while place.is_none_or(|place| place.source == 0) && fp >= 3 {
            let saved = |at| self.stack.bits(at).and_then(immediate::as_integer);
            let (Some(pc), Some(above)) = (saved(fp - 2), saved(fp - 3)) else { break };
            if pc == 0 {
                break;
            }
            place = self.emitter.place_before(pc as u32);
            fp = above as usize;
        }
        place.filter(|place| place.source > 0)
    }

    #[inline(always)]
    pub(crate) fn push_bits(&mut self, bits: u64) -> Result<(), OutOfMemory> {
        self.stack.push(&Value::immediate(bits))
    }

    #[inline(always)]
    pub(crate) fn push_frame(&mut self, pc: usize) -> Result<(), OutOfMemory> {
        self.push_bits(immediate::integer(self.fp as i64))?;
        self.push_bits(immediate::integer(pc as i64))
    }
}
