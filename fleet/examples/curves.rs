//! Generates working-set curves of a fictional fleet, to measure `vellum plan` (docs/fleet.md). The file
//! has a row for each container and hour, in the format of `vellum plan export`.
//!
//! `curves ROWS FILE [SEED]`: each container has 192 hours. Its working set grows with the logarithm of the
//! window's length, as if the access frequencies of its pages differed by orders of magnitude.

use std::fs::File;
use std::io::BufWriter;
use vellum_fleet::plan::{POINTS, Row, Writer};
use vellum_random::Rng;

const HOURS: u64 = 192;
const FROM_MS: i64 = 1_760_000_400_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    let (Some(Ok(rows)), Some(path)) = (args.get(1).map(|text| text.parse::<u64>()), args.get(2)) else {
        return Err("usage: curves ROWS FILE [SEED]".into());
    };
    let seed = args.get(3).map_or(Ok(1), |text| text.parse())?;
    let mut random = Rng::new(seed);
    let containers: Vec<[f64; 4]> = (0..rows.div_ceil(HOURS))
        .map(|_| {
            let bytes = (16.0 + random.unit() * 8.0).exp2() * 256.0;
            [
                bytes,
                0.05 + random.unit(),
                (random.unit() * 12.0).exp2(),
                random.unit() * random.unit() * 3600.0,
            ]
        })
        .collect();
    let mut writer = Writer::new(BufWriter::new(File::create(path)?))?;
    let mut left = rows;
    for hour in 0..HOURS {
        for (number, [bytes, spread, rate, cpu]) in containers.iter().enumerate() {
            if left == 0 {
                break;
            }
            left -= 1;
            let load = 0.8 + 0.4 * random.unit();
            let point = |at: usize| {
                let window = 0.1 * f64::from(1 << at);
                let part = (1.0 + spread * (window * 10.0).ln())
                    / (1.0 + spread * f64::from(1 << (POINTS - 1)).ln());
                [window, (bytes * load * part).round(), rate / (window * 10.0).powf(0.5 + spread)]
            };
            writer.push(Row {
                hour_ms: FROM_MS + hour as i64 * 3_600_000,
                node: format!("node{}:9189", number / 30),
                owner: format!("team-{}", number % 97),
                name: format!("team-{}/app-{number}/main", number % 97),
                cpu_seconds: cpu * load,
                resident_bytes: bytes * 1.3,
                curve: (0..POINTS).map(point).collect(),
            })?;
        }
    }
    writer.finish()?;
    Ok(())
}
