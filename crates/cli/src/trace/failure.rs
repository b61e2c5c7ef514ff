//! The errors of `vellum trace`.

use crate::failure::Failure;
use std::path::PathBuf;
use vellum_report::plot::PlotError;
use vellum_workset::trace::TraceError;

#[derive(Debug, thiserror::Error)]
pub(super) enum TraceFailure {
    #[error("trace: cannot open {}: {source}", .path.display())]
    Open { path: PathBuf, source: std::io::Error },
    /// The trace could not be read, or a line was rejected.
    #[error("trace: {file}: {source}")]
    Read { file: String, source: TraceError },
    /// The trace has no references, or spans no time.
    #[error(
        "trace: {file} holds no reference string ({references} references in {ticks} ticks); record one with `valgrind \
        --tool=lackey --trace-mem=yes --log-file=FILE PROGRAM`"
    )]
    Nothing { file: String, references: u64, ticks: u64 },
    /// The picture could not be drawn.
    #[error(transparent)]
    Plot(#[from] PlotError),
}

impl From<TraceFailure> for Failure {
    fn from(failure: TraceFailure) -> Failure {
        Failure::of(failure)
    }
}
