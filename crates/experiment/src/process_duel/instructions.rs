//! Counts the instructions that a process and its children execute in user mode.
//!
//! ```text
//! Hardware   counter of this thread ─▶ inherited by the child, counts from its exec on, also in its children
//! Valgrind   cachegrind ─▶ a file for each process, with a line "summary: N" ─▶ sum of all files
//! ```
//!
//! The processor's counter adds no time, but most virtual machines do not offer one. The alternative is
//! Cachegrind without its simulated caches, the fastest of valgrind's counting tools. A loop of 50 million
//! instructions takes 0.42 s with Cachegrind, 0.55 s with exp-bbv, 0.59 s with callgrind and 0.84 s with
//! lackey. Each time includes 0.3 s for valgrind's start.
//!
//! Limits of valgrind: if a process executes another program (`exec`), its earlier instructions are not
//! counted. If a forked child executes no program, its parent's earlier instructions are counted again.

use super::error::TOTALS;
use super::spawn::ProcessRun;
use super::{CountError, ProcessDuelError};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use vellum_kernel::perf::{Counted, Event, What};
use vellum_process::{Command, LocateError, locate};

/// The counter of instructions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Counter {
    /// The processor, by `perf_event_open`.
    Hardware,
    /// Valgrind, the program at this path.
    Valgrind(PathBuf),
}

impl Counter {
    /// The valgrind in `PATH`.
    ///
    /// # Errors
    /// If there is no such program, or it cannot be found.
    pub fn valgrind() -> Result<Counter, LocateError> {
        locate(OsStr::new("valgrind"), std::env::var_os("PATH").as_deref()).map(Counter::Valgrind)
    }

    /// Checks that the counter works here.
    ///
    /// # Errors
    /// The [`CountError`] with which an experiment would end.
    pub fn check(&self) -> Result<(), CountError> {
        Counting::open(Some(self)).map(drop)
    }
}

/// The state of a counter of instructions. Each run of a program is counted separately.
#[derive(Debug)]
pub(super) enum Counting {
    None,
    Hardware(Option<Event>),
    Valgrind { program: PathBuf, folder: TempDir },
}

impl Counting {
    /// Prepares the counter, and checks that it works.
    pub(super) fn open(counter: Option<&Counter>) -> Result<Counting, CountError> {
        match counter {
            None => Ok(Counting::None),
            Some(Counter::Hardware) => open(What::Instructions).map(|event| Counting::Hardware(Some(event))),
            Some(Counter::Valgrind(program)) => {
                let folder = TempDir::with_prefix("vellum-instructions-");
                let failed = |source| CountError::Files { path: std::env::temp_dir(), source };
                Ok(Counting::Valgrind { program: program.clone(), folder: folder.map_err(failed)? })
            }
        }
    }

    /// The command to run in place of `command`, if another one is needed.
    pub(super) fn command(&self, command: &Command) -> Option<Command> {
        let Counting::Valgrind { program, folder } = self else { return None };
        let mut files = std::ffi::OsString::from("--cachegrind-out-file=");
        files.push(folder.path().join("%p"));
        let options = [
            "--tool=cachegrind",
            "--cache-sim=no",
            "--trace-children=yes",
            "--vgdb=no",
            "--log-file=/dev/null",
        ];
        let words = [program.as_os_str()].into_iter().chain(options.map(AsRef::as_ref));
        let argv = words.chain([files.as_os_str(), "--".as_ref(), command.program.as_os_str()]);
        let argv = argv.chain(command.argv.iter().skip(1).map(AsRef::as_ref)).map(Into::into).collect();
        Some(Command { program: program.clone(), argv, env: command.env.clone(), stdio: [None, None, None] })
    }

