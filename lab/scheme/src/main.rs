//! `vellum-scheme`: runs programs, one expression, or an interactive session.
//!
//! Exit status: 0; 1 after an error of the program; 2 for wrong usage; the status of `(exit n)`. An
//! interrupt (Ctrl-C) ends the process as usual, since there is nothing to clean up.

use std::io::{BufRead, IsTerminal};
use std::process::ExitCode;
use vellum_scheme::fail::Ended;
use vellum_scheme::machine::Machine;
use vellum_scheme::memory;
use vellum_scheme::primitives::ports;
use vellum_scheme::printer;
use vellum_scheme::reader::Reader;

const HELP: &str = "\
vellum-scheme [--gc-stats] [FILE [ARGUMENT ...]]
vellum-scheme [--gc-stats] -e EXPRESSION [ARGUMENT ...]

Runs a Scheme program, prints an expression's value, or, without either, reads expressions and prints their
values. FILE may be - for standard input.

  -e EXPRESSION   evaluate it, and print its value
  --gc-stats      say at the end what the collector did, on standard error
  --help          print this

VELLUM_GC_EAGER=N[,seed=S] collects at one allocation in N, at random: to find mistakes in the interpreter.";

struct Options {
    says_statistics: bool,
    expression: Option<String>,
    file: Option<String>,
    arguments: Vec<String>,
}

fn options() -> Result<Option<Options>, String> {
    let mut all = std::env::args().skip(1);
    let mut found = Options { says_statistics: false, expression: None, file: None, arguments: Vec::new() };
    while let Some(word) = all.next() {
        match &*word {
            "--help" | "-h" => return Ok(None),
            "--gc-stats" => found.says_statistics = true,
            "-e" => {
                found.expression = Some(all.next().ok_or("-e wants an expression: -e '(+ 1 2)'")?);
                break;
            }
            _ if word.starts_with('-') && word != "-" => {
                return Err(format!("{word} is no option: see --help"));
            }
            _ => {
                found.file = Some(word);
                break;
            }
        }
    }
    found.arguments = all.collect();
    Ok(Some(found))
}

/// Parses `VELLUM_GC_EAGER`: one collection in this many allocations, and the seed.
fn eager(value: &str) -> Option<(u32, u64)> {
    let (mean, seed) = value.split_once(",seed=").unwrap_or((value, "0"));
    Some((mean.parse().ok().filter(|&mean| mean > 0)?, seed.parse().ok()?))
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(Some(options)) => options,
        Ok(None) => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(message) => return refuse(&message),
    };
    let (mean, seed) = match std::env::var("VELLUM_GC_EAGER") {
        Ok(value) => match eager(&value) {
            Some(found) => found,
            None => return refuse(&format!("VELLUM_GC_EAGER={value}: N or N,seed=S was expected")),
        },
        Err(_) => (0, 0),
    };
    if let Err(message) = memory::start(mean, seed) {
        eprintln!("vellum-scheme: {message}");
        return ExitCode::FAILURE;
    }
    let status = match Machine::new() {
        Ok(mut machine) => run(&mut machine, &options),
        Err(ended) => {
            eprintln!("vellum-scheme: the prelude does not run: {ended:?}");
            1
        }
    };
    if ports::flush().is_err() {
        return ExitCode::FAILURE;
    }
    if options.says_statistics {
        eprintln!("{}", memory::statistics());
    }
    // The status of a process has eight bits.
    ExitCode::from((status & 0xff) as u8)
}

fn refuse(message: &str) -> ExitCode {
    eprintln!("vellum-scheme: {message}");
    ExitCode::from(2)
}

fn run(machine: &mut Machine, options: &Options) -> i32 {
    machine.arguments = options.arguments.clone();
    let ended = match (&options.expression, &options.file) {
        (Some(expression), _) => show_all(machine, "expression", expression),
        (None, Some(file)) => {
            machine.arguments.insert(0, file.clone());
            let text = if file == "-" {
                std::io::read_to_string(std::io::stdin())
            } else {
                std::fs::read_to_string(file)
            };
            match text {
                Ok(text) => machine.run_text(file, &text, &mut |_, _| Ok(())),
                Err(error) => {
                    eprintln!("vellum-scheme: {file}: {error}");
                    return 1;
                }
            }
        }
        (None, None) => return converse(machine),
    };
    ended.map_or_else(|ended| status(machine, ended), |()| 0)
}

/// Runs a text, and prints each value but the unspecified one.
fn show_all(machine: &mut Machine, name: &str, text: &str) -> Result<(), Ended> {
    machine.run_text(name, text, &mut |_, value| {
        if value.is_immediate(vellum_scheme::immediate::UNSPECIFIED) {
            return Ok(());
        }
        let mut text = String::new();
        printer::print(value, true, &mut text).map_err(|message| Ended::Error(message, None))?;
        ports::put(&format!("{text}\n")).map_err(|error| Ended::Error(error.to_string(), None))
    })
}

/// Prints why a program has ended early, and returns its exit status.
fn status(machine: &Machine, ended: Ended) -> i32 {
    let _ = ports::flush();
    let (place, message) = match ended {
        Ended::Exit(status) => return status,
        Ended::Syntax(error) => (Some(error.place), error.message),
        Ended::Error(message, None) => {
            eprintln!("{message}");
            return 1;
        }
        Ended::Error(message, place) => (place, message),
        Ended::Memory(error) => (None, error.to_string()),
    };
    eprintln!("{}: {message}", machine.place(place));
    1
}

/// Reads expressions line by line, and prints their values.
fn converse(machine: &mut Machine) -> i32 {
    let is_terminal = std::io::stdin().is_terminal();
    let (mut text, mut last) = (String::new(), 0);
    loop {
        if is_terminal {
            let _ = ports::put(if text.is_empty() { "> " } else { "  " });
        }
        let _ = ports::flush();
        match std::io::stdin().lock().read_line(&mut text) {
            Ok(0) if text.trim().is_empty() => return last,
            Ok(0) => {
                eprintln!("the input ends within an expression");
                return 1;
            }
            Ok(_) => {}
            Err(error) => {
                eprintln!("vellum-scheme: standard input: {error}");
                return 1;
            }
        }
        let mut reader = Reader::new(&text, 0);
        let is_incomplete = loop {
            match reader.next_datum() {
                Ok(Some(_)) => {}
                Ok(None) => break false,
                Err(error) => break error.is_incomplete,
            }
        };
        if is_incomplete {
            continue;
        }
        last = match show_all(machine, "input", &std::mem::take(&mut text)) {
            Ok(()) => 0,
            Err(Ended::Exit(status)) => return status,
            Err(ended) => status(machine, ended),
        };
    }
}
