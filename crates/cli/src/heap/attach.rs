//! `vellum heap PID`: profiles a process that already runs on Vellum, and its children.
//!
//! Each process receives a request to sample ([`vellum_process::Asked`]). Children forked from a sampling
//! process sample too; children that execute another program get a request when they are discovered. At the
//! end each process receives a request to stop. Memory allocated before the request is reported as one sum.

use super::args::Heap;
use super::changes::{self, Change};
use super::observed::{self, End, Named, Observed};
use super::scope::Scope;
use super::{lost, outputs, report};
use crate::failure::Failure;
use crate::screen;
use std::collections::BTreeMap;
use std::fs::{File, Permissions, TryLockError};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use vellum_cost::{Cause, HeldFile, Holding};
use vellum_governor::Stop;
use vellum_kernel::Pid;
use vellum_process::{AskError, Asked, BoardFile, Counters, Symbols};
use vellum_report::units::{bytes, time};
use vellum_report::{Look, Style};
use vellum_wire::Counter;
use vellum_wire::door::{Ask, PROFILED};

/// The interval between checks for new children and for the end.
const TICK: Duration = Duration::from_millis(100);
/// The time that a process gets to answer the last requests.
const PATIENCE: Duration = Duration::from_secs(1);

/// Observes process `pid` until it ends, the time is over, or a signal requests the end.
pub(super) fn attach(args: &Heap, pid: u32) -> Result<u8, Failure> {
    let outputs = outputs(args)?;
    let before = Counters::of(pid)?;
    let before = before.read().map_or(0, |slot| slot.get(Counter::NowInUse));
    // Created for its directory, which is removed even if this command is killed.
    let place = BoardFile::create()?;
    let directory = place.path().parent().unwrap_or(Path::new("/")).to_path_buf();
    let held = HeldFile::create(&directory, args.interval).map_err(Failure::profile)?;
    share(pid, &directory, held.path());
    let stop = Stop::block()?;
    let mut group =
        Group { root: pid, path: held.path().to_path_buf(), has_begun: false, members: BTreeMap::new() };
    group.join(pid)?;
    let command = command_of(pid);
    let program = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    let began = Instant::now();
    let mut growth =
        Growth { scope: args.scope.clone(), symbols: Symbols::default(), last: Vec::new(), shown: began };
    let is_running = loop {
        let left = args.time.map(|time| time.saturating_sub(began.elapsed()));
        if stop.wait(left.map_or(TICK, |left| left.min(TICK))) || left.is_some_and(|left| left.is_zero()) {
            break Pid(pid as i32).is_alive();
        }
        if !group.look()? {
            break false;
        }
        if args.every.is_some_and(|every| growth.shown.elapsed() >= every) {
            growth.show(&held, began, args.top)?;
        }
    };
    let wall = began.elapsed();
    group.all_do(Ask::Account);
    // Read before sampling stops, so that the amounts are those of the last account.
    let mut holders = held.holders().map_err(Failure::profile)?;
    let mut notes = group.notes(before);
    notes.extend(lost(&holders));
    // An ended process causes an error, which does not matter.
    group.silent().for_each(|asked| _ = asked.withdraw());
    group.all_do(Ask::End);
    place.remove();
    let Named { stacks, sites, pinned } = observed::named(&mut holders, &mut growth.symbols, &args.scope);
    notes.extend(args.scope.note(&holders));
    let end = End::Looked { wall, is_running };
    let (interval, curve) = (args.interval, Vec::new());
    let observed = Observed { command, program, end, interval, holders, stacks, sites, pinned, notes, curve };
    Ok(report(args, &observed, outputs, 0))
}

/// Lets the owner of the process write to the file, if that is another user.
fn share(pid: u32, directory: &Path, file: &Path) {
    let Ok(owner) = std::fs::metadata(format!("/proc/{pid}")) else { return };
    if owner.uid() != rustix::process::geteuid().as_raw() {
        // If this is refused, the process reports that it cannot open the file.
        let _ = std::fs::set_permissions(directory, Permissions::from_mode(0o711));
        let _ = chown(file, Some(owner.uid()), Some(owner.gid()));
    }
}

