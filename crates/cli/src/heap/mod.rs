//! `vellum heap`: shows which source lines of a program hold its memory.
//!
//! The program is unmodified and its exit status is passed on, as in `vellum run`. The report goes to
//! standard error after the program has ended, and into files. A process that already runs receives a
//! request to sample (`attach`).

pub(crate) mod args;
mod attach;
mod changes;
mod flame;
pub(crate) mod folded;
mod json;
mod observed;
mod pprof;
mod resident;
mod scope;
pub(crate) mod shown;
mod tables;
mod tree;

pub(crate) use args::Heap;
pub(crate) use observed::Observed;
pub(crate) use scope::Scope;

use crate::failure::Failure;
use crate::run::Run;
use crate::run::launch::{Observed as Seen, Occasion, Plan};
use crate::screen;
use crate::text::some;
use args::Format;
use observed::{End, Named};
use shown::Extent;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use vellum_cost::Holder;
use vellum_process::{LocateError, Pid, Symbols};
use vellum_report::units::{bytes, many};
use vellum_report::{Look, Output, Style};
use vellum_wire::{Attach, Counter};

/// Above this resident memory, a note reports that only a small part of it is explained.
const MAPPED_MIN: u64 = 16 << 20;
/// The divisor that defines a small part for [`MAPPED_MIN`].
const MAPPED_PART: u64 = 8;

/// Runs the command once, reports, and returns the program's exit status.
pub(crate) fn heap(args: &Heap) -> Result<u8, Failure> {
    if let [old, new] = &args.diff[..] {
        return changes::diff(args, [old, new]);
    }
    if let Some(pid) = args.pid() {
        return attach::attach(args, pid);
    }
    let outputs = outputs(args)?;
    let (command, lib, heap) = (args.command.clone(), args.lib.clone(), Some(args.interval));
    let plan = Plan::new(&Run { command, lib, heap, ..Run::default() });
    // Options after a process id, which must come before it.
    if let (Err(failure), [first, second, ..]) = (&plan, &args.command[..])
        && failure.error::<LocateError>().is_some()
        && first.to_str().is_some_and(|word| word.parse::<u32>().is_ok())
        && second.as_encoded_bytes().starts_with(b"-")
    {
        let options: Vec<_> = args.command[1..].iter().map(|word| word.to_string_lossy()).collect();
        let (first, options) = (first.display(), options.join(" "));
        return Err(Failure::because(format!(
            "there is no program {first}; for the process of that number, put options before it: \
             vellum heap {options} {first}"
        )));
    }
    let plan = plan?;
    let seen = plan.launch(Occasion { on_vellum: true, must_sample: true, ..Occasion::default() })?;
    let status = seen.ended.outcome.shell_status();
    let Some(mut observed) = profile(&plan, &seen, &args.scope)? else { return Ok(status) };
    let mut note = |number: usize, what: &str, names: String| {
        if number > 0 {
            observed.notes.push(format!("{} {what}: {names}", many(number as u64, "process")));
        }
    };
    let (strangers, alive) = (&seen.sampled.strangers, &seen.sampled.survivors);
    let number = strangers.iter().map(|stranger| stranger.count as usize).sum();
    note(number, "not profiled", some(strangers.iter().map(|stranger| stranger.comm.clone())));
    let names = some(alive.iter().map(|(pid, name)| format!("{name} (pid {pid})")));
    note(alive.len(), "still running, profiled until now", names);
    Ok(report(args, &observed, outputs, status))
}

fn outputs(args: &Heap) -> Result<Vec<(Output, Format)>, Failure> {
    let output = |path: &PathBuf| {
        let Some(format) = args.format.or_else(|| Format::of(path)) else {
            return Err(Failure::because(format!(
                "the name {} has no known ending; end it in .folded, .html, .json, .pb.gz, .svg or \
                 .txt, or use --format",
                path.display()
            )));
        };
        Ok((Output::prepare(path)?, format))
    };
    args.output.iter().map(output).collect()
}

/// Shows and writes the report, and returns `status`.
fn report(args: &Heap, observed: &Observed, outputs: Vec<(Output, Format)>, status: u8) -> u8 {
    let look = Look::brief(Style::of_stderr()).wide(screen::columns_of_stderr());
    let shown = shown::report(observed, &Extent::of(args, look.columns)).text(look);
    vellum_report::stderr::write(format_args!("{shown}"));
    write(outputs, |format| content(format, observed, args));
    status
}

/// Writes every file, even if another fails.
fn write(outputs: Vec<(Output, Format)>, content: impl Fn(Format) -> Result<Vec<u8>, Failure>) {
    for (output, format) in outputs {
        let written = content(format).and_then(|content| Ok(output.write(content)?));
        let _ = written.map_err(vellum_report::exit::failed);
    }
}

