//! Runs the command of `vellum run` once, and measures it.
//!
//! A [`Plan`] has the program's file, Vellum's library, and whether the library can be preloaded into the
//! program. [`Plan::launch`] runs the program, on Vellum or without, and returns the observations. The
//! program's counters are in a temporary file (the board), which is always removed before `launch` returns.

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

/// The interval between updates of the live line.
const LIVE_TICK: Duration = Duration::from_millis(100);

/// The program to run, and the settings for it.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) program: PathBuf,
    /// The command as given by the user.
    pub(crate) argv: Vec<OsString>,
    /// The obstacle to loading the library into the program, if any.
    pub(crate) obstacle: Option<Obstacle>,
    pub(crate) library: PathBuf,
    /// The folder of `libgc.so.1`, if the program runs on Vellum's collector.
    libgc: Option<PathBuf>,
    knobs: Vec<(&'static str, OsString)>,
    /// The frames of each process, in bytes.
    pub(crate) frames: Option<u64>,
    /// Bytes between heap samples, if samples are taken.
    pub(crate) heap: Option<u64>,
}

#[derive(Debug, Default)]
pub(crate) struct Occasion {
    pub(crate) on_vellum: bool,
    /// A live line may be shown.
    pub(crate) live: bool,
    /// The working set is measured.
    pub(crate) watch: bool,
    /// The run is useless without samples.
    pub(crate) must_sample: bool,
    /// The run is compared with runs without a board, so its board is not used to find stray processes.
    pub(crate) compared: bool,
    /// The descriptors 0, 1 and 2; `None` inherits this command's.
    pub(crate) stdio: [Option<OwnedFd>; 3],
}

#[derive(Debug)]
pub(crate) struct Observed {
    pub(crate) pid: Pid,
    pub(crate) started: SystemTime,
    /// The exit status and the resource usage.
    pub(crate) ended: Ended,
    pub(crate) sampled: Sampled,
    /// The counters, if it ran on Vellum.
    pub(crate) board: Option<Arc<BoardFile>>,
    /// The working set, if it was measured, or the reason why it is missing.
    pub(crate) working_set: Option<Result<WorkingSet, String>>,
    /// The holders of memory, if they were sampled.
    pub(crate) held: Option<HeldFile>,
}

/// Creates the profile's file beside the board; the processes receive its path.
fn held_file(board: &BoardFile, interval: u64) -> Result<HeldFile, Failure> {
    let directory = board.path().parent().unwrap_or(Path::new("/"));
    HeldFile::create(directory, interval).map_err(|error| Failure::profile(vellum_process::named(error)))
}

/// `made`, or `None` with a message that the program runs without `what`; an error if `must` is set.
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
        // An unreadable file can still be executed; its properties are then unknown.
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
            store::check(path).map_err(|why| Failure::because(format!("--store {why}")))?;
            // The program may have changed its directory before it opens the store.
            knobs.push(("VELLUM_STORE", std::path::absolute(path).unwrap_or_else(|_| path.clone()).into()));
        }
        let libgc = if run.libgc { Some(library::find_libgc()?) } else { None };
        let (argv, frames, heap) = (run.command.clone(), run.frames, run.heap);
        Ok(Plan { program, argv, obstacle, library, libgc, knobs, frames, heap })
    }

    /// Returns whether the library is preloaded.
    pub(crate) fn preloads(&self) -> bool {
        !self.obstacle.is_some_and(Obstacle::forbids_preload)
    }

    /// Runs the command once and waits for its end.
    pub(crate) fn launch(&self, occasion: Occasion) -> Result<Observed, Failure> {
        // From here on a file beyond a limit is an error.
        let signals = Signals::block()?;
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
            // The files of `tree` may exceed the limit on open files (ulimit -n).
            Err(SpawnError::System { .. }) if tree.take().is_some() => Child::spawn(&command, &signals)?,
            child => child?,
        };
        let pid = child.pid();
        let mut live = if occasion.live { Live::on_stderr() } else { None };
        let count_writes = live.as_ref().is_some_and(|live| live.shared);
        let sampler = Sampler::start(tree, pid, child.started(), board.clone(), count_writes);
        let references = occasion.watch.then(|| References::start(pid));
        let tick = live.is_some().then_some(LIVE_TICK);
        let ended = child.wait(tick, |what| {
            if let Some(live) = &mut live {
                live.update(what, &sampler.now());
            }
        });
        // From here on a signal ends this command, so its files must be removed now.
        if let Some(board) = &board {
            board.remove();
        }
        drop(live);
        let mut sampled = sampler.stop();
        drop(signals);
        let working_set = references.map(References::stop);
        let mut ended = ended.map_err(Failure::wait)?;
        ended.usage += sampled.strays.1;
        sampled.series.finish(ended.wall, ended.usage.minor_faults, ended.usage.major_faults);
        Ok(Observed { pid, started, ended, sampled, board, working_set, held })
    }

    /// This process's environment, with the variables that make the program run on Vellum.
    pub(crate) fn environment(
        &self,
        board: Option<&BoardFile>,
    ) -> Result<Vec<(OsString, OsString)>, Failure> {
        let mut env: Vec<(OsString, OsString)> = std::env::vars_os().collect();
        let Some(board) = board else { return Ok(env) };
        if !self.preloads() {
            return Ok(env);
        }
        let library = board.preloadable(&self.library).map_err(Failure::link)?;
        edit(&mut env, "LD_PRELOAD", |old| prepend(library.as_os_str(), old));
        preload_companions(&mut env);
        edit(&mut env, BOARD_ENV, |_| board.path().into());
        // A child program built with AddressSanitizer would refuse to run when another library is loaded
        // before its own. Vellum forwards all calls there, so the order is harmless.
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
