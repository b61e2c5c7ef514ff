//! Finds the programs of a benchmark and times them, alone or by turns.

use super::args::{Bench, Metric, Order, OutputArg};
use super::parameters::{Setting, settings};
use super::report::Report;
use super::revision::Revision;
use super::steps::Steps;
use super::{single, versus};
use crate::failure::Failure;
use crate::text::shown_command;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use vellum_process::{Command, locate};

/// The most programs: a round runs each program, and a larger comparison would be unreadable.
const PROGRAMS_MAX: usize = 64;

/// Times one program, or several against the first.
pub(super) fn run(args: &Bench) -> Result<Report, Failure> {
    let lines = split(&args.command, &args.separator)?;
    let steps = [&args.setup, &args.prepare, &args.conclude, &args.cleanup];
    let words = args.command.iter().chain(steps.into_iter().flatten()).map(OsString::as_os_str);
    let mut settings = settings(&args.parameter, words)?;
    let several = settings.iter().flat_map(|setting| lines.iter().map(move |line| found(line, setting)));
    let mut programs: Vec<Chosen> = several.collect::<Result<_, Failure>>()?;
    settings = settings.into_iter().flat_map(|setting| vec![setting; lines.len()]).collect();
    allowed(args, &programs)?;
    // Kept until the end, as dropping it removes the built files.
    let _revision = match &args.vs_ref {
        Some(name) => {
            let [here] = &programs[..] else {
                const ONE: &str = "--vs-ref compares one program with itself; leave --vs and -L out";
                return Err(Failure::because(ONE));
            };
            let revision = Revision::build(name, args.build.as_deref())?;
            let there = revision.program(here)?;
            programs.insert(0, there);
            settings = vec![settings[0].clone(); 2];
            Some(revision)
        }
        None => None,
    };
    let steps = Steps::begin(args, settings)?;
    match &programs[..] {
        [program] => single::run(args, program, &steps),
        programs => versus::run(args, programs, &steps),
    }
}

/// Rejects contradictory options before any program runs.
fn allowed(args: &Bench, programs: &[Chosen]) -> Result<(), Failure> {
    let refuse = |why: &str| Err(Failure::because(why));
    if args.counter.is_some() && args.metric != Metric::Instructions {
        return refuse("--counter is for --metric instructions; add that, or leave --counter out");
    }
    if args.subtract_start && args.metric == Metric::Instructions {
        return refuse("--subtract-start is for times; leave it out with --metric instructions");
    }
    if args.order == Order::Duet {
        match (programs, &args.vs_ref) {
            ([_], None) => return refuse("--order duet compares programs; add another one behind --vs"),
            _ if args.metric == Metric::Instructions => {
                return refuse(
                    "--order duet is for times: instructions do not depend on who runs beside; leave it out",
                );
            }
            _ if args.output == OutputArg::Equal => {
                return refuse(
                    "--order duet compares no outputs; check them once by turns, with --output equal alone",
                );
            }
            _ => {}
        }
    }
    match programs {
        [_] if args.vs_ref.is_none() && args.fail_above.is_some() => {
            refuse("--fail-above needs something to compare with: add another program behind --vs")
        }
        all if all.len() > PROGRAMS_MAX => {
            let count = all.len();
            refuse(&format!("{count} programs are too many to compare: {PROGRAMS_MAX} at most"))
        }
        _ => Ok(()),
    }
}

#[derive(Debug)]
pub(super) struct Chosen {
    pub(super) command: Command,
    pub(super) name: String,
}

pub(super) fn split<'a>(words: &'a [OsString], separator: &OsStr) -> Result<Vec<&'a [OsString]>, Failure> {
    let lines: Vec<&[OsString]> = words.split(|word| word == separator).collect();
    let missing = lines.iter().position(|line| line.is_empty());
    if let Some(at) = missing {
        let side = if at == 0 { "before" } else { "behind" };
        let word = separator.display();
        return Err(Failure::because(format!(
            "there is no program {side} {separator:?}; write COMMAND {word} COMMAND"
        )));
    }
    match lines[0].first().filter(|word| word.as_encoded_bytes().starts_with(b"-")) {
        // An unknown or removed option, which the command line took for the program.
        Some(option) => {
            let name = option.display();
            Err(Failure::because(format!(
                "there is no option {option:?}; `vellum bench --help` lists the options (a program of that name: ./{name})"
            )))
        }
        None => Ok(lines),
    }
}

pub(super) fn found(words: &[OsString], setting: &Setting) -> Result<Chosen, Failure> {
    let argv: Vec<OsString> = words.iter().map(|word| setting.fill(word)).collect();
    let program = locate(&argv[0], std::env::var_os("PATH").as_deref())?;
    let command = Command { program, argv, env: std::env::vars_os().collect(), stdio: [None, None, None] };
    Ok(Chosen { name: name(&command), command })
}

/// A command on one line, the program without its folder.
fn name(command: &Command) -> String {
    let file = Path::new(&command.argv[0]).file_name().unwrap_or(&command.argv[0]);
    let words = std::iter::once(file).chain(command.argv.iter().skip(1).map(OsString::as_os_str));
    shown_command(&words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn separator_splits_the_programs() {
        let vs = OsStr::new("--vs");
        let line = words("./old a --vs ./new b --vs c");
        assert_eq!(split(&line, vs).unwrap(), [words("./old a"), words("./new b"), words("c")]);
        assert_eq!(split(&words("./old a"), vs).unwrap().len(), 1);
        let line = words("./old --vs x ++ ./new");
        assert_eq!(split(&line, OsStr::new("++")).unwrap()[0], words("./old --vs x"));
    }

    #[test]
    fn names_omit_folders() {
        let argv = ["/opt/old/prog", "in/file", "-x"].map(OsString::from).into();
        let command =
            Command { program: "/opt/old/prog".into(), argv, env: Vec::new(), stdio: [None, None, None] };
        assert_eq!(name(&command), "prog in/file -x");
    }
}
