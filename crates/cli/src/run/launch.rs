//! One run of the command, measured.
//!
//! A [`Plan`] is made once: the program's file, the library, and whether the library can be preloaded into
//! the program. [`Plan::launch`] then runs the program, on Vellum or without, and returns the observations.
//! It always removes the board's files before it returns.

use super::args::Run;
use super::live::Live;
use super::store;
use super::working_set::{References, WorkingSet};
use crate::environment::{append, edit, preload_companions, prepend};
use crate::failure::Failure;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use vellum_cost::HeldFile;
use vellum_process::library;
use vellum_process::{
    BoardFile, Child, Command, Ended, Image, Obstacle, Pid, Sampled, Sampler, Signals, SpawnError, Tree,
    locate,
};
use vellum_wire::BOARD_ENV;
use vellum_wire::held::HELD_ENV;

/// How often the live line is given the chance to change.
const LIVE_TICK: Duration = Duration::from_millis(100);

/// What will be run, and how.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The file.
    pub(crate) program: PathBuf,
    /// The command as it was given.
    pub(crate) argv: Vec<OsString>,
    /// What keeps the library out of the program, if anything does.
    pub(crate) obstacle: Option<Obstacle>,
    pub(crate) library: PathBuf,
    /// The folder of `libgc.so.1`, if the program is to run on Vellum's collector.
    libgc: Option<PathBuf>,
    knobs: Vec<(&'static str, OsString)>,
    /// Bytes of frames that each process may have.
    pub(crate) frames: Option<u64>,
    /// Bytes between samples of who holds memory, if they are to be taken.
    pub(crate) heap: Option<u64>,
}

/// What is special about one run.
#[derive(Debug, Default)]
pub(crate) struct Occasion {
    /// Whether the program gets Vellum.
    pub(crate) on_vellum: bool,
    /// Whether a live line may be shown.
    pub(crate) live: bool,
    /// Whether the working set is watched.
    pub(crate) watch: bool,
    /// Whether it is run for its samples alone.
    pub(crate) must_sample: bool,
    /// Whether it is compared with a run that has no board to find its strays by.
    pub(crate) compared: bool,
    /// What becomes descriptors 0, 1 and 2; `None` is ours.
    pub(crate) stdio: [Option<OwnedFd>; 3],
}

/// What was seen of one run.
#[derive(Debug)]
pub(crate) struct Observed {
    /// The program's process.
    pub(crate) pid: Pid,
    pub(crate) started: SystemTime,
    /// Its end and what the kernel accounted.
    pub(crate) ended: Ended,
    /// What the sampler saw.
    pub(crate) sampled: Sampled,
    /// The counters, when it ran on Vellum.
    pub(crate) board: Option<Arc<BoardFile>>,
    /// The working set, if it was watched, or why there is none to tell of.
    pub(crate) working_set: Option<Result<WorkingSet, String>>,
    /// Who held memory, if that was sampled.
    pub(crate) held: Option<HeldFile>,
}

