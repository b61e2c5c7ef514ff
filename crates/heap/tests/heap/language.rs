//! Tests of the example `lisp` with collections at random allocations.

#[path = "../../examples/lisp.rs"]
#[expect(dead_code, reason = "`main` is not called")]
mod lisp;

use lisp::{Machine, PROGRAM};
use vellum_heap::{Config, Heap};

/// Programs, and the last value of each, or the error.
const PROGRAMS: [(&str, &str); 8] = [
    (PROGRAM, "(0 1 1 2 3 5 8 13 21 34 55 89 144 233 377 610 987 1597)"),
    ("(map (lambda (n) (* n -3)) (count 0 4))", "(0 -3 -6 -9)"),
    ("(((lambda (n) (lambda (m) (cons n m))) (quote a)) (quote (b () (c))))", "(a b () (c))"),
    ("(cons (pair (cons 1 2)) (cons (eq 1 2) (quote <)))", "(true () . <)"),
    ("(define loop (lambda (n) (if (< n 1) (quote done) (loop (- n 1))))) (loop 70000)", "done"),
    ("(define deep (lambda (n) (+ 1 (deep n)))) (deep 1)", "the recursion is too deep"),
    ("(cdr 1)", "a list is needed"),
    ("(fib 1 2)", "a function takes 1 arguments, not 2"),
];

fn run(config: Config, mean: usize) {
    let seed = vellum_random::test_seed(Some(0x715b));
    let heap = Heap::start(Config { eager: mean as u32, seed, ..config }).expect("the heap starts");
    let mut machine = Machine::new().expect("memory");
    for (program, expected) in PROGRAMS {
        let values = machine.run(program).unwrap_or_else(|error| vec![error.to_string()]);
        assert_eq!(values.last().map(String::as_str), Some(expected), "{program}");
    }
    // Names without other references are freed.
    let known = machine.symbols.len();
    let quotes: String = (0..1000).map(|number| format!("(quote name-{number})")).collect();
    assert_eq!(machine.run(&quotes).expect("memory").len(), 1000);
    machine.run("").expect("memory");
    heap.collect();
    machine.run("").expect("memory");
    assert!(machine.symbols.len() < known + 100, "{} symbols, not {known}", machine.symbols.len());
    heap.validate().expect("the heap's invariants hold");
}

on_every_plan! { run: 100, 100, 100 }
