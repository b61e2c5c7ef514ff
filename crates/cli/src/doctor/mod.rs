//! `vellum doctor`: lists the features that this kernel, container and privilege allow.
//!
//! ```text
//! libraries · memory · limits · watching · timings ─▶ Report { Row … Row } ─▶ shown (text) · JSON
//! ```
//!
//! The modules on the left detect each feature by the call or file that the rest of Vellum uses; a separate
//! test could disagree. The machine is not changed, except for a cgroup that exists for a moment.

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

/// The exit status if a feature named by --check does not work.
const NOT_WORKING: u8 = 1;

/// Show the features that this kernel, container and privilege allow, the fallbacks, and the remedies.
///
/// Each feature works, falls back to another, is missing, or cannot be determined on this machine. The report
/// has the errno or file for that, and the remedy. Exit status: 0, whatever was found; with --check, 1 if a
/// named feature does not work.
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

/// Examines the machine, and reports the findings.
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

/// Examines all features, or only those named by `asked`.
fn examine(asked: &[String]) -> Result<Report, Failure> {
    let machine = vellum_timing::machine::read();
    let mut features = libraries::rows();
    features.extend(memory::rows(&machine));
    features.extend(limits::rows());
    features.extend(watching::rows());
    features.extend(timings::profiling());
    features.extend(timings::benchmarks(&machine));
    if let Some(name) = asked.iter().find(|name| !features.iter().any(|row| row.name == **name)) {
        let known: Vec<_> = features.iter().map(|row| row.name).collect();
        let known = known.join(", ");
        return Err(Failure::because(format!("no feature is called {name:?}; there are {known}")));
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
