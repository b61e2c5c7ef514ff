//! `vellum cost`: shows a program's source with the cost of the memory operations of each line.
//!
//! The program is unmodified and its exit status is passed on, as in `vellum run`. The report goes to
//! standard error after the program has ended, or into files.

mod args;
mod changes;
mod closing;
mod group;
mod json;
mod observed;
mod summary;
mod text;
mod words;

pub(crate) use args::Cost;

use crate::environment::{append, edit, move_to_front, preload_companions, prepend};
use crate::failure::Failure;
use crate::gc_account::Account;
use crate::heap::folded::folded;
use crate::screen;
use observed::Observed;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use vellum_cost::{
    Answers, FaultWatch, Faults, LedgerFile, Place, Profile, Refused, Sources, minor_fault_ns, profile,
};
use vellum_process::{BoardFile, Child, Command, Ended, Image, Obstacle, Signals, Symbols, library, locate};
use vellum_report::{Look, Output, Style, write_each};
use vellum_timing::clock::{Clock, ClockKind};
use vellum_wire::cost::LEDGER_ENV;
use vellum_wire::{Attach, BOARD_ENV, Slot};

/// The interval at which the board's memory is reserved ahead.
const TICK: Duration = Duration::from_millis(100);
/// A guess of the cycles in a microsecond, if they are unknown: it decides which operations are long.
const CYCLES_A_US: f64 = 2000.0;

/// Columns of a report in a file.
const FILE_COLUMNS: usize = 160;

/// Runs the command once, reports, and returns the program's exit status.
pub(crate) fn cost(args: &Cost) -> Result<u8, Failure> {
    if let [old, new] = &args.diff[..] {
        return changes::diff(old, new, args.top);
    }
    let program = locate(&args.command[0], std::env::var_os("PATH").as_deref())?;
    // An unreadable file can still be executed; its properties are then unknown.
    let obstacle = Image::inspect(&program).ok().and_then(|image| image.obstacle);
    let recorder = library::find_recorder(args.recorder.as_deref())?;
    let vellum = if args.own_allocator { None } else { Some(library::find(args.lib.as_deref())?) };
    let prepare = |path: &Option<PathBuf>| path.as_deref().map(Output::prepare).transpose();
    let (report, json, folded) = (prepare(&args.output)?, prepare(&args.json)?, prepare(&args.folded)?);
    let observed = observe(args, &program, obstacle, &recorder, vellum.as_deref())?;
    let style = if report.is_some() { Style::plain() } else { Style::of_stderr() };
    let width = if report.is_some() { FILE_COLUMNS } else { screen::columns_of_stderr() };
    let document = json::document(&observed);
    let shown = match args.summary {
        true => summary::report(&observed),
        false => text::report(&observed, &args.file),
    };
    let shown = shown.documented(&document);
    let text = || shown.text(Look::brief(style).wide(width));
    if report.is_none() {
        vellum_report::stderr::write(format_args!("{}", text()));
    }
    let flames = || Ok(flames(&observed.profile));
    write_each([(report, &|| Ok(text())), (json, &|| shown.json()), (folded, &flames)]);
    Ok(observed.ended.outcome.shell_status())
}

fn observe(
    args: &Cost,
    program: &Path,
    obstacle: Option<Obstacle>,
    recorder: &Path,
    vellum: Option<&Path>,
) -> Result<Observed, Failure> {
    let clock = Clock::open(ClockKind::TscFenced);
    let cycles_a_us = clock.as_ref().map_or(CYCLES_A_US, |clock| 1000.0 / clock.ns_per_tick());
    let signals = Signals::block()?;
    let board = BoardFile::create()?;
    let directory = board.path().parent().unwrap_or(Path::new("/"));
    let ledger = LedgerFile::create(directory, args.folded.is_some(), cycles_a_us as u32)
        .map_err(|error| {
            let error = vellum_process::named(error);
            Failure::because(format!(
                "cannot create the ledger in which operations are recorded ({error}); make some room in /dev/shm"
            ))
        })?;
    let ledger = Arc::new(ledger);
    let preloads = !obstacle.is_some_and(Obstacle::forbids_preload);
    let env = if preloads {
        environment(&board, &ledger, recorder, vellum)?
    } else {
        std::env::vars_os().collect()
    };
    let argv = args.command.clone();
    let command = Command { program: program.to_path_buf(), argv, env, stdio: Default::default() };
    let minor_fault_ns = minor_fault_ns();
    let watch = FaultWatch::prepare();
    let child = Child::spawn(&command, &signals)?;
    let pid = child.pid();
    let symbols = Arc::new(Mutex::new(Symbols::default()));
    let answers = Answers::start(ledger.clone(), symbols.clone());
    let (reader, refused) = match watch {
        Ok(watch) => (Some(watch.start(symbols.clone())), None),
        Err(refused) => (None, Some(refused)),
    };
    let ended = child.wait(Some(TICK), |_| board.reserve_ahead());
    // From here on a signal ends this command, so its files must be removed now.
    board.remove();
    answers.stop();
    let faults = reader.map(vellum_cost::FaultReader::stop);
    drop(signals);
    let ended = ended.map_err(Failure::wait)?;
    let mut symbols = symbols.lock().unwrap_or_else(PoisonError::into_inner);
    let (timer, flames) = (clock.as_ref().ok(), args.folded.is_some());
    let sources = Sources { ledger: &ledger, faults, minor_fault_ns, clock: timer, flames };
    let profile = profile(sources, &mut symbols);
    // The program may have called exec: its last slot is that of the last program.
    let is_last = |slot: &&Slot| slot.pid.load(Relaxed) == pid.0 as u32;
    let slot = board.claimed().iter().rev().find(is_last);
    let on_vellum = slot.is_some_and(|slot| slot.attach() == Attach::Serving);
    let mut notes = notes(&profile, obstacle, refused.as_ref(), ended);
    if vellum.is_some() && !on_vellum && profile.operations > 0 {
        notes.push("the program did not allocate from Vellum: its own allocator was measured".to_owned());
    }
    let collector = Account::of(slot.into_iter());
    if collector.collections > 0 {
        notes.push(format!("beside this, its garbage collector: {}", collector.line()));
    }
    if let Err(error) = clock {
        notes.push(format!("operations are counted and not timed: {error}"));
    }
    let newer = newer(&profile);
    notes.extend(newer.iter().map(|(source, module)| {
        format!("{source} is newer than {}: lines may have moved; build it again", module.display())
    }));
    let command = args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    Ok(Observed { command, program: program.to_path_buf(), ended, profile, on_vellum, newer, notes })
}