fn content(format: Format, observed: &Observed, args: &Heap) -> Result<Vec<u8>, Failure> {
    Ok(match format {
        Format::Text => {
            let look = Look::brief(Style::plain());
            shown::report(observed, &Extent::of(args, look.columns)).text(look).into_bytes()
        }
        Format::Folded => folded::render(&observed.stacks, args.of).into_bytes(),
        Format::Html => shown::report(observed, &Extent::PAGE).html().into_bytes(),
        Format::Json => vellum_report::json(&json::document(observed))?.into_bytes(),
        Format::Pprof => pprof::render(observed).map_err(Failure::profile)?,
        Format::Svg => flame::render(observed, args.of).into_bytes(),
    })
}

/// The recorded profile of a run, with names; `None` if the run had no file for it.
pub(crate) fn profile(plan: &Plan, seen: &Seen, scope: &Scope) -> Result<Option<Observed>, Failure> {
    let Some((held, interval)) = seen.held.as_ref().zip(plan.heap) else { return Ok(None) };
    let mut holders = held.holders().map_err(Failure::profile)?;
    let mut notes = notes(&holders, plan, seen);
    let Named { stacks, sites, pinned } = observed::named(&mut holders, &mut Symbols::default(), scope);
    notes.extend(scope.note(&holders));
    let command = plan.argv.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let (program, end) = (plan.program.clone(), End::Ended(seen.ended));
    let points = seen.sampled.series.points().iter();
    let mut curve: Vec<_> = points.map(|point| (point.at.as_nanos() as u64, point.resident.0)).collect();
    // A process may grow after the last sample.
    if let ([only], Some(&(at, _))) = (&holders[..], curve.last()) {
        curve.extend(only.resident.as_ref().map(|resident| (at, resident.sum())));
    }
    Ok(Some(Observed { command, program, end, interval, holders, stacks, sites, pinned, notes, curve }))
}

/// A note on processes that were not profiled to their end.
fn left(holders: &[Holder], survivors: &[(Pid, String)]) -> Option<String> {
    let goes_on = |(at, holder): &(usize, &Holder)| {
        // After exec, the new program has a separate part.
        holders[at + 1..].iter().any(|later| later.pid == holder.pid)
            || survivors.iter().any(|(pid, _)| pid.0 as u32 == holder.pid)
    };
    let uncounted = holders.iter().enumerate().filter(|(_, holder)| holder.resident.is_none());
    let left: Vec<&Holder> = uncounted.filter(|at| !goes_on(at)).map(|(_, holder)| holder).collect();
    let names = some(left.iter().map(|holder| format!("{} (pid {})", holder.name, holder.pid)));
    (!left.is_empty()).then(|| {
        let number = many(left.len() as u64, "process");
        format!("{number} left by _exit, a signal, or for a program that is not profiled: {names}")
    })
}

fn notes(holders: &[Holder], plan: &Plan, seen: &Seen) -> Vec<String> {
    let slots = seen.board.as_deref().map(|board| board.claimed()).unwrap_or_default();
    let serving = slots.iter().any(|slot| slot.attach() == Attach::Serving);
    let processes = slots.iter().filter(|slot| slot.pid.load(Relaxed) != 0).count();
    let mut notes = Vec::new();
    let resident = seen.ended.usage.largest_process.0;
    let known = slots.iter().map(|slot| slot.get(Counter::PeakLive)).max().unwrap_or(0);
    let left = left(holders, &seen.sampled.survivors);
    let is_alone = left.is_none() && seen.sampled.strangers.is_empty();
    let is_elsewhere = serving && is_alone && resident >= MAPPED_MIN && known < resident / MAPPED_PART;
    if is_elsewhere {
        notes.push(format!(
            "the program maps its memory itself (mmap, sbrk): of {} resident, the profile covers at most {} (malloc, and mappings of 64 KiB to 256 MiB)",
            bytes(resident),
            bytes(known)
        ));
    }
    if holders.is_empty() {
        notes.extend(match plan.obstacle {
            _ if is_elsewhere => None,
            Some(obstacle) => Some(format!("the program could not be profiled: it is {}", obstacle.words())),
            None => Some(
                match processes {
                    0 => "the program could not be profiled: Vellum did not report (was LD_PRELOAD changed?)",
                    _ if !serving => "nothing was sampled: the program has an allocator of its own",
                    _ => "nothing was sampled: the program allocated too little, or is hardened",
                }
                .to_owned(),
            ),
        });
    }
    notes.extend(left);
    if holders.len() > 1 {
        notes.push("sums are over processes, whose peaks need not have been at one time".to_owned());
    }
    notes.extend(lost(holders));
    notes
}

fn lost(holders: &[Holder]) -> Option<String> {
    let lost: u64 = holders.iter().map(|holder| holder.lost).sum();
    let why = "too many at a time, or no room; use a longer --interval";
    (lost > 0).then(|| format!("{lost} samples are missing: {why}"))
}
