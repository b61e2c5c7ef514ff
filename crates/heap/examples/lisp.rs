//! A small Lisp interpreter whose values are objects of the collected heap, written without `unsafe`.
//!
//! ```text
//! cargo run --release -p vellum-heap --example lisp -- '(define (square x) (* x x)) (square 12)'
//! ```
//!
//! The language has numbers, symbols, pairs, `lambda`, `define`, `if`, `quote` and a few functions. Without
//! arguments, the example runs a built-in program and prints the collector's figures.

use std::fmt::Write;
use vellum_heap::{Array, Field, Gc, Heap, OutOfMemory, Scope, object};

/// The kinds of values.
#[derive(Clone, Copy, PartialEq, Debug)]
#[repr(u8)]
enum Kind {
    Nil,
    Number,
    Symbol,
    Pair,
    /// `head` has the parameters and the body, `tail` the environment.
    Closure,
    /// `number` selects the function.
    Builtin,
}

object! {
    /// A value of any kind.
    struct Value {
        kind: vellum_heap::Plain<Kind>,
        number: i64,
        name: Field<Array<u8>>,
        head: Field<Value>,
        tail: Field<Value>,
    }
}

#[derive(Debug)]
enum Trouble {
    Memory(OutOfMemory),
    Program(String),
}

impl From<OutOfMemory> for Trouble {
    fn from(error: OutOfMemory) -> Trouble {
        Trouble::Memory(error)
    }
}

type Found<'s> = Result<Gc<'s, Value>, Trouble>;

const BUILTINS: [&str; 9] = ["+", "-", "*", "<", "=", "cons", "car", "cdr", "null?"];

fn value<'s>(scope: &Scope<'s>, kind: Kind, number: i64) -> Found<'s> {
    let (name, head, tail) = Default::default();
    Ok(scope.alloc(Value { kind: vellum_heap::Plain(kind), number, name, head, tail })?)
}

fn pair<'s>(scope: &Scope<'s>, kind: Kind, head: Gc<'_, Value>, tail: Gc<'_, Value>) -> Found<'s> {
    let pair = value(scope, kind, 0)?;
    scope.set(pair, &pair.head, head);
    scope.set(pair, &pair.tail, tail);
    Ok(pair)
}

fn symbol<'s>(scope: &Scope<'s>, name: &str) -> Found<'s> {
    let symbol = value(scope, Kind::Symbol, 0)?;
    scope.set(symbol, &symbol.name, scope.alloc_slice(name.as_bytes())?);
    Ok(symbol)
}

fn name<'s>(scope: &Scope<'s>, value: Gc<'s, Value>) -> &'s [u8] {
    value.name.get(scope).map_or(&[], Gc::items)
}

fn trouble<T>(what: impl Into<String>) -> Result<T, Trouble> {
    Err(Trouble::Program(what.into()))
}

fn part<'s>(scope: &Scope<'s>, field: &Field<Value>) -> Found<'s> {
    field.get(scope).map_or_else(|| trouble("a pair was expected"), Ok)
}

fn elements<'s>(scope: &Scope<'s>, mut list: Gc<'s, Value>) -> Result<Vec<Gc<'s, Value>>, Trouble> {
    let mut found = Vec::new();
    while *list.kind == Kind::Pair {
        found.push(part(scope, &list.head)?);
        list = part(scope, &list.tail)?;
    }
    Ok(found)
}

fn list<'s>(scope: &Scope<'s>, elements: &[Gc<'s, Value>]) -> Found<'s> {
    let nil = value(scope, Kind::Nil, 0)?;
    elements.iter().rev().try_fold(nil, |rest, &element| pair(scope, Kind::Pair, element, rest))
}

/// Parses one value from the words.
fn read<'s>(scope: &Scope<'s>, words: &mut std::slice::Iter<'_, String>) -> Found<'s> {
    let Some(word) = words.next() else { return trouble("the program ends too soon") };
    match word.as_str() {
        "(" => {
            let mut found = Vec::new();
            while words.as_slice().first().is_some_and(|word| word != ")") {
                found.push(read(scope, words)?);
            }
            words.next();
            list(scope, &found)
        }
        word => match word.parse() {
            Ok(number) => value(scope, Kind::Number, number),
            Err(_) => symbol(scope, word),
        },
    }
}

/// The binding of a symbol: a pair of symbol and value. An environment is a list of bindings.
fn binding<'s>(scope: &Scope<'s>, symbol: Gc<'s, Value>, environment: Gc<'s, Value>) -> Found<'s> {
    let wanted = name(scope, symbol);
    let mut at = environment;
    while *at.kind == Kind::Pair {
        let binding = part(scope, &at.head)?;
        if name(scope, part(scope, &binding.head)?) == wanted {
            return Ok(binding);
        }
        at = part(scope, &at.tail)?;
    }
    trouble(format!("{} is not defined", String::from_utf8_lossy(wanted)))
}