/// This process's environment, with the variables that make the program record.
fn environment(
    board: &BoardFile,
    ledger: &LedgerFile,
    recorder: &Path,
    vellum: Option<&Path>,
) -> Result<Vec<(OsString, OsString)>, Failure> {
    let mut env: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    if let Some(vellum) = vellum {
        let vellum = board.preloadable(vellum).map_err(Failure::link)?;
        edit(&mut env, "LD_PRELOAD", |old| prepend(vellum.as_os_str(), old));
        edit(&mut env, BOARD_ENV, |_| board.path().into());
    }
    let recorder = ledger.preloadable(recorder).map_err(Failure::link)?;
    edit(&mut env, "LD_PRELOAD", |old| move_to_front(recorder.as_os_str(), old));
    preload_companions(&mut env);
    edit(&mut env, LEDGER_ENV, |_| ledger.path().into());
    // As in `vellum run`: a child program built with AddressSanitizer would refuse to run.
    edit(&mut env, "ASAN_OPTIONS", |old| append("verify_asan_link_order=0", old));
    Ok(env)
}

/// Source files that were changed after a module was compiled from them. Missing files are skipped.
fn newer(profile: &Profile) -> BTreeMap<Arc<str>, PathBuf> {
    let changed = |file: &Path| std::fs::metadata(file).and_then(|meta| meta.modified()).ok();
    let is_newer = |(source, module): &&(Arc<str>, PathBuf)| {
        changed(Path::new(&**source)).zip(changed(module)).is_some_and(|(source, module)| source > module)
    };
    profile.sources.iter().filter(is_newer).cloned().collect()
}

/// Notes that a reader needs to judge the report.
fn notes(
    profile: &Profile,
    obstacle: Option<Obstacle>,
    refused: Option<&Refused>,
    ended: Ended,
) -> Vec<String> {
    let mut notes = Vec::new();
    if profile.processes == 0 {
        let silent = || "the recorder did not report (was LD_PRELOAD changed?)".to_owned();
        let why = obstacle.map_or_else(silent, |obstacle| format!("it is {}", obstacle.words()));
        notes.push(format!("the program's operations could not be recorded: {why}"));
    }
    if profile.processes > 0 && profile.operations == 0 {
        notes.push("no operation reached the recorder: does the program have its own allocator?".to_owned());
    }
    if profile.lost > 0 {
        notes.push(format!("{} operations found no room in the ledger and are missing", profile.lost));
    }
    if profile.unanswered > 0 {
        notes.push(
            "inlined calls of some instructions were not resolved in time: their operations count for the innermost function"
                .to_owned(),
        );
    }
    match (refused, &profile.faults) {
        (Some(refused), _) => {
            let [minor, major] = [ended.usage.minor_faults, ended.usage.major_faults];
            notes.push(format!(
                "{minor} minor and {major} major page faults are not shown by line: {refused}"
            ));
        }
        (None, Some(faults)) => notes.extend(fault_notes(faults)),
        (None, None) => {}
    }
    let bare = |place: &Place| matches!(place, Place::Function { .. } | Place::Offset { .. });
    let is_bare = || profile.items.iter().any(|item| bare(&item.cause.place));
    if profile.operations > 0 && profile.on_lines == 0 && is_bare() {
        let why = "no operation has a source line: is the program built with -g, and not stripped?";
        notes.push(why.to_owned());
    }
    notes
}

fn fault_notes(faults: &Faults) -> Option<String> {
    let total = faults.minor + faults.major;
    if faults.lost == 0 {
        return None;
    }
    let limit = " (the kernel shows at most /proc/sys/kernel/perf_event_max_sample_rate a second)";
    let why = if faults.throttled { limit } else { "" };
    Some(format!(
        "{} of {total} page faults were not shown one by one{why}: their lines' counts are scaled, and marked ~",
        faults.lost
    ))
}

/// Stacks and nanoseconds in the format of flame graph tools.
fn flames(profile: &Profile) -> String {
    folded(profile.flames.iter().map(|flame| {
        let operation = words::label(flame.operation).replace(' ', "_");
        (flame.names.iter().cloned().chain([operation]), flame.total_ns)
    }))
}
