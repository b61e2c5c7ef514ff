//! Tests of the output of programs, also with collections at random points. These show at once if the
//! interpreter drops the only reference to a value that it still uses.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn scheme() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vellum-scheme"));
    command.current_dir(folder()).env_remove("VELLUM_GC_EAGER").env_remove("LD_PRELOAD");
    command
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a program from standard input.
fn given(program: &str, eager: Option<&str>) -> Output {
    let mut command = scheme();
    if let Some(points) = eager {
        command.env("VELLUM_GC_EAGER", points);
    }
    let pipes = command.arg("-").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().expect("the interpreter starts");
    let mut input = child.stdin.take().expect("a pipe");
    let program = program.to_owned();
    let writer = std::thread::spawn(move || _ = input.write_all(program.as_bytes()));
    let output = child.wait_with_output().expect("the interpreter ends");
    writer.join().expect("the program was given");
    output
}

fn programs() -> Vec<String> {
    let names = std::fs::read_dir(folder()).expect("the programs").map(|entry| entry.expect("a file").path());
    let names = names.filter(|path| path.extension().is_some_and(|ending| ending == "scm"));
    let names = names.map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned());
    let mut names: Vec<String> = names.collect();
    names.sort();
    assert!(names.len() > 5, "{names:?}");
    names
}

fn passes(name: &str, points: Option<&str>) {
    let mut command = scheme();
    if let Some(points) = points {
        command.env("VELLUM_GC_EAGER", points);
    }
    let output = command.arg(format!("{name}.scm")).output().expect("the interpreter starts");
    let wanted = std::fs::read_to_string(folder().join(format!("{name}.out"))).expect("what it prints");
    let said = format!("{name} with {points:?}: {:?} {}", output.status, text(&output.stderr));
    assert_eq!(text(&output.stdout), wanted, "{said}");
    assert!(output.status.success(), "{said}");
}

#[test]
fn programs_print_the_expected_output() {
    programs().iter().for_each(|name| passes(name, None));
}

#[test]
fn programs_pass_with_collections_at_random() {
    let seed = vellum_random::test_seed(None);
    for name in programs() {
        // With a million frames on the stack, each collection scans all of them.
        let means: &[u32] = if name == "tails" { &[200_000] } else { &[50, 1000] };
        for mean in means {
            passes(&name, Some(&format!("{mean},seed={}", seed % 1_000_000)));
        }
    }
}

#[test]
fn benchmarks_run() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("bench");
    let found = std::fs::read_dir(folder).expect("the benchmarks").map(|entry| entry.expect("a file").path());
    let mut count = 0;
    for path in found.filter(|path| path.extension().is_some_and(|ending| ending == "scm")) {
        let output = scheme().arg("--gc-stats").arg(&path).output().expect("the interpreter starts");
        assert!(output.status.success(), "{}: {}", path.display(), text(&output.stderr));
        assert!(!output.stdout.is_empty() && text(&output.stderr).contains("collections"));
        count += 1;
    }
    assert!(count >= 8);
}

