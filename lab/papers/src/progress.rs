//! The progress of experiments, for the bar on the terminal.

/// The progress of a run.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// The experiment's name.
    pub experiment: &'a str,
    /// Finished steps of this part: processes, or series.
    pub done: usize,
    /// All steps of this part.
    pub total: usize,
    /// The current step.
    pub what: &'a str,
}
