//! The emitter: turns expressions into instructions.

use super::expression::{Expression, Lambda, Variable};
use super::op::{ONES, Op, TWOS, Two};
use crate::datum::{Datum, Place, Shape};
use crate::immediate;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// All code of a machine, with the tables that it refers to by number.
#[derive(Debug, Default)]
pub struct Emitter {
    /// The instructions.
    pub code: Vec<Op>,
    /// Names of procedures and of variables in cells, for errors.
    pub names: Vec<Rc<str>>,
    /// Constants whose values are not made yet, and the number of the first one.
    pub constants: Vec<Datum>,
    constants_made: u32,
    /// Names of global variables.
    pub globals: Vec<Rc<str>>,
    global_numbers: HashMap<Rc<str>, u32>,
    /// Names whose calls are no longer compiled to instructions, since the program has redefined them.
    redefined: HashSet<Rc<str>>,
    places: Vec<(u32, Place)>,
    functions: Vec<Function>,
}

#[derive(Debug, Default)]
struct Function {
    /// Variables on the stack, and their places.
    locals: Vec<(Rc<Variable>, u32)>,
    captured: Vec<Rc<Variable>>,
    itself: Option<Rc<Variable>>,
    /// Values on the stack from `fp` on.
    depth: u32,
}

impl Emitter {
    /// The code of a program: a procedure without arguments. Returns the place of its first instruction.
    pub fn program(&mut self, expression: Expression) -> u32 {
        let (name, parameters) = ("program".into(), Vec::new());
        let lambda = Lambda { name, parameters, has_rest: false, itself: None, body: expression };
        self.function(&lambda, false).0
    }

    /// The source place of the instruction before `pc`.
    pub fn place_before(&self, pc: u32) -> Option<Place> {
        let after = self.places.partition_point(|(at, _)| *at < pc);
        self.places[..after].last().map(|(_, place)| *place)
    }

    /// The number of a global variable.
    pub fn global(&mut self, name: &Rc<str>) -> u32 {
        *self.global_numbers.entry(name.clone()).or_insert_with(|| {
            self.globals.push(name.clone());
            self.globals.len() as u32 - 1
        })
    }

    /// Returns the constants whose values are not made yet, and counts them as made.
    pub fn take_constants(&mut self) -> Vec<Datum> {
        self.constants_made += self.constants.len() as u32;
        std::mem::take(&mut self.constants)
    }

    fn name(&mut self, name: &Rc<str>) -> u32 {
        if self.names.last() != Some(name) {
            self.names.push(name.clone());
        }
        self.names.len() as u32 - 1
    }

    fn own(&mut self) -> &mut Function {
        self.functions.last_mut().expect("a procedure is being emitted")
    }

    /// Emits an instruction that changes the number of values on the stack by `change`.
    fn op(&mut self, op: Op, change: i32) -> usize {
        self.code.push(op);
        let own = self.own();
        own.depth = own.depth.strict_add_signed(change);
        self.code.len() - 1
    }

    fn here(&self) -> u32 {
        u32::try_from(self.code.len()).expect("less code than there are numbers")
    }

    /// Sets the target of the jump at `at` to the next instruction.
    fn land(&mut self, at: usize) {
        let here = self.here();
        match &mut self.code[at] {
            Op::Jump(to) | Op::JumpIfFalse(to) | Op::JumpKeeping { to, .. } | Op::Frame(to) => *to = here,
            op => unreachable!("{op:?} is no jump"),
        }
    }

    /// The procedure's code; returns its place and the captured variables. A program's last call is no tail
    /// call, so that errors in it have a place.
    fn function(&mut self, lambda: &Lambda, has_tail: bool) -> (u32, Vec<Rc<Variable>>) {
        let locals = lambda.parameters.iter().cloned().zip(0..).collect();
        let depth = lambda.parameters.len() as u32;
        let itself = lambda.itself.clone();
        self.functions.push(Function { locals, captured: Vec::new(), itself, depth });
        let (entry, name) = (self.here(), self.name(&lambda.name));
        let required = lambda.parameters.len() as u16 - u16::from(lambda.has_rest);
        self.op(Op::Enter { required, has_rest: lambda.has_rest, name }, 0);
        for (index, parameter) in (0..).zip(&lambda.parameters) {
            if parameter.has_cell.get() {
                self.op(Op::Wrap(index), 0);
            }
        }
        self.expression(&lambda.body, has_tail);
        if !has_tail {
            self.op(Op::Return, 0);
        }
        (entry, self.functions.pop().expect("pushed above").captured)
    }

