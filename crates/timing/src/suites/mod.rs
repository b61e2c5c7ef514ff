//! The suites that come with Vellum, by name.

mod memory;

pub use memory::memory;

use crate::bench::Suite;

/// The names that [`named`] accepts.
pub const NAMES: [&str; 1] = ["memory"];

/// The suite of this name.
#[must_use]
pub fn named(name: &str) -> Option<Suite<'static>> {
    match name {
        "memory" => Some(memory()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_suite_of_that_name() {
        for name in NAMES {
            assert!(named(name).is_some_and(|suite| suite.name() == name && !suite.names().is_empty()));
        }
        assert!(named("no such suite").is_none());
    }
}
