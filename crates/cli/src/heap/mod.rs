//! `vellum heap`: which lines of a program hold its memory.
//!
//! As for `vellum run`, the program is unmodified and its exit status is passed on. The report goes to
//! standard error after the program has ended, and into files. A process that runs already is asked to sample
//! from now on (`attach`).

pub(crate) mod args;
mod attach;
mod changes;
mod flame;
mod folded;
mod json;
mod observed;
pub(crate) mod page;
mod pprof;
mod resident;
mod scope;
mod tables;
pub(crate) mod text;
mod tree;

pub(crate) use args::Heap;
pub(crate) use observed::Observed;
pub(crate) use scope::Scope;

use crate::environment::{append, edit, preload_companions, prepend};
use crate::failure::{FAILED, Failure};
use crate::screen;
use args::Format;
use observed::{End, Named};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use vellum_cost::{HeldFile, Holder};
use vellum_process::library;
use vellum_process::{BoardFile, Child, Command, Ended, Image, Obstacle, Signals, Symbols, locate};
use vellum_report::{Output, Style};
use vellum_wire::held::HELD_ENV;
use vellum_wire::{Attach, BOARD_ENV};

/// How often the board's memory is reserved ahead.
const TICK: Duration = Duration::from_millis(100);

/// The file was not made or cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot make a file for the profile ({0}); make some room in /dev/shm")]
struct NoFile(#[source] std::io::Error);

/// The format of a file is not known.
#[derive(Debug, thiserror::Error)]
#[error(
    "the name {} does not say in which format to write; end it in .folded, .html, .json, .pb.gz, .svg or \
     .txt, or use --format", .0.display()
)]
struct NoFormat(PathBuf);

/// Options behind a process id, which belong before it.
#[derive(Debug, thiserror::Error)]
#[error(
    "there is no program {}; for the process of that number, put options before it: \
     vellum heap {} {}", .0.display(), .1, .0.display()
)]
struct OptionsBehind(OsString, String);

/// Runs the command once, reports, and returns the program's exit status.
pub(crate) fn heap(args: &Heap) -> Result<u8, Failure> {
    if let [old, new] = &args.diff[..] {
        return changes::diff(args, old, new);
    }
    if let Some(pid) = args.pid() {
        return attach::attach(args, pid);
    }
    let program = locate(&args.command[0], std::env::var_os("PATH").as_deref());
    if let (Err(_), [first, second, ..]) = (&program, &args.command[..])
        && first.to_str().is_some_and(|word| word.parse::<u32>().is_ok())
        && second.as_encoded_bytes().starts_with(b"-")
    {
        let options: Vec<_> = args.command[1..].iter().map(|word| word.to_string_lossy()).collect();
        return Err(Failure::of(OptionsBehind(first.clone(), options.join(" "))));
    }
    let program = program?;
    let obstacle = Image::inspect(&program).ok().and_then(|image| image.obstacle);
    let vellum = library::find(args.lib.as_deref())?;
    let outputs = outputs(args)?;
    let observed = observe(args, &program, obstacle, &vellum)?;
    let status = match &observed.end {
        End::Ended(ended) => ended.outcome.shell_status(),
        End::Looked { .. } => 0,
    };
    Ok(report(args, &observed, outputs, status))
}

/// The files to write, and their formats.
fn outputs(args: &Heap) -> Result<Vec<(Output, Format)>, Failure> {
    let output = |path: &PathBuf| {
        let format = args.format.or_else(|| Format::of(path));
        let format = format.ok_or_else(|| Failure::of(NoFormat(path.clone())))?;
        Ok((Output::prepare(path)?, format))
    };
    args.output.iter().map(output).collect()
}

/// Shows and writes the report. The exit status: `status`, unless that is 0 and something failed.
fn report(args: &Heap, observed: &Observed, outputs: Vec<(Output, Format)>, mut status: u8) -> u8 {
    let shown = text::render(observed, args, screen::columns_of_stderr(), Style::of_stderr());
    vellum_report::stderr::write(format_args!("{shown}"));
    for (output, format) in outputs {
        if let Err(failure) = write(output, format, observed, args) {
            vellum_report::exit::failed(failure);
            // The program's own failure says more than ours.
            status = if status == 0 { FAILED } else { status };
        }
    }
    status
}

fn write(output: Output, format: Format, observed: &Observed, args: &Heap) -> Result<(), Failure> {
    let content = match format {
        Format::Text => text::render(observed, args, screen::COLUMNS, Style::plain()).into_bytes(),
        Format::Folded => folded::render(&observed.stacks, args.of).into_bytes(),
        Format::Html => page::html(observed).into_bytes(),
        Format::Json => json::render(observed).into_bytes(),
        Format::Pprof => pprof::render(observed).map_err(|error| Failure::of(NoFile(error)))?,
        Format::Svg => flame::render(observed, args.of).into_bytes(),
    };
    Ok(output.write(content)?)
}

