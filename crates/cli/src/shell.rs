//! Prints the version, shell completions and manual pages, all made from the definition of the command line.

use crate::args::Args;
use crate::failure::Failure;
use clap::CommandFactory;
use std::path::Path;
use vellum_report::stdout;

/// Prints the same as `--version`.
pub(crate) fn version() -> Result<u8, Failure> {
    stdout::write_all(Args::command().render_version().as_bytes())?;
    Ok(0)
}

/// Writes `shell`'s completions to standard output.
pub(crate) fn completions(shell: clap_complete::Shell) -> Result<u8, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "vellum", &mut text);
    stdout::write_all(&text)?;
    Ok(0)
}

/// Writes every manual page into `directory`, or the main one to standard output.
pub(crate) fn man(directory: Option<&Path>) -> Result<u8, Failure> {
    let failed = |error| Failure::output(directory.unwrap_or(Path::new("the manual page")), error);
    match directory {
        None => {
            let mut text = Vec::new();
            clap_mangen::Man::new(Args::command()).render(&mut text).map_err(failed)?;
            stdout::write_all(&text)?;
            Ok(0)
        }
        Some(directory) => {
            std::fs::create_dir_all(directory).map_err(failed)?;
            clap_mangen::generate_to(Args::command(), directory).map_err(failed)?;
            Ok(0)
        }
    }
}
