//! The matrix: many of Debian's programs, each run plain and on Vellum, with their outputs compared.
//!
//! `programs.toml` lists the programs, a row for each: Debian packages, a shell script with real work for
//! the program, and filters for output that differs from run to run. Each row runs in these modes:
//!
//! | mode | how |
//! | --- | --- |
//! | plain | without Vellum, twice: differences between these two are not Vellum's, and are reported |
//! | preloaded | `LD_PRELOAD=libvellum.so` |
//! | run | under `vellum run` |
//! | frames | under `vellum run --frames 16M`, if the row requests it |
//! | libgc | under `vellum run --libgc`, if the row requests it |
//!
//! Standard output, standard error and exit status must be equal in every mode. A mode that differs once
//! counts as different. It runs again only to count how often it differs.
//!
//! Every run begins in a fresh copy of the row's prepared folder, under the same path. The environment is
//! the same but for the variables that start Vellum. A row has a deadline. Processes that a row leaves
//! running are found by a mark in their environment, and ended.
//!
//! | module | contents |
//! | --- | --- |
//! | [`list`] | the rows, from TOML |
//! | [`exec`] | one run of one row in one mode |
//! | [`judge`] | all modes of one row, compared |
//! | [`table`] | the results as a table and as JSON |
//! | [`install`] | installs missing packages |

pub mod exec;
pub mod install;
pub mod judge;
pub mod list;
pub mod table;

use judge::Judged;
use list::Row;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use vellum_conformance::library::{command, library};

/// Why the matrix could not be run.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum Error {
    /// A file or folder of the matrix could not be used.
    #[error("{what} {}: {cause}", path.display())]
    File { what: &'static str, path: PathBuf, cause: std::io::Error },
    /// The list of programs cannot be read.
    #[error("the list of programs: {0}")]
    List(#[from] toml::de::Error),
    /// A filter is no regular expression.
    #[error("a filter of {row}: {cause}")]
    Filter { row: String, cause: regex::Error },
    /// Only root can install packages.
    #[error("only root can install packages")]
    NotRoot,
}

impl Error {
    pub(crate) fn file(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.to_path_buf();
        move |cause| Error::File { what, path, cause }
    }
}

/// The rows to run, and how.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Only rows marked as fast, with fewer repetitions.
    pub fast: bool,
    /// Only rows with one of these names.
    pub only: Vec<String>,
    /// Number of runs of each mode, instead of the rows' numbers.
    pub runs: Option<u32>,
    /// Number of rows run at the same time.
    pub jobs: usize,
    /// The folder for the outputs that differ.
    pub out: PathBuf,
}

/// The installation under test, copied to a folder that every user may read.
#[derive(Debug)]
pub struct Installed {
    /// `libvellum.so`.
    pub library: PathBuf,
    /// `vellum`, if it is built.
    pub command: Option<PathBuf>,
    /// Whether the folder of `libgc.so.1` is beside the library.
    pub libgc: bool,
}

impl Installed {
    /// Copies the built files into `folder`, so that programs of any user can load them, and a build during
    /// the run changes nothing.
    ///
    /// # Errors
    /// If a file cannot be copied.
    pub fn copied(folder: &Path) -> Result<Installed, Error> {
        let built = library();
        let copy = |from: &Path| {
            let to = folder.join(from.file_name().unwrap_or_default());
            std::fs::copy(from, &to).map_err(Error::file("copying", from)).map(|_| to)
        };
        let libgc = folder.join("libgc");
        std::fs::create_dir_all(&libgc).map_err(Error::file("making", &libgc))?;
        let mut collectors = 0;
        for name in ["libgc.so.1", "libgccpp.so.1"] {
            let from = built.with_file_name("libgc").join(name);
            if from.is_file() {
                std::fs::copy(&from, libgc.join(name)).map_err(Error::file("copying", &from))?;
                collectors += 1;
            }
        }
        // In the build folder it is a link, whose contents are copied.
        let platform = built.with_file_name("platform");
        if platform.is_dir() {
            let done = std::process::Command::new("cp")
                .arg("-a")
                .args([platform.canonicalize().as_deref().unwrap_or(&platform), folder])
                .status();
            let done = done.and_then(|status| {
                if status.success() { Ok(()) } else { Err(std::io::Error::other("cp failed")) }
            });
            done.map_err(Error::file("copying", &platform))?;
        }
        let command = command().map(|command| copy(&command)).transpose()?;
        Ok(Installed { library: copy(built)?, command, libgc: collectors > 0 })
    }
}

/// Runs the rows that `options` choose; `done` is called after each row, with the number of rows.
///
/// # Errors
/// If the matrix itself fails. A row that differs is a result.
pub fn run(options: &Options, done: &(dyn Fn(&Judged, usize) + Sync)) -> Result<Vec<Judged>, Error> {
    let rows: Vec<Row> = list::rows()?.into_iter().filter(|row| chosen(row, options)).collect();
    let place = tempfile::Builder::new().prefix("vellum-matrix-").tempdir().map_err(|cause| Error::File {
        what: "making",
        path: std::env::temp_dir(),
        cause,
    })?;
    open_to_all(place.path())?;
    let installed = Installed::copied(place.path())?;
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let total = rows.len();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..options.jobs.max(1))
            .map(|_| {
                scope.spawn(|| -> Result<(), Error> {
                    loop {
                        let index = next.fetch_add(1, Relaxed);
                        let Some(row) = rows.get(index) else { return Ok(()) };
                        let folder = place.path().join(&row.name);
                        let judged = judge::judge(row, &installed, &folder, options)?;
                        done(&judged, total);
                        results.lock().expect("no worker panics").push((index, judged));
                    }
                })
            })
            .collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("no worker panics"))
    })?;
    let mut results = results.into_inner().expect("no worker panics");
    results.sort_by_key(|(index, _)| *index);
    Ok(results.into_iter().map(|(_, judged)| judged).collect())
}

fn chosen(row: &Row, options: &Options) -> bool {
    let named = options.only.is_empty() || options.only.contains(&row.name);
    named && (!options.fast || row.fast)
}

/// Lets every user read `folder`, since programs change their user.
fn open_to_all(folder: &Path) -> Result<(), Error> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755))
        .map_err(Error::file("opening", folder))
}
