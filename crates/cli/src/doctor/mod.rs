//! `vellum doctor`: the features that this kernel, container and privilege allow.
//!
//! ```text
//! libraries · memory · limits · watching · timings ─▶ Report { Row … Row } ─▶ shown · JSON
//! ```
//!
//! Each row uses the call or file by which the rest of Vellum detects the feature; a separate probe could
//! disagree with it. Nothing on the machine is changed, except for a control group that exists for a moment.

mod libraries;
mod limits;
mod memory;
mod row;
mod shown;
mod timings;
mod watching;

use crate::failure::Failure;
use clap::ValueHint;
use row::{Report, SCHEMA, State};
use std::path::PathBuf;
use vellum_report::{Look, Output, Style, stdout};

/// The exit status when a feature that --check names does not work.
const NOT_WORKING: u8 = 1;

/// Show what this kernel, container and privilege allow, what takes the place of the rest, and how to change
/// it.
///
/// Each feature works, falls back to something else, is missing, or is not shown by this machine; with the
/// errno or file that says so, and the cure. Exit status: 0, whatever was found; with --check 1 if a feature
/// that it names does not work.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  vellum doctor\n  vellum doctor --check store\n  \
    vellum doctor --json | jq '.features[] | select(.state != \"works\") | .cure'")]
pub(crate) struct Doctor {
    /// Write JSON instead (schema vellum.doctor/1), to standard output or to FILE.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-", value_hint = ValueHint::FilePath)]
    json: Option<PathBuf>,

    /// Examine only this feature, by its name in the report, and exit with 1 if it does not work. May be
    /// repeated.
    #[arg(long, value_name = "NAME")]
    check: Vec<String>,
}

/// There is no such feature.
#[derive(Debug, thiserror::Error)]
#[error("no feature is called {name:?}; there are {}", .known.join(", "))]
struct Unknown {
    name: String,
    known: Vec<&'static str>,
}

/// Examines the machine, and says what was found.
pub(crate) fn doctor(args: &Doctor) -> Result<u8, Failure> {
    let json = args.json.as_deref().map(Output::prepare).transpose()?;
    let examined = examine(&args.check)?;
    let report = shown::report(&examined);
    match json {
        Some(output) => output.write(report.json()?)?,
        None => {
            let look = Look::brief(Style::of_stdout());
            stdout::write_all(report.text(look).as_bytes())?;
        }
    }
    let all_work = examined.count(State::Works) == examined.features.len();
    Ok(if args.check.is_empty() || all_work { 0 } else { NOT_WORKING })
}

/// Everything, or only what is asked for.
fn examine(asked: &[String]) -> Result<Report, Failure> {
    let machine = vellum_timing::machine::read();
    let mut features = libraries::rows();
    features.extend(memory::rows(&machine));
    features.extend(limits::rows());
    features.extend(watching::rows());
    features.extend(timings::profiling());
    features.extend(timings::benchmarks(&machine));
    if let Some(name) = asked.iter().find(|name| !features.iter().any(|row| row.name == **name)) {
        let known = features.iter().map(|row| row.name).collect();
        return Err(Failure::of(Unknown { name: name.clone(), known }));
    }
    features.retain(|row| asked.is_empty() || asked.iter().any(|name| name == row.name));
    Ok(Report {
        schema: SCHEMA,
        vellum_version: env!("CARGO_PKG_VERSION"),
        kernel: machine.kernel,
        processors: machine.processors,
        memory_bytes: machine.memory_bytes,
        hypervisor: machine.hypervisor,
        features,
    })
}
