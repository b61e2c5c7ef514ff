//! A collected program larger than its memory: a client of the paper of 1992 (Cooper et al.) under Vellum's
//! generational plan, which sizes the heap itself.
//!
//! With `kernel=1` the kernel pages it: the worker makes a swap file and a memory control group (root),
//! which the program enters before it begins. Otherwise Vellum pages it, in as many bytes of frames and to
//! a store on the same file system, in no group. Both run the same executable, which is compiled before the
//! clock starts.

use super::{Failure, Params};
use crate::{EXPECT, Metrics, vellum};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;
use vellum_campaign::confine::{Group, SwapFile};
use vellum_papers::smith::{Build, Collector, Plan, Workshop};
use vellum_process::Interrupt;

/// The folder of the swap file and the store.
const FOLDER: &str = "/var/tmp";
/// Memory of a process besides its heap: its code and data, its tables, and those of the collector.
const BESIDES: u64 = 6 << 20;
/// Swap for each byte of memory.
const SWAP_TIMES: u64 = 12;
/// The longest time of a run, and the time between two checks of it.
const ALLOWED: Duration = Duration::from_secs(600);
const LOOK: Duration = Duration::from_millis(4);
const CLIENTS: [&str; 2] = ["compiler", "sort"];

/// Runs client `client` with `memory` MiB and `scale` percent of its work.
pub(super) fn run(params: &Params) -> Result<Metrics, Failure> {
    let memory = params.get("memory", 24);
    let client = CLIENTS[params.size("client", 0).min(CLIENTS.len() - 1)];
    // Declared first, so that it is dropped last: everything made below must be removed, also after a signal.
    let _caught = Interrupt::catch().map_err(|error| wrong(&error.to_string()))?;
    vellum::has_collector()?;
    let library = std::env::var_os(EXPECT).map(PathBuf::from).ok_or(Failure::Lacks("collector"))?;
    let mut workshop = Workshop::new(&library).map_err(|error| wrong(&error.to_string()))?;
    let words = [format!("memory={memory}"), format!("scale={}", params.get("scale", 100))];
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let launch = workshop.launch(client, Collector::Vellum(Plan::Appel), Build::Plain, &words);
    let mut launch = launch.map_err(|error| wrong(&error))?;
    let bytes = memory << 20;
    let mut confined = None;
    if params.get("kernel", 0) == 0 {
        launch.env.push(("VELLUM_FRAMES".into(), bytes.to_string().into()));
        launch.env.push(("VELLUM_STORE".into(), FOLDER.into()));
    } else {
        let swap = SwapFile::new(Path::new(FOLDER), bytes * SWAP_TIMES);
        let swap = swap.map_err(|error| wrong(&error.to_string()))?;
        let group = Group::new("vellum-collected", bytes + BESIDES);
        let group = group.map_err(|error| wrong(&error.to_string()))?;
        launch = launch.entering(&group);
        // The group is dropped before the swap.
        confined = Some((group, swap));
    }
    let mut watch = || {
        if let Some((group, _)) = &confined {
            group.relieve();
        }
        if Interrupt::arrived().is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let run = launch.run_watched(ALLOWED, LOOK, &mut watch).map_err(|ended| wrong(&ended.to_string()))?;
    let mut metrics = Metrics::new();
    for (name, from) in [
        ("wall_ns", "process_wall_ns"),
        ("cpu_ns", "process_cpu_ns"),
        ("collections", "collections"),
        ("checksum", "checksum"),
    ] {
        metrics.set(name, run.get(from).unwrap_or(f64::NAN));
    }
    if let Some((group, _)) = &confined {
        metrics.set("relieved", f64::from(group.relieved()));
    }
    Ok(metrics)
}

fn wrong(what: &str) -> Failure {
    Failure::Wrong { workload: "collected", what: what.to_owned() }
}