    fn closure(&mut self, lambda: &Lambda) {
        let over = self.op(Op::Jump(0), 0);
        let (entry, captured) = self.function(lambda, true);
        self.land(over);
        for variable in &captured {
            self.push_variable(variable);
        }
        let count = captured.len() as u32;
        self.op(Op::Closure { count, entry }, 1 - count as i32);
    }

    /// How the procedure at `level` reaches a variable's value or cell.
    fn find(&mut self, level: usize, variable: &Rc<Variable>) -> Op {
        let function = &mut self.functions[level];
        let same = |other: &Rc<Variable>| Rc::ptr_eq(other, variable);
        if let Some((_, at)) = function.locals.iter().rev().find(|(local, _)| same(local)) {
            return Op::Local(*at);
        }
        if !variable.has_cell.get() && function.itself.as_ref().is_some_and(same) {
            return Op::Itself;
        }
        let known = function.captured.iter().position(same);
        let index = known.unwrap_or_else(|| {
            function.captured.push(variable.clone());
            function.captured.len() - 1
        });
        // The first slot is the code.
        Op::Captured(index as u32 + 1)
    }

    fn push_variable(&mut self, variable: &Rc<Variable>) {
        let op = self.find(self.functions.len() - 1, variable);
        self.op(op, 1);
    }

    fn constant(&mut self, datum: &Datum) {
        let op = match datum.shape {
            Shape::Integer(number) => Op::Immediate(immediate::integer(number)),
            Shape::Float(number) => Op::Immediate(immediate::float(number)),
            Shape::Boolean(holds) => Op::Immediate(immediate::boolean(holds)),
            Shape::Char(character) => Op::Immediate(immediate::character(character)),
            Shape::List(ref elements, None) if elements.is_empty() => Op::Immediate(immediate::NIL),
            _ => {
                self.constants.push(datum.clone());
                Op::Constant(self.constants_made + self.constants.len() as u32 - 1)
            }
        };
        self.op(op, 1);
    }

    /// Leaves the expression's value on the stack, or, in tail position, ends the procedure with it.
    fn expression(&mut self, expression: &Expression, is_tail: bool) {
        match expression {
            Expression::Quote(datum) => self.constant(datum),
            Expression::Unspecified => _ = self.op(Op::Immediate(immediate::UNSPECIFIED), 1),
            Expression::Local(variable) => {
                self.push_variable(variable);
                if variable.has_cell.get() {
                    let name = self.name(&variable.name);
                    self.op(Op::Unwrap(name), 0);
                }
            }
            Expression::Global(name, place) => {
                let global = self.global(name);
                self.places.push((self.here(), *place));
                self.op(Op::Global(global), 1);
            }
            Expression::SetLocal(variable, value) => {
                self.expression(value, false);
                self.push_variable(variable);
                self.op(Op::SetCell, -1);
            }
            Expression::SetGlobal(name, value, place) => {
                self.expression(value, false);
                let global = self.redefine(name);
                self.places.push((self.here(), *place));
                self.op(Op::SetGlobal(global), 0);
            }
            Expression::Define(name, value) => {
                let global = self.redefine(name);
                self.expression(value, false);
                self.op(Op::Define(global), 0);
            }
            Expression::Lambda(lambda) => self.closure(lambda),
            Expression::If(parts) => {
                let [test, then, otherwise] = &**parts;
                self.expression(test, false);
                let to_else = self.op(Op::JumpIfFalse(0), -1);
                self.expression(then, is_tail);
                self.own().depth -= 1;
                if is_tail {
                    self.land(to_else);
                    return self.expression(otherwise, true);
                }
                let to_end = self.op(Op::Jump(0), 0);
                self.land(to_else);
                self.expression(otherwise, false);
                self.land(to_end);
            }
            Expression::And(parts) => self.chain(parts, false, is_tail),
            Expression::Or(parts) => self.chain(parts, true, is_tail),
            Expression::Sequence(parts) => {
                let (last, before) = parts.split_last().expect("a sequence has parts");
                for part in before {
                    self.expression(part, false);
                    self.op(Op::Pop, -1);
                }
                return self.expression(last, is_tail);
            }
            Expression::Let(bindings, body) => return self.bind(bindings, body, is_tail),
            Expression::LetRec(bindings, body) => return self.bind_recursive(bindings, body, is_tail),
            Expression::Call(parts, place) => return self.call(parts, *place, is_tail),
        }
        if is_tail {
            self.op(Op::Return, 0);
        }
    }

    fn redefine(&mut self, name: &Rc<str>) -> u32 {
        self.redefined.insert(name.clone());
        self.global(name)
    }

