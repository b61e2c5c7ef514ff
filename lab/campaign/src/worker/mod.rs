//! The parts that all worker processes share: parameters, errors, and helpers of several kinds of work.
//!
//! A worker is the benchmark's own executable, started again under the allocator to be measured. Its tables
//! are outside every malloc ([`area`]), and the compiler cannot remove its calls of malloc ([`raw`]).

pub mod area;
pub mod batch;
pub mod meter;
pub mod raw;

use crate::{Metrics, OtherMalloc, check_malloc};
use area::{Area, touch};
use std::collections::BTreeMap;

/// A worker's parameters: words of the form `name=value`.
#[derive(Debug, Clone, Default)]
pub struct Params(BTreeMap<String, String>);

/// Why a worker has no figures.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum WorkError {
    /// There is no such work.
    #[error("there is no work called {0:?}")]
    Unknown(String),
    /// A word that is not `name=value`.
    #[error("{0:?} is not a parameter of the form name=value")]
    Word(String),
    /// A parameter is absent or has an invalid value.
    #[error("the parameter {name} is {value:?}, which this work cannot use")]
    Value {
        name: &'static str,
        /// The value; empty if absent.
        value: String,
    },
    /// malloc comes from another library.
    #[error(transparent)]
    OtherMalloc(#[from] OtherMalloc),
    /// A request for memory failed.
    #[error(
        "{call} of {bytes} bytes failed: this machine or a limit has too little memory for the experiment"
    )]
    Memory { call: &'static str, bytes: usize },
    /// The preloaded library lacks a function that the work measures.
    #[error("the preloaded allocator has no {0}: only Vellum brings it")]
    Lacks(&'static str),
    /// Memory does not have the contents that were written.
    #[error("{what} holds {found:#x} instead of {expected:#x}: memory was damaged")]
    Damaged { what: String, found: u64, expected: u64 },
    /// A tool or a measurement failed.
    #[error("{what}: {why}")]
    Failed { what: String, why: String },
    /// The result is wrong.
    #[error("{workload}: {what}: the memory did not do what the allocator promised")]
    Wrong { workload: &'static str, what: String },
}

impl Params {
    /// Parses words.
    ///
    /// # Errors
    /// [`WorkError::Word`] for a word of another form.
    pub fn parse<S: AsRef<str>>(words: &[S]) -> Result<Self, WorkError> {
        let pair = |word: &S| {
            let pair = word.as_ref().split_once('=').filter(|(name, _)| !name.is_empty());
            let (name, value) = pair.ok_or_else(|| WorkError::Word(word.as_ref().to_owned()))?;
            Ok((name.to_owned(), value.to_owned()))
        };
        words.iter().map(pair).collect::<Result<_, _>>().map(Self)
    }

    /// The value of a parameter; empty if absent.
    #[must_use]
    pub fn word(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// The parameter as a number.
    ///
    /// # Errors
    /// [`WorkError::Value`] if it is absent or no number.
    pub fn number(&self, name: &'static str) -> Result<usize, WorkError> {
        self.word(name).parse().map_err(|_| self.refused(name))
    }

    /// The parameter as a number, or `default` if it is absent.
    ///
    /// # Panics
    /// If it is no number: that ends the worker.
    #[must_use]
    pub fn get(&self, name: &str, default: u64) -> u64 {
        let number = |value: &String| {
            value.parse().unwrap_or_else(|_| panic!("the parameter {name} is {value:?}, not a number"))
        };
        self.0.get(name).map_or(default, number)
    }

    /// The same for a size.
    #[must_use]
    pub fn size(&self, name: &str, default: usize) -> usize {
        self.get(name, default as u64) as usize
    }

    /// The seed of random choices.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.get("seed", 1)
    }

    /// The error for this parameter's value.
    #[must_use]
    pub fn refused(&self, name: &'static str) -> WorkError {
        WorkError::Value { name, value: self.word(name).to_owned() }
    }
}

/// A kind of work.
pub type Work = fn(&Params) -> Result<Metrics, WorkError>;

/// Does the work called `name` in this process, and returns its figures as one line.
///
/// # Errors
/// [`WorkError`] if malloc is not the expected one, there is no such work, or the work fails.
///
/// # Panics
/// Never: figures are finite numbers.
pub fn work<S: AsRef<str>>(
    works: impl IntoIterator<Item = (&'static str, Work)>,
    name: &str,
    words: &[S],
) -> Result<String, WorkError> {
    check_malloc()?;
    let found = works.into_iter().find(|(known, _)| *known == name);
    let (_, work) = found.ok_or_else(|| WorkError::Unknown(name.to_owned()))?;
    let metrics = work(&Params::parse(words)?)?;
    Ok(serde_json::to_string(&metrics).expect("a map of finite numbers is JSON"))
}

/// Makes panics print one line, which the campaign repeats as the reason for a missing figure.
pub fn say_panics_in_a_line() {
    std::panic::set_hook(Box::new(|panic| eprintln!("{}", panic.payload_as_str().unwrap_or("panicked"))));
}

/// The median of durations, which are sorted in place.
#[must_use]
pub fn middle(spent: &mut [u64]) -> f64 {
    spent.sort_unstable();
    let (low, high) = (spent[(spent.len() - 1) / 2], spent[spent.len() / 2]);
    (low as f64 + high as f64) / 2.0
}

/// Makes the host of a virtual machine back memory, by touching and freeing it: `bytes` in small and
/// `huge_bytes` in huge frames.
///
/// # Errors
/// Never.
pub fn back(params: &Params) -> Result<Metrics, WorkError> {
    let mut metrics = Metrics::new();
    for (name, advice) in [("bytes", libc::MADV_NOHUGEPAGE), ("huge_bytes", libc::MADV_HUGEPAGE)] {
        let bytes = params.size(name, 0);
        let mut area = Area::<u8>::untouched(bytes);
        // SAFETY: advice about the area's own mapping. If the kernel refuses it, all frames are small.
        unsafe { libc::madvise(area.as_mut_ptr().cast(), bytes, advice) };
        // SAFETY: the area has `bytes` bytes.
        unsafe { touch(area.as_mut_ptr(), bytes) };
        metrics.set(name, bytes as f64);
    }
    Ok(metrics)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_parameters_or_errors() {
        let params = Params::parse(&["bytes=4096", "method=paged"]).unwrap();
        assert_eq!((params.number("bytes").unwrap(), params.get("bytes", 1)), (4096, 4096));
        assert_eq!((params.word("method"), params.get("absent", 5)), ("paged", 5));
        assert!(matches!(params.number("method"), Err(WorkError::Value { name: "method", .. })));
        assert!(matches!(params.number("absent"), Err(WorkError::Value { .. })));
        for bad in ["alone", "=", "=1"] {
            assert!(matches!(Params::parse(&[bad]), Err(WorkError::Word(word)) if word == bad));
        }
    }

    #[test]
    fn figures_are_one_line_of_json() {
        let works = || [("back", back as Work)];
        let line = work(works(), "back", &["bytes=4096"]).unwrap();
        assert!(line.starts_with('{') && line.contains("huge_bytes") && !line.contains('\n'));
        assert!(matches!(work::<&str>(works(), "nonesuch", &[]), Err(WorkError::Unknown(_))));
    }
}
