//! One run of the command, measured.
//!
//! A [`Plan`] is made once: which file the command is, whether the library can enter it, which library. [`Plan::launch`] then
//! runs it, on Vellum or without, and hands back what was seen. The board's files are gone when it returns, whatever
//! happened.

use crate::args::Run;
use crate::library;
use crate::live::Live;
use crate::run::Failure;
use crate::working_set::{References, WorkingSet};
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use vellum_probe::{
    BoardFile, Child, Command, Ended, Image, Obstacle, Pid, Sampled, Sampler, Signals, Tree, locate,
};
use vellum_wire::BOARD_ENV;

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
    /// The library.
    pub(crate) library: PathBuf,
    /// The folder of `libgc.so.1`, if the program is to run on Vellum's collector.
    libgc: Option<PathBuf>,
    /// The program is linked with libgc's library for C++.
    needs_libgccpp: bool,
    knobs: Vec<(&'static str, OsString)>,
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
    /// What becomes descriptors 0, 1 and 2; `None` is ours.
    pub(crate) stdio: [Option<OwnedFd>; 3],
}

/// What was seen of one run.
#[derive(Debug)]
pub(crate) struct Observed {
    /// The program's process.
    pub(crate) pid: Pid,
    /// When it was started.
    pub(crate) started: SystemTime,
    /// Its end and what the kernel accounted.
    pub(crate) ended: Ended,
    /// What the sampler saw.
    pub(crate) sampled: Sampled,
    /// The counters, when it ran on Vellum.
    pub(crate) board: Option<Arc<BoardFile>>,
    /// The working set, if it was watched, or why there is none to tell of.
    pub(crate) working_set: Option<Result<WorkingSet, String>>,
}

impl Plan {
    /// Finds the program and the library.
    pub(crate) fn new(run: &Run) -> Result<Plan, Failure> {
        let program = locate(&run.command[0], std::env::var_os("PATH").as_deref())?;
        // A file that cannot be read can still be executed; nothing is known about it then.
        let image = Image::inspect(&program).ok();
        let obstacle = image.as_ref().and_then(|image| image.obstacle);
        let needs_libgccpp =
            image.is_some_and(|image| image.needs.iter().any(|name| name == library::LIBGCCPP));
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
        if let Some(store) = &run.store {
            crate::store::check(store)?;
            // The program may have gone elsewhere when it first needs the store.
            knobs.push(("VELLUM_STORE", std::path::absolute(store).unwrap_or_else(|_| store.clone()).into()));
        }
        let libgc = if run.libgc { Some(library::find_libgc()?) } else { None };
        Ok(Plan { program, argv: run.command.clone(), obstacle, library, libgc, needs_libgccpp, knobs })
    }

    /// Whether the library goes into the program's environment.
    pub(crate) fn preloads(&self) -> bool {
        !self.obstacle.is_some_and(Obstacle::forbids_preload)
    }

    /// Runs the command once and waits for its end.
    pub(crate) fn launch(&self, occasion: Occasion) -> Result<Observed, Failure> {
        let board = if occasion.on_vellum { Some(Arc::new(BoardFile::create()?)) } else { None };
        let env = self.environment(board.as_deref())?;
        let command =
            Command { program: self.program.clone(), argv: self.argv.clone(), env, stdio: occasion.stdio };
        let signals = Signals::hold()?;
        let tree = Tree::below_us();
        let started = SystemTime::now();
        let child = Child::spawn(&command, &signals)?;
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
        let ended = ended.map_err(Failure::Wait)?;
        sampled.series.finish(ended.wall, ended.usage.minor_faults, ended.usage.major_faults);
        Ok(Observed { pid, started, ended, sampled, board, working_set })
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
        edit(&mut env, BOARD_ENV, |_| board.path().into());
        // A program built with AddressSanitizer, started by ours, would otherwise refuse to run because another library is loaded before
        // its own. The library stands aside there, and the order does no harm.
        edit(&mut env, "ASAN_OPTIONS", |old| append("verify_asan_link_order=0", old));
        if let Some(folder) = &self.libgc {
            edit(&mut env, "LD_LIBRARY_PATH", |old| prepend(folder.as_os_str(), old));
            // Its `operator new` must be found before the preloaded library's, as it would be without that.
            if self.needs_libgccpp {
                let first = folder.join(library::LIBGCCPP);
                edit(&mut env, "LD_PRELOAD", |old| prepend(first.as_os_str(), old));
            }
        }
        for (name, value) in &self.knobs {
            edit(&mut env, name, |_| value.clone());
        }
        Ok(env)
    }
}

/// Changes a variable of an environment, or adds it.
pub(crate) fn edit(
    env: &mut Vec<(OsString, OsString)>,
    name: &str,
    change: impl FnOnce(Option<&OsStr>) -> OsString,
) {
    match env.iter_mut().find(|(known, _)| known == name) {
        Some((_, value)) => *value = change(Some(value)),
        None => env.push((name.into(), change(None))),
    }
}

/// `first`, then the old list, unless `first` is in it already (a run inside a run).
pub(crate) fn prepend(first: &OsStr, old: Option<&OsStr>) -> OsString {
    use std::os::unix::ffi::OsStrExt;
    let old = old.unwrap_or_default();
    let mut parts = old.as_bytes().split(|&b| b == b':' || b == b' ');
    if parts.any(|part| part == first.as_bytes()) {
        return old.into();
    }
    let mut list = first.to_os_string();
    if !old.is_empty() {
        list.push(":");
        list.push(old);
    }
    list
}

/// The old list, then `last`.
pub(crate) fn append(last: &str, old: Option<&OsStr>) -> OsString {
    let mut list = old.unwrap_or_default().to_os_string();
    if !list.is_empty() {
        list.push(":");
    }
    list.push(last);
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_keep_what_was_there() {
        let lib = OsStr::new("/v.so");
        assert_eq!(prepend(lib, None), "/v.so");
        assert_eq!(prepend(lib, Some(OsStr::new(""))), "/v.so");
        assert_eq!(prepend(lib, Some(OsStr::new("/a.so /b.so"))), "/v.so:/a.so /b.so");
        assert_eq!(prepend(lib, Some(OsStr::new("/a.so:/v.so"))), "/a.so:/v.so");
        assert_eq!(append("x=0", None), "x=0");
        assert_eq!(append("x=0", Some(OsStr::new("y=1"))), "y=1:x=0");
    }

    #[test]
    fn editing_replaces_or_adds() {
        let mut env = vec![("A".into(), "1".into())];
        edit(&mut env, "A", |old| append("2", old));
        edit(&mut env, "B", |old| append("3", old));
        assert_eq!(env, [("A".into(), "1:2".into()), ("B".into(), OsString::from("3"))]);
    }
}