    fn chain(&mut self, parts: &[Expression], condition: bool, is_tail: bool) {
        let Some((last, before)) = parts.split_last() else {
            self.op(Op::Immediate(immediate::boolean(!condition)), 1);
            return;
        };
        let mut jumps = Vec::new();
        for part in before {
            self.expression(part, false);
            jumps.push(self.op(Op::JumpKeeping { condition, to: 0 }, -1));
        }
        self.expression(last, is_tail);
        jumps.into_iter().for_each(|jump| self.land(jump));
    }

    /// Declares a variable whose value is on top of the stack.
    fn enter(&mut self, variable: &Rc<Variable>) {
        let at = self.own().depth - 1;
        if variable.has_cell.get() {
            self.op(Op::Wrap(at), 0);
        }
        self.own().locals.push((variable.clone(), at));
    }

    /// Drops the variables of a block, whose result is above them.
    fn leave(&mut self, count: usize, is_tail: bool) {
        let own = self.own();
        own.locals.truncate(own.locals.len() - count);
        own.depth -= count as u32;
        if !is_tail {
            self.code.push(Op::Slide(count as u32));
        }
    }

    fn bind(&mut self, bindings: &[(Rc<Variable>, Expression)], body: &Expression, is_tail: bool) {
        for (variable, value) in bindings {
            self.expression(value, false);
            self.enter(variable);
        }
        self.expression(body, is_tail);
        self.leave(bindings.len(), is_tail);
    }

    fn bind_recursive(&mut self, bindings: &[(Rc<Variable>, Expression)], body: &Expression, is_tail: bool) {
        for (variable, _) in bindings {
            self.op(Op::Immediate(immediate::UNBOUND), 1);
            self.enter(variable);
        }
        for (variable, value) in bindings {
            self.expression(value, false);
            let place = self.find(self.functions.len() - 1, variable);
            match place {
                Op::Local(at) if !variable.has_cell.get() => _ = self.op(Op::Store(at), -1),
                cell => {
                    self.op(cell, 1);
                    self.op(Op::SetCell, -1);
                    self.op(Op::Pop, -1);
                }
            }
        }
        self.expression(body, is_tail);
        self.leave(bindings.len(), is_tail);
    }

    fn call(&mut self, parts: &[Expression], place: Place, is_tail: bool) {
        if self.instruction(parts, place, is_tail) {
            return;
        }
        let frame = (!is_tail).then(|| self.op(Op::Frame(0), 2));
        for part in parts {
            self.expression(part, false);
        }
        let count = parts.len() as u32 - 1;
        self.places.push((self.here(), place));
        let used = -(count as i32);
        match frame {
            Some(frame) => {
                self.op(Op::Call(count), used - 2);
                self.land(frame);
            }
            None => _ = self.op(Op::TailCall(count), used),
        }
    }

    /// Emits a call as an instruction, if the procedure has one.
    fn instruction(&mut self, parts: &[Expression], place: Place, is_tail: bool) -> bool {
        let Expression::Global(name, _) = &parts[0] else { return false };
        if self.redefined.contains(name) {
            return false;
        }
        let plain = name.strip_prefix('%').unwrap_or(name);
        let one = || ONES.iter().find(|(known, _)| *known == plain).map(|(_, one)| *one);
        let two = || TWOS.iter().find(|(known, _)| *known == plain).map(|(_, two)| *two);
        match (&**name, &parts[1..]) {
            ("%apply", [procedure, arguments]) if is_tail => {
                self.expression(procedure, false);
                self.expression(arguments, false);
                self.places.push((self.here(), place));
                self.op(Op::Apply, -1);
                return true;
            }
            ("%capture", [procedure]) if is_tail => {
                self.expression(procedure, false);
                self.places.push((self.here(), place));
                self.op(Op::Capture, 0);
                return true;
            }
            (_, [only]) if one().is_some() => {
                self.expression(only, false);
                self.places.push((self.here(), place));
                self.op(Op::One(one().expect("just found")), 0);
            }
            (_, [first, rest @ ..]) if !rest.is_empty() && two().is_some() => {
                let two = two().expect("just found");
                if rest.len() > 1 && !matches!(two, Two::Add | Two::Subtract | Two::Multiply) {
                    return false;
                }
                self.expression(first, false);
                for next in rest {
                    self.expression(next, false);
                    self.places.push((self.here(), place));
                    self.op(Op::Two(two), -1);
                }
            }
            _ => return false,
        }
        if is_tail {
            self.op(Op::Return, 0);
        }
        true
    }
}