fn observe(
    args: &Heap,
    program: &Path,
    obstacle: Option<Obstacle>,
    vellum: &Path,
) -> Result<Observed, Failure> {
    let signals = Signals::hold()?;
    let board = BoardFile::create()?;
    let held = held_file(&board, args.interval)?;
    let preloads = !obstacle.is_some_and(Obstacle::forbids_preload);
    let env = if preloads { environment(&board, &held, vellum)? } else { std::env::vars_os().collect() };
    let command = Command {
        program: program.to_path_buf(),
        argv: args.command.clone(),
        env,
        stdio: [None, None, None],
    };
    let child = Child::spawn(&command, &signals)?;
    let ended = child.wait(Some(TICK), |_| board.reserve_ahead());
    // From here on nobody may be kept from ending us, and nothing of ours may be left behind.
    let serving = board.claimed().iter().any(|slot| slot.attach() == Attach::Serving);
    let pids = board.claimed().iter().filter(|slot| slot.pid.load(Relaxed) != 0).count();
    board.remove();
    drop(signals);
    let ended = ended.map_err(Failure::Wait)?;
    let scope = args.scope.clone();
    let run = Run { command: &args.command, program, obstacle, serving, processes: pids, ended, scope };
    run.profile(&held, args.interval)
}

/// A run of a program that has ended, of which a profile was kept.
pub(crate) struct Run<'a> {
    pub(crate) command: &'a [OsString],
    pub(crate) program: &'a Path,
    /// Why the library could not enter it.
    pub(crate) obstacle: Option<Obstacle>,
    /// Whether one of its processes allocated from Vellum.
    pub(crate) serving: bool,
    /// The processes that the library entered.
    pub(crate) processes: usize,
    pub(crate) ended: Ended,
    /// What of it is reported.
    pub(crate) scope: Scope,
}

impl Run<'_> {
    /// What was kept in the file, with names.
    pub(crate) fn profile(self, held: &HeldFile, interval: u64) -> Result<Observed, Failure> {
        let mut holders = held.holders().map_err(|error| Failure::of(NoFile(error)))?;
        let mut notes = notes(&holders, self.obstacle, self.serving, self.processes);
        let named = observed::named(&mut holders, &mut Symbols::default(), &self.scope);
        let Named { stacks, sites, pinned } = named;
        notes.extend(self.scope.note(&holders));
        let command = self.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let (program, end) = (self.program.to_path_buf(), End::Ended(self.ended));
        Ok(Observed { command, program, end, interval, holders, stacks, sites, pinned, notes })
    }
}

/// A file for the profile of processes that are given its path, beside the board.
pub(crate) fn held_file(board: &BoardFile, interval: u64) -> Result<HeldFile, Failure> {
    let directory = board.path().parent().unwrap_or(Path::new("/"));
    HeldFile::create(directory, interval).map_err(|error| Failure::of(NoFile(vellum_process::named(error))))
}

/// Our environment, and what makes the program sample.
fn environment(
    board: &BoardFile,
    held: &HeldFile,
    vellum: &Path,
) -> Result<Vec<(OsString, OsString)>, Failure> {
    let mut env: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    let vellum = board.preloadable(vellum).map_err(Failure::Link)?;
    edit(&mut env, "LD_PRELOAD", |old| prepend(vellum.as_os_str(), old));
    preload_companions(&mut env);
    edit(&mut env, BOARD_ENV, |_| board.path().into());
    edit(&mut env, HELD_ENV, |_| held.path().into());
    // As for `vellum run`: a program built with AddressSanitizer, started by ours, would refuse to run.
    edit(&mut env, "ASAN_OPTIONS", |old| append("verify_asan_link_order=0", old));
    Ok(env)
}

/// Notes that a reader needs to judge the report.
fn notes(holders: &[Holder], obstacle: Option<Obstacle>, serving: bool, processes: usize) -> Vec<String> {
    let mut notes = Vec::new();
    if holders.is_empty() {
        notes.push(match obstacle {
            Some(obstacle) => format!("the program could not be profiled: it is {}", obstacle.words()),
            None if processes == 0 => {
                "the program could not be profiled: Vellum did not report (was LD_PRELOAD changed?)"
                    .to_owned()
            }
            None if !serving => "nothing was sampled: the program has an allocator of its own".to_owned(),
            None => "nothing was sampled: the program allocated too little, or is hardened".to_owned(),
        });
    }
    if holders.len() > 1 {
        notes.push("sums are over processes, whose peaks need not have been at one time".to_owned());
    }
    let lost: u64 = holders.iter().map(|holder| holder.lost).sum();
    if lost > 0 {
        notes.push(format!(
            "{lost} samples are missing: too many at a time, or no room; use a longer --interval"
        ));
    }
    notes
}
