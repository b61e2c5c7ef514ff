//! The table of a profile: samples and time by symbol.

use super::names::{Name, Names};
use super::{Sampler, Taken};
use serde::Serialize;
use std::collections::HashMap;
use std::fmt;

/// The time of a region by symbol.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Profile {
    /// The source of the samples.
    #[serde(serialize_with = "as_text")]
    pub sampler: Sampler,
    /// CPU time between two samples, nanoseconds.
    pub period_ns: f64,
    /// The number of samples.
    pub samples: u64,
    /// The number of samples in the kernel.
    pub kernel_samples: u64,
    /// The number of samples without space.
    pub lost: u64,
    /// True if the kernel was sampled. If not, its time is in no row.
    pub sees_kernel: bool,
    /// The region's CPU time by the clock, nanoseconds, to check the samples against.
    pub cpu_ns: u64,
    /// Symbols, the most frequent first.
    pub rows: Vec<Row>,
}

/// A symbol's row.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Its name; a module with an offset if it has none.
    pub symbol: String,
    /// The file it is from, or the kernel.
    pub module: String,
    /// True if it is the kernel's.
    pub in_kernel: bool,
    /// The number of samples in it.
    pub samples: u64,
    /// The time of these samples, in milliseconds.
    pub ms: f64,
    /// Its share of all samples, in percent.
    pub percent: f64,
}

fn as_text<S: serde::Serializer>(value: &Sampler, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// Looks up the names of samples and counts them.
pub(super) fn profile(taken: Taken, sampler: Sampler, hz: u32, sees_kernel: bool, cpu_ns: u64) -> Profile {
    let mut at: HashMap<(u64, bool), u64> = HashMap::new();
    for sample in &taken.samples {
        *at.entry((sample.address, sample.in_kernel)).or_default() += sample.weight;
    }
    let mut names = Names::of_this_process();
    let mut named: HashMap<(Name, bool), u64> = HashMap::new();
    for ((address, in_kernel), count) in at {
        let name = if in_kernel { names.of_kernel(address) } else { names.of_program(address) };
        *named.entry((name, in_kernel)).or_default() += count;
    }
    let period_ns = 1e9 / f64::from(hz);
    let samples: u64 = named.values().sum();
    let row = |((name, in_kernel), count): ((Name, bool), u64)| Row {
        symbol: name.symbol,
        module: name.module,
        in_kernel,
        samples: count,
        ms: count as f64 * period_ns / 1e6,
        percent: 100.0 * count as f64 / samples as f64,
    };
    let mut rows: Vec<Row> = named.into_iter().map(row).collect();
    rows.sort_by(|a, b| b.samples.cmp(&a.samples).then_with(|| a.symbol.cmp(&b.symbol)));
    let kernel_samples = rows.iter().filter(|row| row.in_kernel).map(|row| row.samples).sum();
    Profile { sampler, period_ns, samples, kernel_samples, lost: taken.lost, sees_kernel, cpu_ns, rows }
}

/// The source's table: totals in milliseconds, then milliseconds, percent and symbol.
impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |samples: u64| (samples as f64 * self.period_ns / 1e6).round();
        let (total, kernel) = (ms(self.samples), ms(self.kernel_samples));
        let outside = ms(self.samples - self.kernel_samples);
        write!(f, "total: {total}")?;
        if self.sees_kernel {
            write!(f, " in kernel text: {kernel}")?;
        } else {
            write!(f, " in kernel text: not permitted")?;
        }
        writeln!(f, " outside kernel text: {outside}")?;
        if self.lost > 0 {
            writeln!(f, "({} samples found no room and are in no row)", self.lost)?;
        }
        writeln!(f, "{:>8} {:>6}  sym", "ms", "%")?;
        for row in &self.rows {
            let place = if row.in_kernel { "  [k]" } else { "" };
            writeln!(f, "{:>8.1} {:>6.1}  {}{place}", row.ms, row.percent, row.symbol)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Sample;
    use super::*;

    fn taken(samples: &[(u64, bool, u64)], lost: u64) -> Taken {
        let sample = |&(address, in_kernel, weight): &(u64, bool, u64)| Sample { address, in_kernel, weight };
        Taken { samples: samples.iter().map(sample).collect(), lost }
    }

    #[test]
    fn samples_add_up() {
        let taken = taken(&[(1, false, 1), (1, false, 2), (2, false, 1)], 5);
        let profile = profile(taken, Sampler::Signal, 1000, false, 9);
        assert_eq!((profile.samples, profile.kernel_samples, profile.lost), (4, 0, 5));
        let rows: Vec<_> = profile.rows.iter().map(|row| (row.symbol.as_str(), row.samples)).collect();
        assert_eq!(rows, [("0x1", 3), ("0x2", 1)]);
        assert!((profile.rows[0].ms - 3.0).abs() < 1e-12 && (profile.rows[0].percent - 75.0).abs() < 1e-12);
    }

    #[test]
    fn the_table_prints_as_in_the_source() {
        let profile = profile(taken(&[(1, false, 130)], 2), Sampler::Event, 1000, true, 0);
        let text = profile.to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "total: 130 in kernel text: 0 outside kernel text: 130");
        assert!(lines[1].contains("2 samples"));
        assert_eq!(lines[2], "      ms      %  sym");
        assert_eq!(lines[3], "   130.0  100.0  0x1");
    }

    #[test]
    fn nothing_sampled_is_an_empty_table() {
        let profile = profile(taken(&[], 0), Sampler::Signal, 1000, false, 0);
        assert!(profile.rows.is_empty() && profile.to_string().contains("not permitted"));
        let json = serde_json::to_value(&profile).unwrap();
        assert_eq!(json["sampler"], "SIGPROF");
    }
}
