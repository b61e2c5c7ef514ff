//! Tests of the experiments, the models behind them, and their program, in one executable.

mod accuracy;
mod bates;
mod command;
mod cooper;
mod douglas;
mod nishigaki;
mod simulator;
mod smith;
mod sound;
mod table1;

use std::path::PathBuf;

/// Vellum's library where cargo puts it: beside the directory of test executables. It is another crate's
/// product and may be missing.
fn library() -> PathBuf {
    let own = std::env::current_exe().expect("this executable has a path");
    own.ancestors().nth(2).map(|folder| folder.join("libvellum.so")).expect("deps lies in a directory")
}
