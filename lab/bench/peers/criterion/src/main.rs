//! The two kernels under criterion: first A, then B, each warmed up and measured for the given times.
//! Criterion writes its estimates into FOLDER.
//!
//! usage: criterion cpu|alloc SIZE_A SIZE_B FOLDER WARM_UP_MS MEASURE_MS

use criterion::Criterion;
use std::hint::black_box;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

unsafe extern "C" {
    fn vellum_timing_cpu(turns: u64) -> u64;
    fn vellum_timing_alloc(pairs: u64) -> u64;
}

fn run(words: &[String]) -> Option<()> {
    let [kernel, a, b, folder, warm_up, measure] = words else { return None };
    let kernel = match kernel.as_str() {
        "cpu" => vellum_timing_cpu,
        "alloc" => vellum_timing_alloc,
        _ => return None,
    };
    let millis = |word: &String| word.parse().ok().map(Duration::from_millis);
    let mut criterion = Criterion::default()
        .without_plots()
        .output_directory(Path::new(folder))
        .warm_up_time(millis(warm_up)?)
        .measurement_time(millis(measure)?);
    for (name, size) in [("A", a), ("B", b)] {
        let size: u64 = size.parse().ok()?;
        // SAFETY: the kernels take any number and touch only memory of their own.
        criterion.bench_function(name, |bencher| bencher.iter(|| unsafe { kernel(black_box(size)) }));
    }
    criterion.final_summary();
    Some(())
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if run(&words).is_some() {
        return ExitCode::SUCCESS;
    }
    eprintln!("usage: criterion cpu|alloc SIZE_A SIZE_B FOLDER WARM_UP_MS MEASURE_MS");
    ExitCode::from(2)
}
