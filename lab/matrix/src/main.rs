//! The program `matrix`, which runs Debian's programs with and without Vellum: see `docs/matrix.md`.

use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use vellum_matrix::{Error, Options, install, list, table};

/// Runs Debian's programs plain and on Vellum, and compares all their output.
///
/// Exit status: 0 if every program gives the same results in every mode, 1 if one does not, 2 if a row of the
/// list is wrong on this machine, 3 if the matrix itself fails. A row is wrong if it fails plain, or differs
/// between two plain runs.
#[derive(Debug, Parser)]
#[command(name = "matrix", max_term_width = 100)]
struct Args {
    /// Only the rows of the fast matrix.
    #[arg(long)]
    fast: bool,
    /// First install the missing Debian packages (root only).
    #[arg(long)]
    install: bool,
    /// Only this row; may be repeated.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Number of runs of each mode, instead of the rows' numbers (mostly one).
    #[arg(long, value_name = "N")]
    runs: Option<u32>,
    /// Number of rows run at the same time.
    #[arg(long, value_name = "N", default_value_t = std::thread::available_parallelism().map_or(1, Into::into))]
    jobs: usize,
    /// Folder for the output of runs that differ.
    #[arg(long, value_name = "DIR", default_value = "target/matrix")]
    out: PathBuf,
    /// Also write the table into this page, between its marks.
    #[arg(long, value_name = "PAGE")]
    write: Option<PathBuf>,
    /// Also write the results as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Only list the rows' names.
    #[arg(long)]
    list: bool,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            eprintln!("matrix: {error}");
            ExitCode::from(3)
        }
    }
}

fn run(args: &Args) -> Result<u8, Error> {
    let rows = list::rows()?;
    if let Some(name) = args.only.iter().find(|name| !rows.iter().any(|row| row.name == **name)) {
        eprintln!("matrix: no row {name}; --list prints them");
        return Ok(3);
    }
    if args.list {
        rows.iter().for_each(|row| println!("{}", row.name));
        return Ok(0);
    }
    if args.install {
        let failed = install::install(&rows)?;
        if !failed.is_empty() {
            eprintln!("not installed: {}", failed.join(" "));
        }
    }
    let options = Options {
        fast: args.fast,
        only: args.only.clone(),
        runs: args.runs,
        jobs: args.jobs,
        out: args.out.clone(),
    };
    let done = AtomicUsize::new(0);
    let results = vellum_matrix::run(&options, &|row, total| {
        eprintln!("[{:3}/{total}] {}", done.fetch_add(1, Relaxed) + 1, table::line(row));
    })?;
    print!("{}", table::markdown(&results));
    let write = |path: &PathBuf, text: String| {
        std::fs::write(path, text).map_err(|cause| Error::File { what: "writing", path: path.clone(), cause })
    };
    if let Some(path) = &args.json {
        write(path, format!("{}\n", serde_json::json!({ "schema": "vellum.matrix/1", "rows": results })))?;
    }
    if let Some(path) = &args.write {
        let page = std::fs::read_to_string(path).map_err(|cause| Error::File {
            what: "reading",
            path: path.clone(),
            cause,
        })?;
        match table::put_in(&page, &results) {
            Some(page) => write(path, page)?,
            None => eprintln!("matrix: {} has no marks for the table", path.display()),
        }
    }
    let count = table::Count::of(&results);
    if count.differ + count.faulty > 0 {
        eprintln!("the output of what differs is in {}", args.out.display());
    }
    Ok(match (count.differ, count.faulty) {
        (0, 0) => 0,
        (0, _) => 2,
        _ => 1,
    })
}
