//! The workshop, which compiles the clients (benchmark programs) from their C sources.
//!
//! The C files of `lab/papers/clients/` are in this executable, so that an installed `vellum` needs only a C
//! compiler. They are compiled into a temporary folder, once for each heap, and removed at the end.
//!
//! ```text
//! clients/*.c ─┬─ cc -DHEAP_BDW    -lgc         ──▶ libgc
//!              ├─ cc -DHEAP_VELLUM libvellum.so ──▶ mark_sweep, mostly_copying, appel: one executable
//!              └─ cc -DHEAP_MALLOC              ──▶ malloc
//! ```
//!
//! To detect a missing heap (no `libgc-dev`, a library without the collector, a plan it lacks), the smallest
//! client is built and run once. The report lists missing heaps with remedies; their columns stay empty.

use clap::ValueEnum;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;
use vellum_campaign::{Arm, Launch, Missing, quietly};
use vellum_process::library::SONAME;

macro_rules! sources {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../clients/", $name)))),*]
    };
}

/// All files of the clients.
const SOURCES: &[(&str, &str)] = sources!(
    "heap.h",
    "heap_bdw.h",
    "heap_malloc.h",
    "heap_vellum.h",
    "checksum.c",
    "kb.c",
    "lexgen.c",
    "life.c",
    "logic.c",
    "mergesort.c",
    "pia.c",
    "groebner.c",
    "compiler.c",
    "compiler_made.h",
    "compiler_text.h",
    "compiler_front.h",
    "compiler_back.h",
    "compiler_check.h",
    "sort.c",
    "primes.c",
    "short.c",
    "trees.c",
    "mark.c",
    "fall.c",
);
/// The interface of Vellum's collector.
const HEADER: (&str, &str) = ("vellum_gc.h", include_str!("../../../include/vellum_gc.h"));

/// The paper's switches, and the language of our clients.
const SWITCHES: [&str; 3] = ["-std=gnu11", "-O2", "-g"];
/// The client that shows whether a heap works, and its words: a few milliseconds.
const TRIAL: (&str, &[&str]) = ("mergesort", &["scale=1", "items=100"]);
/// The longest time of that client.
const TRIAL_ALLOWED: Duration = Duration::from_secs(60);

/// The manager of the heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Collector {
    /// None: malloc, and nothing is freed.
    Malloc,
    /// Debian's Boehm-Demers-Weiser collector.
    Libgc,
    /// Vellum's collector, with this plan.
    Vellum(Plan),
}

/// A plan of Vellum's collector.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Plan {
    /// Generations: old, new and free regions, as in the paper of 1992.
    #[default]
    Appel,
    /// Objects in sparse blocks move, if only typed objects refer to them.
    MostlyCopying,
    /// Objects never move.
    MarkSweep,
}

impl Collector {
    /// The compared collectors, the peer first.
    pub const COMPARED: [Self; 3] =
        [Self::Libgc, Self::Vellum(Plan::MarkSweep), Self::Vellum(Plan::MostlyCopying)];

    /// Its name in tables and as an arm.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malloc => "malloc",
            Self::Libgc => "libgc",
            Self::Vellum(Plan::MarkSweep) => "mark_sweep",
            Self::Vellum(Plan::MostlyCopying) => "mostly_copying",
            Self::Vellum(Plan::Appel) => "appel",
        }
    }

    const fn define(self) -> &'static str {
        match self {
            Self::Malloc => "-DHEAP_MALLOC",
            Self::Libgc => "-DHEAP_BDW",
            Self::Vellum(_) => "-DHEAP_VELLUM",
        }
    }

    const fn cure(self) -> &'static str {
        match self {
            Self::Malloc => "apt-get install gcc",
            Self::Libgc => "apt-get install gcc libgc-dev",
            Self::Vellum(_) => "./build, for a libvellum.so that has it",
        }
    }
}

/// A variant of a client's build, besides its heap. Each is a switch of `lab/papers/clients/heap.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Build {
    /// The normal build.
    Plain,
    /// Every object has one more word.
    Header,
    /// All objects are untyped and none is atomic.
    Untyped,
    /// Objects are counted; times are not valid.
    Profile,
    /// libgc called by `GC_MALLOC` instead of inlined allocation.
    Call,
}

impl Build {
    const fn define(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Header => Some("-DHEAP_HEADER"),
            Self::Untyped => Some("-DHEAP_UNTYPED"),
            Self::Profile => Some("-DHEAP_PROFILE"),
            Self::Call => Some("-DHEAP_CALL"),
        }
    }
}

/// The clients' sources could not be written.
#[derive(Debug, thiserror::Error)]
#[error("writing the clients' sources to {path}: {source}: is the temporary folder writable (TMPDIR)?")]
pub struct WorkshopError {
    /// The file or folder.
    pub path: PathBuf,
    /// The system's reason.
    pub source: std::io::Error,
}