    /// Prepares for the next run, on this thread.
    pub(super) fn begin(&mut self) -> Result<(), CountError> {
        match self {
            Counting::None => Ok(()),
            // Each run has an event of its own, so that an earlier run's processes do not count.
            Counting::Hardware(event) => {
                *event = Some(open(What::Instructions)?);
                Ok(())
            }
            Counting::Valgrind { folder, .. } => empty(folder.path()),
        }
    }

    /// Adds the number of instructions to `run`, which has ended.
    pub(super) fn end(&mut self, run: &mut ProcessRun, command: &Command) -> Result<(), ProcessDuelError> {
        run.instructions = match self {
            Counting::None => None,
            Counting::Hardware(event) => event.as_ref().map(whole).transpose()?,
            Counting::Valgrind { folder, .. } => {
                let program = || command.program.display().to_string();
                let sum = sum(folder.path())?;
                Some(sum.ok_or_else(|| CountError::Nothing(program()))?)
            }
        };
        Ok(())
    }
}

/// An event on this thread that begins to count in a child of it that executes a program, and goes on in that
/// one's children.
fn open(what: What) -> Result<Event, CountError> {
    let event = Event::of(what).timed().inherited().from_exec().in_kernel(false);
    event.open(0, -1).map_err(CountError::Hardware)
}

