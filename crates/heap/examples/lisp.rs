//! A small Lisp on the collected heap, without `unsafe`: an example for authors of languages.
//!
//! ```text
//! cargo run --release -p vellum-heap --example lisp -- '(define square (lambda (x) (* x x))) (square 12)'
//! ```
//!
//! # What it shows
//! - `object!` declares the types of objects. A [`Word`] in an object holds any value of the language.
//! - `family!` gives each type its tags. Integers and functions of Rust are immediates (no objects).
//! - [`Heap::scope`] keeps the objects of handles alive. A scope lasts for a few steps of the interpreter, so
//!   its list of handles stays short.
//! - A [`Stack`] holds the values that the interpreter needs beyond a scope.
//! - A [`Weak`] reference leads from a name to its symbol. A [`Root`] keeps a symbol alive that has a value.
//!
//! A value is always in a scope, in an object or on a stack. The collector has no other rule.
//!
//! # The language
//! The forms `quote`, `if`, `lambda` and `define` (of global variables), and [`FUNCTIONS`]. `()` is false.
//! Integers have 48 bits and wrap. The interpreter keeps its list of tasks outside Rust's stack, so only
//! [`TASKS_MAX`] limits recursion. A tail call adds no task to this list.

use std::collections::HashMap;
use vellum_heap::{Any, Array, Field, Gc, Heap, Root, Scope, Stack, Weak, Word, family, object};

object! {
    #[derive(Default)]
    struct Pair { head: Word<Lisp>, tail: Word<Lisp> }

    #[derive(Default)]
    pub(crate) struct Symbol {
        name: Field<Array<u8>>,
        /// The global variable of that name; the word 0 if there is none.
        value: Word<Lisp>,
    }
}

family! { pub(crate) Lisp { Pair: 0 | 1, Symbol: 2 } }

/// The tag of a list that is not empty: a pair of its first element and the rest.
const LIST: u32 = 0;
/// The tag of a function that is written in Lisp: a pair of the `lambda` expression and its environment. An
/// environment is a list of pairs of a symbol and its value.
const CLOSURE: u32 = 1;
const SYMBOL: u32 = 2;

/// The kinds of immediates, in the upper 16 bits, which must not be 0. The lower 48 bits hold a number.
const INTEGER: u64 = 1;
const FUNCTION: u64 = 2;
const CONSTANT: u64 = 3;

type Value<'s> = Any<'s, Lisp>;
type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const NIL: Value<'static> = immediate(CONSTANT, 0);
const TRUE: Value<'static> = immediate(CONSTANT, 1);

const fn immediate(kind: u64, number: u64) -> Value<'static> {
    Any::immediate(kind << 48 | number << 16 >> 16)
}

fn number(kind: u64, value: Value<'_>) -> Option<u64> {
    value.bits().filter(|bits| bits >> 48 == kind).map(|bits| bits << 16 >> 16)
}

fn integer(value: Value<'_>) -> Result<i64> {
    Ok((number(INTEGER, value).ok_or("an integer is needed")? << 16) as i64 >> 16)
}

fn calculate(values: &[Value<'_>], by: fn(i64, i64) -> i64) -> Result<Value<'static>> {
    let [left, right] = exactly(values)?;
    Ok(immediate(INTEGER, by(integer(left)?, integer(right)?) as u64))
}

fn truth(holds: bool) -> Value<'static> {
    if holds { TRUE } else { NIL }
}

fn exactly<'s, const N: usize>(values: &[Value<'s>]) -> Result<[Value<'s>; N]> {
    values.try_into().map_err(|_| format!("a function takes {N} arguments, not {}", values.len()).into())
}

