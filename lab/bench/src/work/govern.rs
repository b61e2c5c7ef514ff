//! A governor of one job that is never short of memory, to measure the cost of the governor itself.
//!
//! It has all parts of `vellum govern`. It reads the job's memory regularly, watches its working set and
//! serves sockets. Its guardians, processes that undo a killed governor's changes, run too. The governor
//! reclaims no memory and suspends no job: the cost of these actions must be weighed against their
//! benefit, and is not measured here.

use std::path::Path;
use std::time::{Duration, Instant};
use vellum_governor::{Config, Governor, Setting};
use vellum_kernel::Pid;

pub(super) struct Governed {
    pub(super) wall: Duration,
    pub(super) decisions: u64,
}

/// Governs the process until it ends.
pub(super) fn govern(pid: Pid) -> Result<Governed, String> {
    let folder = std::env::temp_dir();
    let sockets = format!("vellum-bench-{}", std::process::id());
    let table = format!("[governor]\nsockets = {sockets:?}\n[[job]]\nname = \"job\"\npid = {pid}\n");
    let config = Config::parse(&table, Path::new("bench.toml"), &folder).map_err(|why| why.to_string())?;
    let mut governor = Governor::new(config, Setting::default()).map_err(|why| why.to_string())?;
    let began = Instant::now();
    let (mut decisions, mut seen) = (0, -1.0);
    while let Some(wait) = governor.step().wait {
        let at = governor.snapshot().at_seconds;
        if at != seen {
            (decisions, seen) = (decisions + 1, at);
        }
        std::thread::sleep(wait);
    }
    Ok(Governed { wall: began.elapsed(), decisions })
}
