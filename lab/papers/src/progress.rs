//! The progress of experiments, for the bar on the terminal.

/// How far the run is.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// The experiment's name.
    pub experiment: &'a str,
    /// Steps of this part that are done: processes, or series.
    pub done: usize,
    /// Steps in all of this part.
    pub total: usize,
    /// What runs now.
    pub what: &'a str,
}