type Function = for<'s> fn(&Scope<'s>, &[Value<'s>]) -> Result<Value<'s>>;

/// The functions that are written in Rust.
const FUNCTIONS: [(&str, Function); 9] = [
    ("+", |_, of| calculate(of, i64::wrapping_add)),
    ("-", |_, of| calculate(of, i64::wrapping_sub)),
    ("*", |_, of| calculate(of, i64::wrapping_mul)),
    ("<", |_, of| exactly(of).and_then(|[left, right]| Ok(truth(integer(left)? < integer(right)?)))),
    ("eq", |_, of| exactly(of).map(|[left, right]| truth(left.is(right)))),
    ("pair", |_, of| exactly(of).map(|[value]| truth(value.tag() == Some(LIST)))),
    ("cons", |scope, of| exactly(of).and_then(|[head, tail]| pair(scope, LIST, head, tail))),
    ("car", |scope, of| {
        exactly(of).and_then(|[list]| Ok(parts(scope, LIST, list).ok_or("a list is needed")?.0))
    }),
    ("cdr", |scope, of| {
        exactly(of).and_then(|[list]| Ok(parts(scope, LIST, list).ok_or("a list is needed")?.1))
    }),
];

fn pair<'s>(scope: &Scope<'s>, tag: u32, head: Value<'_>, tail: Value<'_>) -> Result<Value<'s>> {
    let pair = scope.alloc(Pair::default())?;
    scope.put(pair, &pair.head, head);
    scope.put(pair, &pair.tail, tail);
    Ok(Any::of(pair, tag))
}

/// The parts of a pair with that tag.
fn parts<'s>(scope: &Scope<'s>, tag: u32, value: Value<'_>) -> Option<(Value<'s>, Value<'s>)> {
    let pair = value.cast::<Pair>().filter(|_| value.tag() == Some(tag))?;
    Some((pair.head.get(scope), pair.tail.get(scope)))
}

fn elements<'s>(scope: &Scope<'s>, list: Value<'s>) -> impl Iterator<Item = Value<'s>> {
    let pairs = std::iter::successors(parts(scope, LIST, list), |(_, rest)| parts(scope, LIST, *rest));
    pairs.map(|(first, _)| first)
}

fn name<'s>(scope: &Scope<'s>, symbol: Gc<'_, Symbol>) -> &'s str {
    let bytes = symbol.name.get(scope).map_or(&[][..], Gc::items);
    std::str::from_utf8(bytes).expect("made of a text")
}

/// The value of a local variable.
fn local<'s>(scope: &Scope<'s>, variable: Value<'_>, environment: Value<'s>) -> Option<Value<'s>> {
    let mut bindings = elements(scope, environment).filter_map(|binding| parts(scope, LIST, binding));
    bindings.find(|(symbol, _)| symbol.is(variable)).map(|(_, value)| value)
}

fn show(scope: &Scope<'_>, value: Value<'_>) -> String {
    let atom = |value: Value<'_>| match value.cast::<Symbol>() {
        Some(symbol) => name(scope, symbol).to_owned(),
        None if value.is(NIL) => "()".to_owned(),
        None if value.is(TRUE) => "true".to_owned(),
        None => integer(value).map_or("<function>".to_owned(), |integer| integer.to_string()),
    };
    let (mut text, mut next) = (String::new(), vec![(scope.keep_any(value), false)]);
    while let Some((value, is_rest)) = next.pop() {
        if let Some((first, rest)) = parts(scope, LIST, value) {
            text.push(if is_rest { ' ' } else { '(' });
            next.extend([(rest, true), (first, false)]);
        } else if !is_rest {
            text.push_str(&atom(value));
        } else if value.is(NIL) {
            text.push(')');
        } else {
            text.push_str(&format!(" . {})", atom(value)));
        }
    }
    text
}

/// What the machine has yet to do.
#[derive(Clone, Copy)]
enum Task {
    /// Evaluate an expression in an environment.
    Evaluate,
    /// Take a value, and evaluate a branch of an `if` expression in an environment.
    Choose,
    /// Take a value, and make it the global variable of a symbol.
    Define,
    /// Take a function and this number of arguments, and call it.
    Call(usize),
}

/// Steps in one scope.
const STEPS: usize = 32;
const TASKS_MAX: usize = 1 << 16;

