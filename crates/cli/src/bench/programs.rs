//! Prepares the programs of a benchmark, and passes them to `single.rs` (one program) or `versus.rs`.

use super::args::{Bench, Metric};
use super::chosen::{Chosen, found, split};
use super::parameters::settings;
use super::report::Report;
use super::revision::Revision;
use super::steps::Steps;
use super::{single, versus};
use crate::failure::Failure;
use std::ffi::OsString;

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
