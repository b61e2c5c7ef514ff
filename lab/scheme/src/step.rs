//! The execution of one instruction of the machine; `calls` has the instructions for calls.

use crate::call;
use crate::compiler::op::{One, Op, Two};
use crate::fail::Fail;
use crate::immediate;
use crate::machine::Machine;
use crate::memory::{CAR, CDR, Kind, Scope, Value};
use crate::primitives::{numbers, vectors};

/// Whether the machine continues after an instruction.
pub(crate) enum Step {
    On,
    Halt,
}

pub(crate) type Done<'s> = Result<Step, Fail<'s>>;

impl Machine {
    #[inline(always)]
    pub(crate) fn step<'s>(&mut self, scope: &Scope<'s>) -> Done<'s> {
        let op = self.emitter.code[self.pc];
        self.pc += 1;
        match op {
            Op::Local(index) => self.stack.push_copy(self.fp + index as usize, scope)?,
            Op::Immediate(bits) => self.push_bits(bits)?,
            Op::Captured(index) => {
                let closure = self.stack.get(self.fp - 1, scope);
                self.stack.push_slot(&closure, index as usize)?;
            }
            Op::Itself => self.stack.push_copy(self.fp - 1, scope)?,
            Op::Global(index) => {
                let value = self.globals.get(index as usize, scope);
                if value.is_immediate(immediate::UNBOUND) {
                    return Err(self.unbound(index));
                }
                self.stack.push(&value)?;
            }
            Op::Constant(index) => {
                let value = self.constants.get(index as usize, scope);
                self.stack.push(&value)?;
            }
            Op::JumpIfFalse(to) => {
                let top = self.stack.len() - 1;
                if self.stack.bits(top) == Some(immediate::FALSE) {
                    self.pc = to as usize;
                }
                self.stack.truncate(top);
            }
            Op::Jump(to) => self.pc = to as usize,
            Op::JumpKeeping { condition, to } => {
                let top = self.stack.len() - 1;
                if (self.stack.bits(top) != Some(immediate::FALSE)) == condition {
                    self.pc = to as usize;
                } else {
                    self.stack.truncate(top);
                }
            }
            Op::Two(two) => self.two(scope, two)?,
            Op::One(one) => self.one(scope, one)?,
            Op::Frame(to) => self.push_frame(to as usize)?,
            Op::Call(count) => return self.call(scope, count as usize),
            Op::TailCall(count) => return self.tail_call(scope, count as usize),
            Op::Enter { required, has_rest, name } => {
                return self.enter(scope, usize::from(required), has_rest, name);
            }
            Op::Return => self.leave(scope),
            Op::Pop => self.stack.truncate(self.stack.len() - 1),
            Op::Slide(count) => self.stack.slide(self.stack.len() - 1 - count as usize, 1, scope),
            Op::Closure { count, entry } => {
                let count = count as usize;
                let code = immediate::integer(i64::from(entry));
                let closure = Value::slots(scope, Kind::Closure, count + 1, code)?;
                let first = self.stack.len() - count;
                for index in 0..count {
                    closure.set(scope, index + 1, &self.stack.get(first + index, scope));
                }
                self.stack.truncate(first);
                self.stack.push(&closure)?;
            }
            Op::Store(index) => {
                let value = self.stack.pop(scope);
                self.stack.set(self.fp + index as usize, &value);
            }
            Op::Wrap(index) => {
                let at = self.fp + index as usize;
                let value = self.stack.get(at, scope);
                self.stack.set(at, &Value::of_slots(scope, Kind::Cell, &[&value])?);
            }
            Op::Unwrap(name) => {
                let value = self.stack.pop(scope).get(scope, 0);
                if value.is_immediate(immediate::UNBOUND) {
                    let name = &self.emitter.names[name as usize];
                    return Err(Fail::error(format!("{name} is used before it has a value")));
                }
                self.stack.push(&value)?;
            }
            Op::SetCell => {
                let cell = self.stack.pop(scope);
                let value = self.stack.pop(scope);
                cell.set(scope, 0, &value);
                self.push_bits(immediate::UNSPECIFIED)?;
            }
            Op::SetGlobal(index) => {
                if self.globals.bits(index as usize) == Some(immediate::UNBOUND) {
                    return Err(self.unbound(index));
                }
                self.define(scope, index)?;
            }
            Op::Define(index) => self.define(scope, index)?,
            Op::Apply => return self.apply(scope),
            Op::Capture => return self.capture(scope),
            Op::Halt => return Ok(Step::Halt),
        }
        Ok(Step::On)
    }

    fn unbound<'s>(&self, global: u32) -> Fail<'s> {
        Fail::error(format!("{} is not defined", self.emitter.globals[global as usize]))
    }

    fn define<'s>(&mut self, scope: &Scope<'s>, global: u32) -> Result<(), Fail<'s>> {
        let value = self.stack.pop(scope);
        self.globals.set(global as usize, &value);
        Ok(self.push_bits(immediate::UNSPECIFIED)?)
    }

    #[inline(always)]
    fn one<'s>(&mut self, scope: &Scope<'s>, one: One) -> Result<(), Fail<'s>> {
        let top = self.stack.len() - 1;
        let holds = match one {
            One::Car | One::Cdr => {
                let pair = self.stack.get(top, scope);
                if !pair.is_a(Kind::Pair) {
                    let name = if one == One::Car { "car" } else { "cdr" };
                    return Err(call::wrong(scope, name, "a pair", &pair));
                }
                let slot = if one == One::Car { CAR } else { CDR };
                self.stack.truncate(top);
                return Ok(self.stack.push_slot(&pair, slot)?);
            }
            One::IsNull => self.stack.bits(top) == Some(immediate::NIL),
            One::IsPair => self.stack.get(top, scope).is_a(Kind::Pair),
            One::Not => self.stack.bits(top) == Some(immediate::FALSE),
        };
        self.stack.set(top, &Value::boolean(holds));
        Ok(())
    }

    #[inline(always)]
    fn two<'s>(&mut self, scope: &Scope<'s>, two: Two) -> Result<(), Fail<'s>> {
        let at = self.stack.len() - 2;
        let integer = |index| self.stack.bits(index).and_then(immediate::as_integer);
        if let (Some(left), Some(right)) = (integer(at), integer(at + 1))
            && let Some(result) = numbers::quickly(two, left, right)
        {
            self.stack.truncate(at + 1);
            self.stack.set(at, &Value::immediate(result));
            return Ok(());
        }
        let (left, right) = (self.stack.get(at, scope), self.stack.get(at + 1, scope));
        let result = match two {
            Two::Cons => Value::pair(scope, &left, &right)?,
            Two::Same => Value::boolean(crate::value::is_eqv(&left, &right)),
            Two::VectorRef => vectors::element(scope, &left, &right)?,
            _ => numbers::operate(scope, two, &left, &right)?,
        };
        self.stack.truncate(at);
        Ok(self.stack.push(&result)?)
    }
}