pub(crate) struct Machine {
    pub(crate) symbols: HashMap<String, Weak<Symbol>>,
    globals: Vec<Root<Symbol>>,
    tasks: Vec<Task>,
    /// Two for each task: an expression or a symbol, and an environment.
    operands: Stack<Lisp>,
    values: Stack<Lisp>,
}

impl Machine {
    pub(crate) fn new() -> Result<Machine> {
        let (symbols, globals, tasks) = (HashMap::new(), Vec::new(), Vec::new());
        let (operands, values) = (Stack::new()?, Stack::new()?);
        let mut machine = Machine { symbols, globals, tasks, operands, values };
        Heap::get().scope(|scope| {
            for (index, (name, _)) in (0..).zip(FUNCTIONS) {
                machine.values.push(immediate(FUNCTION, index))?;
                let symbol = machine.symbol(scope, name)?;
                machine.define(scope, symbol)?;
            }
            Ok(machine)
        })
    }

    /// The values of a program's expressions, as text.
    pub(crate) fn run(&mut self, program: &str) -> Result<Vec<String>> {
        let heap = Heap::get();
        self.tasks.clear();
        self.operands.truncate(0);
        self.values.truncate(0);
        heap.scope(|scope| self.symbols.retain(|_, symbol| symbol.get(scope).is_some()));
        self.read(program)?;
        let mut shown = Vec::new();
        for index in 0..self.values.len() {
            heap.scope(|scope| self.add(Task::Evaluate, self.values.get(index, scope), NIL))?;
            while !self.tasks.is_empty() {
                heap.scope(|scope| (0..STEPS).try_for_each(|_| self.step(scope)))?;
            }
            shown.push(heap.scope(|scope| show(scope, self.values.pop(scope))));
        }
        Ok(shown)
    }

    /// Pushes the expressions of a text.
    fn read(&mut self, text: &str) -> Result<()> {
        // For each list that has begun, the number of values before it.
        let mut open = Vec::new();
        for word in text.replace('(', " ( ").replace(')', " ) ").split_whitespace() {
            if word == "(" {
                open.push(self.values.len());
                continue;
            }
            Heap::get().scope(|scope| -> Result<()> {
                let value = match (word, word.parse::<i64>()) {
                    (")", _) => {
                        let (start, mut list) = (open.pop().ok_or("a bracket closes no list")?, NIL);
                        while self.values.len() > start {
                            list = pair(scope, LIST, self.values.pop(scope), list)?;
                        }
                        list
                    }
                    (_, Ok(number)) => immediate(INTEGER, number as u64),
                    (name, Err(_)) => self.symbol(scope, name)?,
                };
                Ok(self.values.push(value)?)
            })?;
        }
        if open.is_empty() { Ok(()) } else { Err("a list does not end".into()) }
    }

