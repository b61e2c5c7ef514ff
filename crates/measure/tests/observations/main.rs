//! Tests of the observation formats through the public interface.

mod any;
mod errors;
mod formats;
mod fuzz;

use vellum_measure::line::{Entry, LineError, OnError, Reader};

/// All entries of `input`, which has no errors.
fn entries(input: impl std::io::BufRead) -> Vec<Entry> {
    Reader::new(input, OnError::Refuse).collect::<Result<_, _>>().unwrap()
}

/// The entries of `text` when malformed lines are skipped, and the errors.
fn skipping(text: &[u8]) -> (Vec<Entry>, Vec<LineError>) {
    let mut reader = Reader::new(text, OnError::Skip);
    let entries =
        reader.by_ref().collect::<Result<_, _>>().expect("only input and output fail when lines are skipped");
    (entries, reader.skipped().errors.clone())
}