/// The file of a profile was not made or cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot make a file for the profile ({0}); make some room in /dev/shm")]
pub(crate) struct NoFile(#[source] pub(crate) std::io::Error);

/// The place of `--store` does not suit.
#[derive(Debug, thiserror::Error)]
#[error("--store {0}")]
struct NoStore(#[source] store::StoreError);

/// A file for the profile of processes that are given its path, beside the board.
fn held_file(board: &BoardFile, interval: u64) -> Result<HeldFile, Failure> {
    let directory = board.path().parent().unwrap_or(Path::new("/"));
    HeldFile::create(directory, interval).map_err(|error| Failure::of(NoFile(vellum_process::named(error))))
}

/// What was made, or else a word of why the program runs without it; an error where it `must` not.
fn or_without<T>(what: &str, must: bool, made: Result<T, Failure>) -> Result<Option<T>, Failure> {
    if must {
        return made.map(Some);
    }
    Ok(made.map_err(|failure| say!("vellum: error: {failure}; the program runs without {what}")).ok())
}

impl Plan {
    /// Finds the program and the library.
    pub(crate) fn new(run: &Run) -> Result<Plan, Failure> {
        let program = locate(&run.command[0], std::env::var_os("PATH").as_deref())?;
        // A file that cannot be read can still be executed; nothing is known about it then.
        let image = Image::inspect(&program).ok();
        let obstacle = image.and_then(|image| image.obstacle);
        let library = library::find(run.lib.as_deref())?;
        let mut knobs = Vec::new();
        if let Some(huge) = run.huge {
            knobs.push(("VELLUM_HUGE", huge.name().into()));
        }
        if let Some(decay) = run.decay {
            knobs.push(("VELLUM_DECAY_MS", decay.to_string().into()));
        }
        if run.no_mmap {
            knobs.push(("VELLUM_MMAP", "off".into()));
        }
        if let Some(frames) = run.frames {
            knobs.push(("VELLUM_FRAMES", frames.to_string().into()));
        }
        if let Some(path) = &run.store {
            store::check(path).map_err(|error| Failure::of(NoStore(error)))?;
            // The program may have gone elsewhere when it first needs the store.
            knobs.push(("VELLUM_STORE", std::path::absolute(path).unwrap_or_else(|_| path.clone()).into()));
        }
        let libgc = if run.libgc { Some(library::find_libgc()?) } else { None };
        let (argv, frames, heap) = (run.command.clone(), run.frames, run.heap);
        Ok(Plan { program, argv, obstacle, library, libgc, knobs, frames, heap })
    }

    /// Whether the library goes into the program's environment.
    pub(crate) fn preloads(&self) -> bool {
        !self.obstacle.is_some_and(Obstacle::forbids_preload)
    }

    /// Runs the command once and waits for its end.
    pub(crate) fn launch(&self, occasion: Occasion) -> Result<Observed, Failure> {
        // From here on a file beyond a limit is an error.
        let signals = Signals::hold()?;
        let mut board = None;
        if occasion.on_vellum {
            board = or_without("Vellum", occasion.must_sample, BoardFile::create().map_err(Failure::from))?
                .map(Arc::new);
        }
        let held = match board.as_deref().zip(self.heap) {
            Some((board, interval)) => {
                or_without("samples of its blocks", occasion.must_sample, held_file(board, interval))?
            }
            None => None,
        };
        let mut env = self.environment(board.as_deref())?;
        if let Some(held) = held.as_ref().filter(|_| self.preloads()) {
            edit(&mut env, HELD_ENV, |_| held.path().into());
        }
        let command =
            Command { program: self.program.clone(), argv: self.argv.clone(), env, stdio: occasion.stdio };
        let mut tree = Tree::below_us(board.as_deref().filter(|_| !occasion.compared));
        let started = SystemTime::now();
        let child = match Child::spawn(&command, &signals) {
            // The tree's files may be more than the limit on open files (ulimit -n) leaves.
            Err(SpawnError::System { .. }) if tree.take().is_some() => Child::spawn(&command, &signals)?,
            child => child?,
        };
        let pid = child.pid();
        let mut live = if occasion.live { Live::on_stderr() } else { None };
        let count_writes = live.as_ref().is_some_and(Live::wants_writes);
        let sampler = Sampler::start(tree, pid, child.started(), board.clone(), count_writes);
        let references = occasion.watch.then(|| References::start(pid));
        let tick = live.is_some().then_some(LIVE_TICK);
        let ended = child.wait(tick, |what| {
            if let Some(live) = &mut live {
                live.update(what, &sampler.now());
            }
        });
        // From here on nobody may be kept from ending us, and nothing of ours may be left behind.
        if let Some(board) = &board {
            board.remove();
        }
        drop(live);
        let mut sampled = sampler.stop();
        drop(signals);
        let working_set = references.map(References::stop);
        let mut ended = ended.map_err(Failure::Wait)?;
        ended.usage += sampled.strays.1;
        sampled.series.finish(ended.wall, ended.usage.minor_faults, ended.usage.major_faults);
        Ok(Observed { pid, started, ended, sampled, board, working_set, held })
    }

    /// Our environment, and what makes the program run on Vellum.
    pub(crate) fn environment(
        &self,
        board: Option<&BoardFile>,
    ) -> Result<Vec<(OsString, OsString)>, Failure> {
        let mut env: Vec<(OsString, OsString)> = std::env::vars_os().collect();
        let Some(board) = board else { return Ok(env) };
        if !self.preloads() {
            return Ok(env);
        }
        let library = board.preloadable(&self.library).map_err(Failure::Link)?;
        edit(&mut env, "LD_PRELOAD", |old| prepend(library.as_os_str(), old));
        preload_companions(&mut env);
        edit(&mut env, BOARD_ENV, |_| board.path().into());
        // A program built with AddressSanitizer, started by ours, would refuse to run when another library is
        // loaded before its own. The library passes all calls through there, so the order does no harm.
        edit(&mut env, "ASAN_OPTIONS", |old| append("verify_asan_link_order=0", old));
        if let Some(folder) = &self.libgc {
            edit(&mut env, "LD_LIBRARY_PATH", |old| prepend(folder.as_os_str(), old));
        }
        for (name, value) in &self.knobs {
            edit(&mut env, name, |_| value.clone());
        }
        Ok(env)
    }
}
