//! A worker's parameters: words of the form `name=value`.

use std::collections::BTreeMap;

/// A worker's parameters.
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
    OtherMalloc(#[from] vellum_campaign::OtherMalloc),
    /// A request for memory failed.
    #[error(
        "{call} of {bytes} bytes failed: this machine or a limit has too little memory for the experiment"
    )]
    Memory { call: &'static str, bytes: usize },
    /// A function of `vellum.h` is not in this process.
    #[error("{0} is not there: only Vellum's library brings it")]
    Lacks(&'static str),
    /// Memory does not have the contents that were written.
    #[error("{what} holds {found:#x} instead of {expected:#x}: memory was damaged")]
    Damaged { what: String, found: u64, expected: u64 },
}

impl Params {
    /// Parses words.
    ///
    /// # Errors
    /// [`WorkError::Word`] for a word of another form.
    pub fn parse<S: AsRef<str>>(words: &[S]) -> Result<Self, WorkError> {
        let pair = |word: &S| {
            let (name, value) = word.as_ref().split_once('=')?;
            Some((name.to_owned(), value.to_owned()))
        };
        let pairs =
            words.iter().map(|word| pair(word).ok_or_else(|| WorkError::Word(word.as_ref().to_owned())));
        pairs.collect::<Result<_, _>>().map(Self)
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

    /// The error for this parameter's value.
    #[must_use]
    pub fn refused(&self, name: &'static str) -> WorkError {
        WorkError::Value { name, value: self.word(name).to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_parameters_or_errors() {
        let params = Params::parse(&["bytes=4096", "method=paged"]).unwrap();
        assert_eq!(params.number("bytes").unwrap(), 4096);
        assert_eq!(params.word("method"), "paged");
        assert!(matches!(params.number("method"), Err(WorkError::Value { name: "method", .. })));
        assert!(matches!(params.number("absent"), Err(WorkError::Value { .. })));
        assert!(matches!(Params::parse(&["alone"]), Err(WorkError::Word(_))));
    }
}