#[test]
fn errors_report_their_place() {
    let cases = [
        ("(display 1)\n  (car 'x)", "-:2:3: car: a pair was expected, not x"),
        ("(define (f x)\n  (+ x\n     (g x)))\n(f 1)", "-:3:7: g is not defined"),
        ("(define (f x) x)\n(list (f 1 2))", "-:2:7: f takes 1 arguments, not 2"),
        ("(error \"wrong thing:\" 1 \"two\" 'three)", "-:1:1: wrong thing: 1 \"two\" three"),
        ("(raise 'odd)", "-:1:1: raised: odd"),
        ("(display (quote a)\n", "-:1:1: this parenthesis is not closed"),
        ("1 2)", "-:1:4: this parenthesis closes nothing"),
        ("(a ]", "-:1:4: ) was expected, not ]"),
        ("\"abc", "-:1:1: \" was expected before the end"),
        ("(if)", "-:1:1: if does not look like this"),
        ("(lambda (x x) x)", "-:1:1: x stands here twice"),
        ("(let ((x)) x)", "-:1:7: a binding is (name expression)"),
        ("()", "-:1:1: () is no expression: quote it"),
        ("#\\nothing", "-:1:1: there is no character #\\nothing"),
        ("123456789012345678901234567890", "no integer of 51 bits"),
        ("(+ 1125899906842623 1)", "no integer of 51 bits"),
        ("(vector-ref (vector 1 2 3) 3)", "an index less than 3 was expected, not 3"),
        ("(with-exception-handler (lambda (e) 1) (lambda () (raise 'x)))", "a handler has returned from x"),
        ("(define (f n) (+ 1 (f n))) (f 1)", "recursion too deep"),
        ("(open-input-file \"/nowhere\")", "/nowhere"),
        ("(hash-table-ref (make-hash-table) 'k)", "there is no such key: k"),
    ];
    for (program, wanted) in cases {
        let output = given(program, None);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{program}: {said}");
        assert!(said.contains(wanted), "{program}: {said:?} lacks {wanted:?}");
    }
}

#[test]
fn hostile_texts_are_refused() {
    let deep = 100_000;
    let ring = "(define l (list 1 2))\n(set-cdr! (cdr l) l)\n";
    let nested = "(define l '())\n(do ((i 0 (+ i 1))) ((= i 100000)) (set! l (list l)))\n";
    let cases = [
        "(".repeat(deep),
        ")".repeat(deep),
        "'".repeat(deep),
        "#(".repeat(deep),
        format!("{}{}", "(car ".repeat(deep), ")".repeat(deep)),
        format!("(let* ({}) x)", "(x 1)".repeat(5000)),
        "#|".repeat(deep),
        "#;".repeat(deep),
        "9".repeat(deep),
        "\"\\x110000;\"".to_owned(),
        "(make-vector 1000000000000 0)".to_owned(),
        "(make-string -1 #\\a)".to_owned(),
        format!("{nested}(display l)"),
        format!("{nested}(equal? l (list l l))(define m l){}(equal? l (car m))", nested.replace('l', "m")),
        format!("{nested}(eval l)"),
        format!("{ring}(apply + l)"),
        format!("{ring}(length l)"),
        format!("{ring}(eval l)"),
        "(call/cc 5)".to_owned(),
        "(define-record-type 5 6 7 8)".to_owned(),
        "(let loop)".to_owned(),
        "(cond (else 1) (2 3))".to_owned(),
        "(1 . 2)".to_owned(),
        "#u8(256)".to_owned(),
        "(%record-ref 1 2 3)".to_owned(),
        "(%record-ref)".to_owned(),
        "(car (%record-ref (%record (list 1) 2) (list 1) 1))".to_owned(),
        "(%promise-ref 1 2)".to_owned(),
        "(car (port?))".to_owned(),
    ];
    for program in cases {
        let output = given(&program, None);
        let (said, start) = (text(&output.stderr), &program[..program.len().min(60)]);
        assert_eq!(output.status.code(), Some(1), "{start}: {:?} {said}", output.status);
        assert!(!said.is_empty() && !said.contains("panicked"), "{start}: {said}");
    }
}

/// An expression of integers, and its value if all intermediate values fit.
fn arithmetic(random: &mut impl FnMut(usize) -> usize, depth: usize) -> (String, Option<i64>) {
    if depth == 0 || random(4) == 0 {
        let sizes = [10, 1000, 1 << 20, 1 << 40];
        let size = sizes[random(sizes.len())];
        let number = random(size * 2) as i64 - size as i64;
        return (number.to_string(), Some(number));
    }
    let (left, one) = arithmetic(random, depth - 1);
    let (right, other) = arithmetic(random, depth - 1);
    type Operation = fn(i64, i64) -> Option<i64>;
    let operations: [(&str, Operation); 6] = [
        ("+", i64::checked_add),
        ("-", i64::checked_sub),
        ("*", i64::checked_mul),
        ("quotient", i64::checked_div),
        ("remainder", i64::checked_rem),
        ("max", |one, other| Some(one.max(other))),
    ];
    let (name, operation) = operations[random(operations.len())];
    let value = one.zip(other).and_then(|(one, other)| operation(one, other));
    (format!("({name} {left} {right})"), value.filter(|&value| vellum_scheme::immediate::is_integer(value)))
}