    /// The symbol of that name, which is the only one.
    fn symbol<'s>(&mut self, scope: &Scope<'s>, name: &str) -> Result<Value<'s>> {
        if let Some(symbol) = self.symbols.get(name).and_then(|symbol| symbol.get(scope)) {
            return Ok(Any::of(symbol, SYMBOL));
        }
        let symbol = scope.alloc(Symbol::default())?;
        scope.set(symbol, &symbol.name, scope.alloc_slice(name.as_bytes())?);
        self.symbols.insert(name.to_owned(), Weak::new(symbol)?);
        Ok(Any::of(symbol, SYMBOL))
    }

    /// Takes a value for the global variable of a symbol, and pushes the symbol.
    fn define(&mut self, scope: &Scope<'_>, variable: Value<'_>) -> Result<()> {
        let symbol = variable.cast::<Symbol>().ok_or("a symbol is needed")?;
        if symbol.value.bits() == Some(0) {
            self.globals.push(Root::new(symbol)?);
        }
        scope.put(symbol, &symbol.value, self.values.pop(scope));
        Ok(self.values.push(variable)?)
    }

    fn add(&mut self, task: Task, operand: Value<'_>, environment: Value<'_>) -> Result<()> {
        if self.tasks.len() == TASKS_MAX {
            return Err("the recursion is too deep".into());
        }
        self.operands.push(operand)?;
        self.operands.push(environment)?;
        self.tasks.push(task);
        Ok(())
    }

    fn step(&mut self, scope: &Scope<'_>) -> Result<()> {
        let Some(task) = self.tasks.pop() else { return Ok(()) };
        let (environment, operand) = (self.operands.pop(scope), self.operands.pop(scope));
        match task {
            Task::Evaluate => self.evaluate(scope, operand, environment),
            Task::Choose => {
                let index = if self.values.pop(scope).is(NIL) { 3 } else { 2 };
                let branch = elements(scope, operand).nth(index).expect("`evaluate` found both");
                self.add(Task::Evaluate, branch, environment)
            }
            Task::Define => self.define(scope, operand),
            Task::Call(count) => self.call(scope, count),
        }
    }

    fn evaluate<'s>(&mut self, scope: &Scope<'s>, code: Value<'s>, environment: Value<'s>) -> Result<()> {
        if let Some(symbol) = code.cast::<Symbol>() {
            let value = local(scope, code, environment).unwrap_or_else(|| symbol.value.get(scope));
            if value.bits() == Some(0) {
                return Err(format!("{} is not defined", name(scope, symbol)).into());
            }
            return Ok(self.values.push(value)?);
        }
        let list: Vec<Value<'_>> = elements(scope, code).collect();
        let word = list.first().and_then(|first| first.cast()).map_or("", |symbol| name(scope, symbol));
        match (word, &list[..]) {
            (_, []) => Ok(self.values.push(code)?),
            ("quote", [_, quoted]) => Ok(self.values.push(*quoted)?),
            ("lambda", [_, _, _]) => Ok(self.values.push(pair(scope, CLOSURE, code, environment)?)?),
            ("if", [_, condition, _, _]) => {
                self.add(Task::Choose, code, environment)?;
                self.add(Task::Evaluate, *condition, environment)
            }
            ("define", [_, variable, value]) => {
                self.add(Task::Define, *variable, environment)?;
                self.add(Task::Evaluate, *value, environment)
            }
            (_, [_, arguments @ ..]) => {
                // The last argument is evaluated first, and the function last.
                self.add(Task::Call(arguments.len()), NIL, NIL)?;
                list.iter().try_for_each(|part| self.add(Task::Evaluate, *part, environment))
            }
        }
    }

    fn call(&mut self, scope: &Scope<'_>, count: usize) -> Result<()> {
        let function = self.values.pop(scope);
        let arguments: Vec<Value<'_>> = (0..count).map(|_| self.values.pop(scope)).collect();
        if let Some(index) = number(FUNCTION, function) {
            return Ok(self.values.push(FUNCTIONS[index as usize].1(scope, &arguments)?)?);
        }
        let (code, mut environment) = parts(scope, CLOSURE, function).ok_or("a function is needed")?;
        let [_, parameters, body] = elements(scope, code).collect::<Vec<_>>()[..] else { unreachable!() };
        let parameters: Vec<Value<'_>> = elements(scope, parameters).collect();
        if parameters.len() != count {
            return Err(format!("a function takes {} arguments, not {count}", parameters.len()).into());
        }
        for (parameter, argument) in parameters.into_iter().zip(arguments) {
            let binding = pair(scope, LIST, parameter, argument)?;
            environment = pair(scope, LIST, binding, environment)?;
        }
        self.add(Task::Evaluate, body, environment)
    }
}

/// The program that runs without arguments.
pub(crate) const PROGRAM: &str = "
    (define fib (lambda (n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2))))))
    (define count (lambda (from to) (if (eq from to) () (cons from (count (+ from 1) to)))))
    (define map (lambda (f list) (if list (cons (f (car list)) (map f (cdr list))) ())))
    (map fib (count 0 18))";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let program = if arguments.is_empty() { PROGRAM.to_owned() } else { arguments.join(" ") };
    println!("{}", Machine::new()?.run(&program)?.join("\n"));
    let stats = Heap::get().stats();
    eprintln!("{} collections, {} KiB allocated", stats.collections, stats.allocated_bytes >> 10);
    Ok(())
}
