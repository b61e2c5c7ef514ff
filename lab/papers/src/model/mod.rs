//! The machine and the programs of Nishigaki's paper of 1981, simulated to repeat the paper's experiments.
//!
//! | purpose | see |
//! | --- | --- |
//! | programs with the published knees | [`published`] |
//! | a run of an estimator on a string of references | [`trial`], [`table1`] |
//! | the exact references and working sets of a synthetic program | [`Slrum`], [`Turner`] |
//! | jobs on the published machine | [`sim`] |
//!
//! Everything is a pure function of its arguments and of a seed. Working sets and knees are defined in
//! `vellum-workset`.

pub mod estimators;
pub mod published;
pub mod sim;
mod slrum;
pub mod table1;
pub mod trial;
mod turner;

pub use slrum::{Run, Slrum, SlrumRuns};
pub use trial::Estimation;
pub use turner::Turner;