fn command_of(pid: u32) -> Vec<String> {
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = words.split(|&byte| byte == 0).filter(|word| !word.is_empty());
    words.map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

struct Group {
    root: u32,
    path: PathBuf,
    /// True once the root samples.
    has_begun: bool,
    /// The processes seen so far, by id and start time, with their channel for requests, if they have one.
    members: BTreeMap<(u32, u64), Option<Asked>>,
}

impl Group {
    /// Sends a process a request to sample, unless it has received one.
    fn join(&mut self, pid: u32) -> Result<(), Failure> {
        let Some(began) = Pid(pid as i32).stat().map(|stat| stat.started_ticks) else { return Ok(()) };
        if self.members.contains_key(&(pid, began)) {
            return Ok(());
        }
        let asked = match self.ask(pid) {
            Ok(asked) => Some(asked),
            Err(failure) if pid == self.root => return Err(failure),
            // A child may not have loaded its libraries yet; the next round tries again.
            Err(_) => return Ok(()),
        };
        self.members.insert((pid, began), asked);
        Ok(())
    }

    fn ask(&self, pid: u32) -> Result<Asked, Failure> {
        let asked = Asked::of(pid)?;
        if asked.mode()? == PROFILED as u8 {
            match asked.path() {
                // A child of a sampling process.
                Some(path) if path == self.path => return Ok(asked),
                Some(path) if !is_in_use(&path) => {}
                _ => {
                    return Err(Failure::because(format!(
                        "process {pid} is sampled by another `vellum heap`; let that one end first"
                    )));
                }
            }
        }
        // The request came from a command that was killed before the answer.
        if asked.path().is_some_and(|path| path != self.path && !is_in_use(&path)) {
            asked.withdraw()?;
        }
        asked.ask(Ask::Begin, Some(&self.path))?;
        Ok(asked)
    }

    /// Sends requests to new children. Returns whether the root still runs.
    fn look(&mut self) -> Result<bool, Failure> {
        for (&(pid, _), asked) in &mut self.members {
            match asked.as_ref().map(Asked::answer) {
                Some(Err(AskError::Door(_))) => *asked = None,
                Some(Err(error)) if pid == self.root => return Err(error.into()),
                Some(Ok(true)) if pid == self.root && !self.has_begun => {
                    self.has_begun = true;
                    say!("vellum: process {} and its children are sampled from now on", self.root);
                }
                _ => {}
            }
        }
        let root = Pid(self.root as i32);
        if !root.is_alive() {
            return Ok(false);
        }
        for pid in Pid::descendants(std::iter::once(root), usize::MAX).iter().filter(|pid| **pid != root) {
            // Others' troubles are not this command's.
            let _ = self.join(pid.0 as u32);
        }
        Ok(true)
    }

    /// Sends a request to all processes, and waits for their answers.
    fn all_do(&self, what: Ask) {
        let asked = self.members.values().flatten().filter(|asked| matches!(asked.answer(), Ok(true)));
        let asked: Vec<_> = asked.filter(|asked| asked.ask(what, None).is_ok()).collect();
        let began = Instant::now();
        while began.elapsed() < PATIENCE && asked.iter().any(|asked| matches!(asked.answer(), Ok(false))) {
            std::thread::sleep(TICK / 10);
        }
    }

    /// The processes that have not answered yet.
    fn silent(&self) -> impl Iterator<Item = &Asked> {
        self.members.values().flatten().filter(|asked| matches!(asked.answer(), Ok(false)))
    }

    fn notes(&self, before: u64) -> Vec<String> {
        let (root, before, all) = (self.root, bytes(before), self.members.len());
        let mut notes =
            vec![format!("process {root} had {before} in use when sampling began; its lines are unknown")];
        if let silent @ 1.. = self.silent().count() {
            let why = "processes allocated no new memory, and were not sampled";
            notes.push(format!("{silent} of {all} {why}"));
        }
        notes
    }
}

/// Returns whether a running command uses the file at `path`.
fn is_in_use(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
}

struct Growth {
    scope: Scope,
    symbols: Symbols,
    last: Vec<(Cause, Holding)>,
    shown: Instant,
}

impl Growth {
    fn show(&mut self, held: &HeldFile, began: Instant, top: usize) -> Result<(), Failure> {
        let mut holders = held.holders().map_err(Failure::profile)?;
        let Named { sites, .. } = observed::named(&mut holders, &mut self.symbols, &self.scope);
        let now = |sites: &[(Cause, Holding)]| {
            sites.iter().map(|(cause, holding)| (cause.clone(), holding.now)).collect()
        };
        let changes = Change::between(now(&self.last), now(&sites));
        let title = format!("in use after {}", time(began.elapsed()));
        let look = Look::brief(Style::of_stderr()).wide(screen::columns_of_stderr());
        vellum_report::stderr::write(format_args!("\n{}", changes::text(&changes, &title, top, look)));
        (self.last, self.shown) = (sites, Instant::now());
        Ok(())
    }
}
