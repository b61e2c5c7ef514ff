//! Programs: found, timed alone or by turns.

use super::args::Bench;
use super::baseline::Before;
use super::failure::BenchFailure;
use super::report::Report;
use super::{single, versus};
use crate::failure::Failure;
use std::ffi::{OsStr, OsString};
use vellum_process::{Command, locate};

/// Times one program, or two against each other.
pub(super) fn run(args: &Bench, before: Option<&Before>) -> Result<Report, Failure> {
    let (a, b) = split(&args.command, &args.separator)?;
    let a = found(a)?;
    match b {
        None => single::run(args, &a, before),
        Some(b) => versus::run(args, &a, &found(b)?),
    }
}

/// The words of the first program, and of the second if there is one.
fn split<'a>(
    words: &'a [OsString],
    separator: &OsStr,
) -> Result<(&'a [OsString], Option<&'a [OsString]>), BenchFailure> {
    let mut parts = words.split(|word| word == separator);
    let count = words.iter().filter(|word| *word == separator).count();
    let (first, second) = (parts.next().unwrap_or_default(), parts.next());
    let separator = || separator.to_owned();
    if count > 1 {
        return Err(BenchFailure::Many { separator: separator(), count });
    }
    if first.is_empty() {
        return Err(BenchFailure::NoProgram { side: "before", separator: separator() });
    }
    if second.is_some_and(<[OsString]>::is_empty) {
        return Err(BenchFailure::NoProgram { side: "behind", separator: separator() });
    }
    Ok((first, second))
}

/// The program that these words mean.
fn found(words: &[OsString]) -> Result<Command, Failure> {
    let program = locate(&words[0], std::env::var_os("PATH").as_deref())?;
    Ok(Command {
        program,
        argv: words.to_vec(),
        env: std::env::vars_os().collect(),
        stdio: [None, None, None],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn one_word_stands_between_two_programs() {
        let vs = OsStr::new("--vs");
        let line = words("./old a --vs ./new b");
        let (first, second) = split(&line, vs).unwrap();
        assert_eq!((first, second), (&words("./old a")[..], Some(&words("./new b")[..])));
        assert_eq!(split(&words("./old a"), vs).unwrap().1, None);
        let line = words("./old --vs x ++ ./new");
        assert_eq!(split(&line, OsStr::new("++")).unwrap().0, words("./old --vs x"));
    }

    #[test]
    fn what_is_missing_is_said() {
        for (line, message) in [
            ("--vs ./new", "no program before \"--vs\""),
            ("./old --vs", "no program behind \"--vs\""),
            ("a --vs b --vs c", "2 times"),
        ] {
            let error = split(&words(line), OsStr::new("--vs")).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