/// A datum as `write` prints it.
fn datum(random: &mut impl FnMut(usize) -> usize, depth: usize) -> String {
    let simple = [
        "a",
        "|b c|",
        "12",
        "-7",
        "1.5",
        "-0.25",
        "#t",
        "#f",
        "()",
        "\"x\\n\\\"\"",
        "#\\a",
        "#\\space",
        "->x",
    ];
    match random(if depth == 0 { 1 } else { 4 }) {
        0 => simple[random(simple.len())].to_owned(),
        kind => {
            let elements: Vec<String> = (0..=random(4)).map(|_| datum(random, depth - 1)).collect();
            let inner = elements.join(" ");
            match kind {
                1 => format!("#({inner})"),
                // A tail that is a list would be printed as a part of the list.
                2 => format!("({inner} . 5)"),
                _ => format!("({inner})"),
            }
        }
    }
}

#[test]
fn numbers_and_data_agree_with_rust() {
    let seed = vellum_random::test_seed(None);
    let mut state = seed;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let (mut program, mut wanted) = (String::new(), String::new());
    for _ in 0..600 {
        let (expression, value) = arithmetic(&mut random, 4);
        program.push_str(&format!("(write (guard (e (#t 'error)) {expression}))\n(newline)\n"));
        wanted.push_str(&format!("{}\n", value.map_or("error".to_owned(), |value| value.to_string())));
        let datum = datum(&mut random, 4);
        program.push_str(&format!("(write '{datum}) (newline)\n"));
        wanted.push_str(&format!("{datum}\n"));
    }
    for points in [None, Some("100,seed=3")] {
        let output = given(&program, points);
        assert!(output.status.success(), "seed {seed}: {}", text(&output.stderr));
        for (number, (one, other)) in text(&output.stdout).lines().zip(wanted.lines()).enumerate() {
            assert_eq!(one, other, "seed {seed}, line {number}");
        }
        assert_eq!(text(&output.stdout).lines().count(), wanted.lines().count());
    }
}

#[test]
fn the_command_line_follows_its_help() {
    let run = |arguments: &[&str]| scheme().args(arguments).output().expect("the interpreter starts");
    let value = run(&["-e", "(cadr (list 1 '(a \"b\")))", "x"]);
    assert_eq!((text(&value.stdout).as_str(), value.status.code()), ("(a \"b\")\n", Some(0)));
    assert_eq!(text(&run(&["-e", "(command-line)", "x", "y"]).stdout), "(\"x\" \"y\")\n");
    assert_eq!(run(&["-e", "(exit 7)"]).status.code(), Some(7));
    assert_eq!(run(&["-e", "(exit)"]).status.code(), Some(0));
    assert_eq!(run(&["--nothing"]).status.code(), Some(2));
    assert_eq!(run(&["-e"]).status.code(), Some(2));
    assert_eq!(run(&["nowhere.scm"]).status.code(), Some(1));
    assert!(text(&run(&["--help"]).stdout).contains("--gc-stats"));
    let bad = scheme().env("VELLUM_GC_EAGER", "often").args(["-e", "1"]).output().expect("it starts");
    assert_eq!(bad.status.code(), Some(2));
}

#[test]
fn the_session_continues_after_errors() {
    let mut command = scheme();
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().expect("the interpreter starts");
    let input = b"(define (f x)\n  (* x 2))\n(car 1)\n(f 21) (f 1)\n";
    child.stdin.take().expect("a pipe").write_all(input).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(text(&output.stdout), "42\n2\n");
    assert!(text(&output.stderr).contains("input:1:1: car: a pair was expected, not 1"));
    assert_eq!(output.status.code(), Some(0));
}
