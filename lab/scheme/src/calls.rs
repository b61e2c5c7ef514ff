//! The machine's calls: begin and end of procedures, tail calls, and continuations.

use crate::call::{Call, Found};
use crate::fail::Fail;
use crate::immediate;
use crate::machine::{Machine, STACK_MAX};
use crate::memory::{Kind, OutOfMemory, Scope, Value, in_scope};
use crate::primitives::control;
use crate::step::{Done, Step};
use crate::value::walk;

/// Greatest number of arguments of a call.
const ARGUMENTS_MAX: usize = 1 << 16;

impl Machine {
    /// Begins the call of the procedure below the arguments on top.
    #[inline(always)]
    pub(crate) fn call<'s>(&mut self, scope: &Scope<'s>, count: usize) -> Done<'s> {
        let base = self.stack.len() - count;
        let procedure = self.stack.get(base - 1, scope);
        if procedure.is_a(Kind::Closure) {
            self.fp = base;
            self.begin(scope, &procedure, count);
            return Ok(Step::On);
        }
        self.call_other(scope, &procedure, base, count)
    }

    #[inline(always)]
    pub(crate) fn begin(&mut self, scope: &Scope<'_>, closure: &Value<'_>, count: usize) {
        let code = closure.get(scope, 0).as_integer().expect("a closure's first slot is its code");
        (self.called_from, self.pc, self.count) = (self.pc, code as usize, count);
    }

    fn call_primitive<'s>(
        &mut self,
        scope: &Scope<'s>,
        number: usize,
        base: usize,
        count: usize,
    ) -> Found<'s> {
        let &(name, least, most, procedure) = self.procedures[number];
        let mut call = Call { machine: self, scope, base, count, name };
        call.takes(least, most)?;
        procedure(&mut call)
    }

    pub(crate) fn call_other<'s>(
        &mut self,
        scope: &Scope<'s>,
        procedure: &Value<'s>,
        base: usize,
        count: usize,
    ) -> Done<'s> {
        if let Some(number) = procedure.bits().and_then(immediate::as_primitive) {
            let value = self.call_primitive(scope, number, base, count)?;
            self.stack.truncate(base - 3);
            self.stack.push(&value)?;
            return Ok(Step::On);
        }
        if procedure.is_a(Kind::Continuation) {
            let value = match count {
                1 => self.stack.get(base, scope),
                _ => control::values(&mut Call { machine: self, scope, base, count, name: "values" })?,
            };
            return self.resume(scope, procedure, &value);
        }
        Err(Fail::Error("this is no procedure, and was called".into(), Some(list_of(scope, procedure)?)))
    }

    #[inline(always)]
    pub(crate) fn tail_call<'s>(&mut self, scope: &Scope<'s>, count: usize) -> Done<'s> {
        let procedure = self.stack.get(self.stack.len() - count - 1, scope);
        if procedure.is_a(Kind::Closure) {
            self.stack.slide(self.fp - 1, count + 1, scope);
            self.begin(scope, &procedure, count);
            return Ok(Step::On);
        }
        // Procedures other than closures return at once, as if the running procedure's caller had called
        // them.
        if let Some(number) = procedure.bits().and_then(immediate::as_primitive) {
            let base = self.stack.len() - count;
            let value = self.call_primitive(scope, number, base, count)?;
            self.stack.push(&value)?;
            self.leave(scope);
            return Ok(Step::On);
        }
        let base = self.stack.len() - count;
        self.call_other(scope, &procedure, base, count)
    }

    /// Ends the running procedure with the value on top.
    #[inline(always)]
    pub(crate) fn leave(&mut self, scope: &Scope<'_>) {
        let saved = |at: usize| self.stack.bits(at).and_then(immediate::as_integer);
        let pc = saved(self.fp - 2).expect("a frame has a place to go on");
        let fp = saved(self.fp - 3).expect("a frame has the frame before");
        self.stack.slide(self.fp - 3, 1, scope);
        (self.pc, self.fp) = (pc as usize, fp as usize);
    }

    /// Checks the number of arguments, and makes a list of the rest.
    #[inline(always)]
    pub(crate) fn enter<'s>(
        &mut self,
        scope: &Scope<'s>,
        required: usize,
        has_rest: bool,
        name: u32,
    ) -> Done<'s> {
        let count = self.count;
        if count < required || (count > required && !has_rest) {
            let name = &self.emitter.names[name as usize];
            let least = if has_rest { "at least " } else { "" };
            let message = format!("{name} takes {least}{required} arguments, not {count}");
            // The error's place is the call.
            self.blame = Some(self.called_from);
            return Err(Fail::error(message));
        }
        if self.stack.len() > STACK_MAX {
            return Err(Fail::Uncaught(format!(
                "recursion too deep: more than {STACK_MAX} values on the machine's stack"
            )));
        }
        if has_rest {
            let mut rest = Value::nil();
            for index in (required..count).rev() {
                rest = Value::pair(scope, &self.stack.get(self.fp + index, scope), &rest)?;
            }
            self.stack.truncate(self.fp + required);
            self.stack.push(&rest)?;
        }
        Ok(Step::On)
    }

    pub(crate) fn apply<'s>(&mut self, scope: &Scope<'s>) -> Done<'s> {
        let arguments = self.stack.pop(scope);
        let mut count = 0;
        let is_list = walk(&arguments, |_, argument| {
            count += 1;
            self.stack.push(&argument).map(|()| count <= ARGUMENTS_MAX)
        })?;
        if !is_list || count > ARGUMENTS_MAX {
            let message = format!("apply: a list of at most {ARGUMENTS_MAX} arguments was expected");
            return Err(Fail::error(message));
        }
        self.tail_call(scope, count)
    }

    pub(crate) fn capture<'s>(&mut self, scope: &Scope<'s>) -> Done<'s> {
        let procedure = self.stack.pop(scope);
        // The stack below the running procedure's frame, with the place where its caller continues.
        let len = self.fp - 1;
        let copy = Value::slots(scope, Kind::Continuation, len, immediate::NIL)?;
        for index in 0..len {
            in_scope(|scope| copy.set(scope, index, &self.stack.get(index, scope)));
        }
        self.stack.push(&procedure)?;
        self.stack.push(&copy)?;
        self.tail_call(scope, 1)
    }

    pub(crate) fn resume<'s>(&mut self, scope: &Scope<'s>, copy: &Value<'_>, value: &Value<'_>) -> Done<'s> {
        self.stack.truncate(0);
        for index in 0..copy.len() {
            self.stack.push_slot(copy, index)?;
        }
        self.push_bits(immediate::UNSPECIFIED)?;
        self.fp = self.stack.len();
        self.stack.push(value)?;
        self.leave(scope);
        Ok(Step::On)
    }
}

fn list_of<'s>(scope: &Scope<'s>, value: &Value<'_>) -> Result<Value<'s>, OutOfMemory> {
    Value::pair(scope, value, &Value::nil())
}
