//! The machine and the programs of the 1981 paper: what its experiments are repeated on.
//!
//! | to | see |
//! | --- | --- |
//! | have programs with the published knees | [`published`], made by [`fit`] |
//! | try an estimator on a string of references | [`trial`], [`table1`] |
//! | look for programs under which the published estimator behaves as published | [`family`] |
//! | run jobs on the published machine | [`sim`] |
//!
//! Everything is a pure function of its arguments and of a seed. Working sets and knees are defined in
//! `vellum-workset`.

mod estimation;
pub mod family;
pub mod fit;
mod least_squares;
pub mod published;
pub mod sim;
pub mod table1;
pub mod trial;

pub use estimation::Estimation;