/// Evaluates an expression in a new scope, from which only the result is kept.
fn eval<'s>(
    heap: Heap,
    outer: &Scope<'s>,
    expression: Gc<'_, Value>,
    environment: Gc<'_, Value>,
) -> Found<'s> {
    heap.scope(|scope| {
        let (expression, environment) = (scope.keep(expression), scope.keep(environment));
        match *expression.kind {
            Kind::Symbol => {
                let binding = binding(scope, expression, environment)?;
                Ok(outer.keep(part(scope, &binding.tail)?))
            }
            Kind::Pair => {
                let words = elements(scope, expression)?;
                let special = if *words[0].kind == Kind::Symbol { name(scope, words[0]) } else { &[] };
                match (special, &words[1..]) {
                    (b"quote", [quoted]) => Ok(outer.keep(*quoted)),
                    (b"if", [condition, then, otherwise]) => {
                        let found = eval(heap, scope, *condition, environment)?;
                        let next = if *found.kind == Kind::Nil { otherwise } else { then };
                        eval(heap, outer, *next, environment)
                    }
                    (b"lambda", [parameters, body]) => {
                        let code = pair(scope, Kind::Pair, *parameters, *body)?;
                        pair(outer, Kind::Closure, code, environment)
                    }
                    (b"define", [what, body]) => define(heap, outer, *what, *body, environment),
                    _ => {
                        let mut found = Vec::with_capacity(words.len());
                        for word in words {
                            found.push(eval(heap, scope, word, environment)?);
                        }
                        apply(heap, outer, found[0], &found[1..])
                    }
                }
            }
            _ => Ok(outer.keep(expression)),
        }
    })
}

/// `(define name value)` or `(define (name parameter ...) body)`: adds a binding behind the first one of the
/// environment.
fn define<'s>(
    heap: Heap,
    outer: &Scope<'s>,
    what: Gc<'_, Value>,
    body: Gc<'_, Value>,
    environment: Gc<'_, Value>,
) -> Found<'s> {
    heap.scope(|scope| {
        let (name, value) = if *what.kind == Kind::Pair {
            let code = pair(scope, Kind::Pair, part(scope, &what.tail)?, body)?;
            (part(scope, &what.head)?, pair(scope, Kind::Closure, code, environment)?)
        } else {
            (scope.keep(what), eval(heap, scope, body, environment)?)
        };
        let binding = pair(scope, Kind::Pair, name, value)?;
        let rest = pair(scope, Kind::Pair, binding, part(scope, &environment.tail)?)?;
        scope.set(environment, &environment.tail, rest);
        Ok(outer.keep(name))
    })
}

fn apply<'s>(
    heap: Heap,
    outer: &Scope<'s>,
    function: Gc<'_, Value>,
    arguments: &[Gc<'_, Value>],
) -> Found<'s> {
    heap.scope(|scope| match *function.kind {
        Kind::Builtin => builtin(outer, function.number as usize, arguments),
        Kind::Closure => {
            let code = part(scope, &function.head)?;
            let mut environment = part(scope, &function.tail)?;
            let parameters = elements(scope, part(scope, &code.head)?)?;
            if parameters.len() != arguments.len() {
                return trouble(format!("{} arguments, not {}", parameters.len(), arguments.len()));
            }
            for (parameter, argument) in parameters.into_iter().zip(arguments) {
                let binding = pair(scope, Kind::Pair, parameter, *argument)?;
                environment = pair(scope, Kind::Pair, binding, environment)?;
            }
            eval(heap, outer, part(scope, &code.tail)?, environment)
        }
        kind => trouble(format!("a function was expected, not {kind:?}")),
    })
}

