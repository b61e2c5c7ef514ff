//! The worker: this executable, started again under the allocator to be measured.
//!
//! It first checks that malloc is the peer's. The dynamic linker only warns about a preloaded library that
//! it cannot load; the worker would then measure glibc under the peer's name.

use crate::work::{Failure, Params, run};
use vellum_campaign::{OtherMalloc, check_malloc};

/// The hidden command of the executable that runs a workload: `work NAME [name=number]...`.
pub const COMMAND: &str = "work";

/// Why a worker has no figures.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The workload itself failed.
    #[error(transparent)]
    Work(#[from] Failure),
    /// malloc comes from another library.
    #[error(transparent)]
    OtherMalloc(#[from] OtherMalloc),
}

/// Runs the workload with this name and returns its figures as one line.
///
/// # Errors
/// [`WorkerError`] if malloc is not the expected one or the workload fails.
pub fn work<S: AsRef<str>>(name: &str, words: &[S]) -> Result<String, WorkerError> {
    check_malloc()?;
    let metrics = run(name, &Params::parse(words)?)?;
    Ok(serde_json::to_string(&metrics).expect("a map of finite numbers is JSON"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_one_line_of_json() {
        let line = work("pair", &["bytes=4096", "pairs=2", "groups=1"]).unwrap();
        assert!(line.starts_with('{') && line.contains("pair_ns") && !line.contains('\n'));
        assert!(matches!(work::<&str>("nonesuch", &[]), Err(WorkerError::Work(Failure::Unknown(_)))));
    }
}
