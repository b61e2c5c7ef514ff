//! Running a program's text: each datum is read, compiled and run before the next is read.

use crate::fail::{Compile, Ended, Fail};
use crate::immediate;
use crate::machine::Machine;
use crate::memory::{Kind, Scope, Value, in_scope};
use crate::primitives::PRIMITIVES;
use crate::reader::Reader;
use crate::step::Step;

/// Instructions that share a scope: few enough for few handles, and enough to amortise its opening.
const STRETCH: usize = 48;
/// Stretches between two calls of `shrink`, which frees memory that a deep recursion used.
const SHRINK_EVERY: u32 = 1 << 16;

impl Machine {
    /// A machine with the built-in procedures and the prelude.
    ///
    /// # Errors
    /// If memory runs out.
    pub fn new() -> Result<Machine, Ended> {
        let procedures = PRIMITIVES.iter().flat_map(|table| table.iter()).collect();
        let mut machine = Machine::bare(procedures).map_err(Ended::Memory)?;
        let prelude = include_str!("prelude.scm");
        machine.run_text("prelude", prelude, &mut |_, _| Ok(()))?;
        Ok(machine)
    }

    /// Runs a whole text; `each` gets each value.
    ///
    /// # Errors
    /// Why the text ended early.
    pub fn run_text(
        &mut self,
        name: &str,
        text: &str,
        each: &mut dyn FnMut(&mut Machine, &Value<'_>) -> Result<(), Ended>,
    ) -> Result<(), Ended> {
        self.sources.push(name.to_owned());
        let source = self.sources.len() as u32 - 1;
        let mut reader = Reader::new(text, source);
        while let Some(datum) = reader.next_datum().map_err(Ended::Syntax)? {
            let entry = self.compile(&datum).map_err(|fail| match fail {
                Compile::Syntax(error) => Ended::Syntax(error),
                Compile::Memory(error) => Ended::Memory(error),
            })?;
            self.run(entry, each)?;
        }
        Ok(())
    }

    fn run(
        &mut self,
        entry: u32,
        each: &mut dyn FnMut(&mut Machine, &Value<'_>) -> Result<(), Ended>,
    ) -> Result<(), Ended> {
        self.stack.truncate(0);
        let begun = in_scope(|scope| {
            let closure = Value::slots(scope, Kind::Closure, 1, immediate::integer(i64::from(entry)))?;
            for saved in [0, 0] {
                self.stack.push(&Value::integer(saved))?;
            }
            self.stack.push(&closure)
        });
        begun.map_err(Ended::Memory)?;
        (self.pc, self.fp, self.count) = (entry as usize, self.stack.len(), 0);
        let mut stretches = 0u32;
        loop {
            stretches = stretches.wrapping_add(1);
            if stretches.is_multiple_of(SHRINK_EVERY) {
                self.stack.shrink().map_err(Ended::Memory)?;
            }
            let step = in_scope(|scope| {
                for _ in 0..STRETCH {
                    match self.step(scope) {
                        Ok(Step::On) => {}
                        Ok(Step::Halt) => {
                            let value = self.stack.pop(scope);
                            each(self, &value)?;
                            return Ok(Step::Halt);
                        }
                        Err(fail) => {
                            self.throw(scope, fail)?;
                            return Ok(Step::On);
                        }
                    }
                }
                Ok(Step::On)
            })?;
            if let Step::Halt = step {
                return Ok(());
            }
        }
    }

    /// Calls the program's handler with an error; ends the run if there is no handler.
    fn throw(&mut self, scope: &Scope<'_>, fail: Fail<'_>) -> Result<(), Ended> {
        let here = self.here();
        self.blame = None;
        let (message, about) = match fail {
            Fail::Error(message, about) => (message, about),
            Fail::Memory(error) => return Err(Ended::Memory(error)),
            Fail::Exit(status) => return Err(Ended::Exit(status)),
            Fail::Uncaught(message) => return Err(Ended::Error(message, None)),
        };
        let handler = self.globals.get(self.throw as usize, scope);
        if handler.is_immediate(immediate::UNBOUND) {
            return Err(Ended::Error(message, here));
        }
        let call = || {
            let message = Value::text(scope, Kind::Text, &message)?;
            let place = Value::text(scope, Kind::Text, &self.place(here))?;
            let about = about.map_or_else(Value::nil, |about| about.kept(scope));
            let kind = Value::immediate(immediate::CONDITION);
            let condition = Value::of_slots(scope, Kind::Record, &[&kind, &message, &about, &place])?;
            self.push_frame(self.pc)?;
            self.stack.push(&handler)?;
            self.stack.push(&condition)?;
            self.call(scope, 1)
        };
        match call() {
            Ok(_) => Ok(()),
            Err(Fail::Memory(error)) => Err(Ended::Memory(error)),
            Err(_) => Err(Ended::Error(message, here)),
        }
    }
}