/// The count of an event, if it had its counter all the time.
fn whole(event: &Event) -> Result<u64, CountError> {
    let Counted { value, enabled_ns, running_ns } = event.counted().map_err(CountError::Hardware)?;
    if running_ns < enabled_ns { Err(CountError::Shared { enabled_ns, running_ns }) } else { Ok(value) }
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, CountError> {
    let failed = |source| CountError::Files { path: folder.to_owned(), source };
    let entries = fs::read_dir(folder).map_err(failed)?;
    entries.map(|entry| Ok(entry.map_err(failed)?.path())).collect()
}

fn empty(folder: &Path) -> Result<(), CountError> {
    files(folder)?.into_iter().try_for_each(|path| {
        fs::remove_file(&path).map_err(|source| CountError::Files { path: path.clone(), source })
    })
}

/// The sum of the totals of all files, or `None` without a file.
fn sum(folder: &Path) -> Result<Option<u64>, CountError> {
    let mut sum = None;
    for path in files(folder)? {
        let read = fs::read(&path).map_err(|source| CountError::Files { path: path.clone(), source })?;
        let total = total(&read).ok_or(CountError::Totals(path))?;
        sum = Some(sum.unwrap_or(0) + total);
    }
    Ok(sum)
}

/// The instructions in a file of cachegrind: the first total.
fn total(file: &[u8]) -> Option<u64> {
    let mut lines = file.rsplit(|byte| *byte == b'\n');
    let totals = lines.find_map(|line| line.strip_prefix(TOTALS.as_bytes()))?;
    std::str::from_utf8(totals).ok()?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process_duel::spawn::{Words, run};
    use crate::process_duel::tests::{busy, shell};
    use crate::process_duel::{ProcessMetric, ProcessOptions, process_duel};
    use vellum_process::SpawnError;

    /// Page faults replace instructions here: software events are opened, inherited, enabled and read in the
    /// same way. The kernel's account of a process also has its faults.
    #[test]
    fn an_event_counts_a_program_and_its_children_and_nothing_else() {
        let clock = vellum_timing::clock::Clock::best().unwrap();
        let counted = |script: &str| -> Result<(u64, u64), CountError> {
            let words = Words::of(&shell(script)).unwrap();
            let event = open(What::PageFaults)?;
            // Faults of this process must not count.
            std::hint::black_box(vec![1u8; 64 << 20]);
            let mut streams = super::super::output::Streams::open(Default::default(), None).unwrap();
            let run = run(&words, &clock, streams.ready().unwrap()).unwrap();
            Ok((whole(&event)?, run.usage.minor_faults + run.usage.major_faults))
        };
        let (alone, parent) = match counted("exit 0") {
            Ok(counted) => counted,
            Err(refused) => return vellum_skip::skip(format!("no events of software: {refused}")),
        };
        let (together, all) = counted("/bin/true; /bin/true; exit 0").unwrap();
        // The kernel's account also has faults that the kernel made itself, for the process.
        assert!(alone > 0 && alone <= parent, "{alone} of {parent}");
        assert!(together > alone && together <= all, "{together} of {all}, alone {alone}");
    }

    #[test]
    fn a_missing_processor_counter_is_explained() {
        let said = |errno| CountError::Hardware(std::io::Error::from_raw_os_error(errno)).to_string();
        assert!(said(libc::ENOENT).contains("virtual machine"), "{}", said(libc::ENOENT));
        assert!(said(libc::EACCES).contains("perf_event_paranoid to 2 or less (it is "));
        let options = ProcessOptions {
            counter: Some(Counter::Hardware),
            rounds_min: 6,
            rounds_max: 6,
            ..ProcessOptions::default()
        };
        let busy = busy();
        match process_duel(&[&shell(":"), &busy], &options) {
            // With a counter available, the duel succeeds.
            Ok(duel) => {
                let mut rounds = duel.values(ProcessMetric::Instructions, 2);
                assert!(rounds.all(|[a, _, b]| a > 0.0 && b > 2.0 * a));
            }
            Err(ProcessDuelError::Count(CountError::Hardware(source))) => {
                vellum_skip::skip(format!("no counter of instructions: {source}"));
            }
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn valgrind_counts_a_program_and_its_children() {
        let Ok(valgrind) = Counter::valgrind() else {
            return vellum_skip::skip("there is no valgrind");
        };
        let options = ProcessOptions {
            counter: Some(valgrind),
            rounds_min: 2,
            rounds_max: 2,
            warm_up: 0,
            ..ProcessOptions::default()
        };
        let busy = |turns: u32| {
            shell(&format!("/bin/sh -c 'i=0; while [ $i -lt {turns} ]; do i=$((i+1)); done'; :"))
        };
        let (small, large) = (busy(1000), busy(5000));
        let duel = process_duel(&[&small, &large], &options).unwrap();
        for [a, control, b] in duel.values(ProcessMetric::Instructions, 2) {
            // Addresses and identifiers, and with them the instructions, differ from run to run.
            assert!((control / a - 1.0).abs() < 0.02, "{control} and {a}");
            assert!(b > a * 1.5, "a child's work counts: {b} and {a}");
        }
        let series = duel.series(ProcessMetric::Instructions, "sh", 2);
        assert_eq!((series.unit, series.observations.len()), (vellum_measure::Unit::Instructions, 2));

        let failing = shell("echo the reason >&2; exit 3");
        let error = process_duel(&[&failing], &options).unwrap_err().to_string();
        assert!(error.contains("A (/bin/sh) exited with status 3 and printed: the reason"), "{error}");
    }

    #[test]
    fn a_missing_or_idle_valgrind_is_reported() {
        let options = ProcessOptions {
            counter: Some(Counter::Valgrind("/no/such/valgrind".into())),
            ..ProcessOptions::default()
        };
        let error = process_duel(&[&shell(":")], &options).unwrap_err();
        assert!(matches!(error, ProcessDuelError::Spawn(SpawnError::NotFound(_))), "{error}");
        // `/bin/true` writes no file.
        let options = ProcessOptions { counter: Some(Counter::Valgrind("/bin/true".into())), ..options };
        let error = process_duel(&[&shell(":")], &options).unwrap_err().to_string();
        assert!(error.contains("valgrind counted nothing of /bin/sh"), "{error}");
    }

    #[test]
    fn the_first_total_is_read() {
        assert_eq!(total(b"desc: x\nfn=main\n1 5\nsummary: 134129\n"), Some(134_129));
        assert_eq!(total(b"summary: 12 3 4"), Some(12));
        assert_eq!(total(b"fn=main\n1 5\n"), None);
        assert_eq!(total(b"summary: \n"), None);
    }
}