/// The folder in which clients are compiled.
#[derive(Debug)]
pub struct Workshop {
    folder: TempDir,
    library: PathBuf,
    /// Finished builds: the program, or the reason why it is missing.
    built: BTreeMap<(String, &'static str, Build), Result<PathBuf, String>>,
}

impl Workshop {
    /// Writes the sources into a temporary folder. `library` is Vellum's, with which clients are linked; it
    /// may be missing.
    ///
    /// # Errors
    /// If the folder or a file cannot be written.
    pub fn new(library: &Path) -> Result<Self, WorkshopError> {
        let folder = tempfile::Builder::new().prefix("vellum-clients-").tempdir();
        let folder = folder.map_err(|source| WorkshopError { path: std::env::temp_dir(), source })?;
        for (name, text) in SOURCES.iter().chain([&HEADER]) {
            let path = folder.path().join(name);
            std::fs::write(&path, text).map_err(|source| WorkshopError { path, source })?;
        }
        // Programs find the library by a link with the name that the loader searches.
        let path = folder.path().join(SONAME);
        let target = library.canonicalize().unwrap_or_else(|_| library.to_path_buf());
        symlink(target, &path).map_err(|source| WorkshopError { path, source })?;
        Ok(Self { folder, library: library.to_path_buf(), built: BTreeMap::new() })
    }

    /// The collectors found here, and the missing ones with the remedy.
    pub fn discover(&mut self) -> (Vec<Collector>, Vec<Missing>) {
        let (mut here, mut missing) = (Vec::new(), Vec::new());
        for collector in Collector::COMPARED {
            let tried = self
                .launch(TRIAL.0, collector, Build::Plain, TRIAL.1)
                .and_then(|launch| launch.run(TRIAL_ALLOWED).map_err(|ended| ended.to_string()));
            match tried {
                Ok(_) => here.push(collector),
                Err(why) => {
                    let cure = format!("{}; {why}", collector.cure());
                    missing.push(Missing { name: collector.name(), cure });
                }
            }
        }
        (here, missing)
    }

    /// A client's run on a heap; the client is compiled if needed.
    ///
    /// # Errors
    /// The reason why it cannot be compiled, for the user.
    pub fn launch(
        &mut self,
        client: &str,
        collector: Collector,
        build: Build,
        words: &[&str],
    ) -> Result<Launch, String> {
        let program = self.program(client, collector, build)?;
        let plan = match collector {
            Collector::Vellum(_) => Some(format!("plan={}", collector.name())),
            Collector::Malloc | Collector::Libgc => None,
        };
        let args = words.iter().map(OsString::from).chain(plan.map(OsString::from));
        Ok(Launch {
            program,
            args: args.collect(),
            env: Vec::new(),
            folder: None,
            preload: None,
            reports: true,
        })
    }

    /// The same as an arm; `None` if it cannot be compiled.
    pub fn arm(
        &mut self,
        label: &str,
        client: &str,
        collector: Collector,
        build: Build,
        words: &[&str],
    ) -> Option<Arm> {
        let launch = self.launch(client, collector, build, words).ok()?;
        Some(Arm { label: label.to_owned(), launch })
    }

    fn program(&mut self, client: &str, collector: Collector, build: Build) -> Result<PathBuf, String> {
        let key = (client.to_owned(), collector.define(), build);
        if let Some(known) = self.built.get(&key) {
            return known.clone();
        }
        let result = self.compile(client, collector, build);
        self.built.insert(key, result.clone());
        result
    }

    fn compile(&self, client: &str, collector: Collector, build: Build) -> Result<PathBuf, String> {
        let folder = self.folder.path();
        let out = folder.join(format!("{client}{}-{build:?}", collector.define()));
        let mut command = Command::new("cc");
        command.args(SWITCHES).arg(collector.define()).args(build.define()).arg("-I").arg(folder);
        if collector == Collector::Malloc {
            // Otherwise the compiler removes allocations of objects that are never read.
            command.arg("-fno-builtin-malloc");
        }
        command.arg("-o").arg(&out).arg(folder.join(client).with_extension("c"));
        match collector {
            Collector::Malloc => {}
            Collector::Libgc => {
                command.arg("-lgc");
            }
            Collector::Vellum(_) => {
                if !self.library.is_file() {
                    return Err(format!("{} is not there", self.library.display()));
                }
                let mut path = OsString::from("-Wl,-rpath,");
                path.push(folder);
                command.arg(&self.library).arg(path);
            }
        }
        quietly(command.arg("-lm")).map(|()| out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_heaps_are_listed_with_their_remedy() {
        let mut workshop = Workshop::new(Path::new("/nonexistent/libvellum.so")).unwrap();
        let (_, missing) = workshop.discover();
        let plans: Vec<_> =
            missing.iter().filter(|one| one.cure.contains("libvellum.so is not there")).collect();
        assert_eq!(plans.len(), 2, "{missing:?}");
        let folder = workshop.folder.path().to_path_buf();
        drop(workshop);
        assert!(!folder.exists(), "the clients are still in {}", folder.display());
    }

    #[test]
    fn every_client_builds_and_checks_itself_on_malloc() {
        let mut workshop = Workshop::new(Path::new("/nonexistent/libvellum.so")).unwrap();
        for (file, _) in SOURCES.iter().filter(|(file, _)| file.ends_with(".c")) {
            let client = file.trim_end_matches(".c");
            let words = ["scale=1"];
            let launch = match workshop.launch(client, Collector::Malloc, Build::Profile, &words) {
                Ok(launch) => launch,
                Err(why) => {
                    vellum_skip::skip(format_args!("the clients cannot be compiled here: {why}"));
                    return;
                }
            };
            let metrics = launch.run(TRIAL_ALLOWED).unwrap_or_else(|ended| panic!("{client}: {ended}"));
            assert!(metrics.get("checksum").is_some_and(|sum| sum > 0.0), "{client}");
            let sizes = ["objects_1", "objects_2", "objects_3", "objects_4"];
            assert!(sizes.iter().filter_map(|name| metrics.get(name)).sum::<f64>() > 0.0, "{client}");
        }
    }
}