fn builtin<'s>(scope: &Scope<'s>, which: usize, arguments: &[Gc<'_, Value>]) -> Found<'s> {
    let truth = |holds| value(scope, if holds { Kind::Number } else { Kind::Nil }, 1);
    match (BUILTINS[which], arguments) {
        ("+", _) => value(scope, Kind::Number, arguments.iter().map(|value| value.number).sum()),
        ("*", _) => value(scope, Kind::Number, arguments.iter().map(|value| value.number).product()),
        ("-", [left, right]) => value(scope, Kind::Number, left.number - right.number),
        ("<", [left, right]) => truth(left.number < right.number),
        ("=", [left, right]) => truth(left.number == right.number),
        ("cons", [head, tail]) => pair(scope, Kind::Pair, *head, *tail),
        ("car", [list]) => part(scope, &list.head),
        ("cdr", [list]) => part(scope, &list.tail),
        ("null?", [list]) => truth(*list.kind == Kind::Nil),
        (name, _) => trouble(format!("{name} does not take {} arguments", arguments.len())),
    }
}

fn show(scope: &Scope<'_>, value: Gc<'_, Value>, text: &mut String) {
    let _ = match *value.kind {
        Kind::Nil => write!(text, "()"),
        Kind::Number => write!(text, "{}", value.number),
        Kind::Symbol => write!(text, "{}", String::from_utf8_lossy(name(scope, scope.keep(value)))),
        Kind::Pair => {
            text.push('(');
            for (index, element) in elements(scope, scope.keep(value)).iter().flatten().enumerate() {
                text.push_str(if index > 0 { " " } else { "" });
                show(scope, *element, text);
            }
            write!(text, ")")
        }
        kind => write!(text, "<{kind:?}>"),
    };
}

/// Evaluates a program; the values of its expressions, one per line.
fn run(heap: Heap, program: &str) -> Result<String, Trouble> {
    let program = program.replace('(', " ( ").replace(')', " ) ");
    let words: Vec<String> = program.split_whitespace().map(str::to_owned).collect();
    heap.scope(|scope| {
        // Definitions are inserted behind the first binding, so the environment needs one.
        let nil = value(scope, Kind::Nil, 0)?;
        let mut globals = nil;
        for (number, name) in BUILTINS.iter().enumerate() {
            let function = value(scope, Kind::Builtin, number as i64)?;
            let binding = pair(scope, Kind::Pair, symbol(scope, name)?, function)?;
            globals = pair(scope, Kind::Pair, binding, globals)?;
        }
        let (mut words, mut text) = (words.iter(), String::new());
        while !words.as_slice().is_empty() {
            let expression = read(scope, &mut words)?;
            let found = eval(heap, scope, expression, globals)?;
            show(scope, found, &mut text);
            text.push('\n');
        }
        Ok(text)
    })
}

/// The program that runs without arguments.
const PROGRAM: &str = "
    (define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
    (define (count from to) (if (= from to) (quote ()) (cons from (count (+ from 1) to))))
    (define (map f l) (if (null? l) l (cons (f (car l)) (map f (cdr l)))))
    (map fib (count 0 18))";

fn main() {
    let heap = Heap::get();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let program = if arguments.is_empty() { PROGRAM.to_owned() } else { arguments.join(" ") };
    match run(heap, &program) {
        Ok(text) => print!("{text}"),
        Err(Trouble::Memory(error)) => {
            eprintln!("lisp: {error}");
            std::process::exit(1);
        }
        Err(Trouble::Program(what)) => {
            eprintln!("lisp: {what}");
            std::process::exit(1);
        }
    }
    if arguments.is_empty() {
        let stats = heap.stats();
        eprintln!("{} collections, {} bytes allocated", stats.collections, stats.allocated_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_evaluate_to_expected_values() {
        let heap = Heap::get();
        let said = run(heap, PROGRAM).expect("the program is right");
        assert_eq!(said.lines().last(), Some("(0 1 1 2 3 5 8 13 21 34 55 89 144 233 377 610 987 1597)"));
        assert!(heap.stats().collections > 0);
        assert!(matches!(run(heap, "(car 1)"), Err(Trouble::Program(_))));
        assert!(matches!(run(heap, "nothing"), Err(Trouble::Program(what)) if what.contains("nothing")));
    }
}
