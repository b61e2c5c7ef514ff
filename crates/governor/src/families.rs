//! The type [`Family`] of metric families (Prometheus's term for a named metric with its help and unit), and
//! the families that more than one crate writes.
//!
//! Code writes a metric's rows by its [`Family`], and names the metric in a query by the same value: no query
//! can name a metric that nobody writes.
//!
//! - The governor and `vellum agent` use the same name for the same value of a job; only the labels differ.
//! - A name never changes its meaning.
//! - An unknown value has no row.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric, MetricEncoder, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};
use std::fmt;

const PREFIX: &str = "vellum";
/// The label that has a job's name. Prometheus itself gives everything that it fetches one named `job`.
pub const NAME: &str = "name";
/// The label that has the age, in seconds.
pub const SECONDS: &str = "seconds";

/// The unit of a value, which is the ending of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// `_bytes`
    Bytes,
    /// `_seconds`
    Seconds,
    /// A part of 1, as Prometheus' users name it: `_ratio`.
    Ratio,
    /// A number of things, or a flag.
    Number,
}

/// A family of metrics.
#[derive(Debug, Clone, Copy)]
pub struct Family {
    name: &'static str,
    help: &'static str,
    quantity: Quantity,
    counts: bool,
}

impl Family {
    /// A value that rises and falls.
    pub const fn gauge(name: &'static str, quantity: Quantity, help: &'static str) -> Family {
        Family { name, help, quantity, counts: false }
    }

    /// A value that only rises; its name ends in `_total`.
    pub const fn counter(name: &'static str, quantity: Quantity, help: &'static str) -> Family {
        Family { name, help, quantity, counts: true }
    }

    /// Writes a row for each set of labels.
    pub fn rows<L: EncodeLabelSet>(
        &self,
        to: &mut DescriptorEncoder<'_>,
        rows: impl IntoIterator<Item = (L, f64)>,
    ) -> fmt::Result {
        let unit = self.unit();
        let mut family = to.encode_descriptor(self.name, self.help, unit.as_ref(), self.kind())?;
        for (labels, value) in rows {
            self.write(family.encode_family(&labels)?, value)?;
        }
        Ok(())
    }

    /// Writes the only row, without labels.
    pub fn one(&self, to: &mut DescriptorEncoder<'_>, value: f64) -> fmt::Result {
        let unit = self.unit();
        let family = to.encode_descriptor(self.name, self.help, unit.as_ref(), self.kind())?;
        self.write(family, value)
    }

    fn unit(&self) -> Option<Unit> {
        match self.quantity {
            Quantity::Bytes => Some(Unit::Bytes),
            Quantity::Seconds => Some(Unit::Seconds),
            Quantity::Ratio => Some(Unit::Other("ratio".to_owned())),
            Quantity::Number => None,
        }
    }

    fn kind(&self) -> MetricType {
        if self.counts { MetricType::Counter } else { MetricType::Gauge }
    }

    fn write(&self, to: MetricEncoder<'_>, value: f64) -> fmt::Result {
        if self.counts { ConstCounter::new(value).encode(to) } else { ConstGauge::new(value).encode(to) }
    }
}

/// The name of its series, as the writer of OpenMetrics makes it of prefix, name, unit and kind.
impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = self.unit();
        let unit = unit.as_ref().map(|unit| format!("_{}", unit.as_str())).unwrap_or_default();
        write!(f, "{PREFIX}_{}{unit}{}", self.name, if self.counts { "_total" } else { "" })
    }
}

use Quantity::{Bytes, Number, Ratio, Seconds};

/// Its memory.
pub const RESIDENT: Family = Family::gauge("job_resident", Bytes, "What the job holds");
/// The part of it that is in swap.
pub const SWAPPED: Family = Family::gauge("job_swapped", Bytes, "What it holds in swap");
/// z(T) at its knee.
pub const WORTH: Family = Family::gauge("job_worth", Bytes, "Its working set at its window");
/// The limit to give.
pub const ADVISED: Family =
    Family::gauge("job_advised", Bytes, "The memory limit that should cost at most 2 % of its time");
/// The slowdown with less memory.
pub const SLOWDOWN_TWO_THIRDS: Family = Family::gauge(
    "job_slowdown_two_thirds",
    Ratio,
    "The slowdown expected under two thirds of the advised limit, at least",
);
/// Ages, by [`SECONDS`].
pub const UNTOUCHED: Family =
    Family::gauge("job_untouched", Bytes, "What it holds and has not touched for this many seconds");
/// T at its knee.
pub const WINDOW: Family = Family::gauge("job_window", Seconds, "Its window, in user CPU time");
/// S·f at its knee.
pub const WAITING: Family = Family::gauge("job_waiting", Ratio, "What it waits for a unit of work there");
/// The cost of the watch.
pub const WATCH_COST: Family =
    Family::gauge("job_watch_cost", Ratio, "What watching costs it, of its user CPU time");
/// CPU time.
pub const CPU: Family = Family::counter("job_cpu", Seconds, "Its CPU time");
/// Living processes.
pub const PROCESSES: Family = Family::gauge("job_processes", Number, "Its living processes");

/// Writes the family with the version of this program.
pub fn build_info(to: &mut DescriptorEncoder<'_>) -> fmt::Result {
    to.encode_descriptor("build", "The version of vellum", None, MetricType::Info)?
        .encode_info(&[("version", env!("CARGO_PKG_VERSION"))])
}

/// All that `collector` has, in the OpenMetrics text format.
pub fn page(collector: impl Collector) -> String {
    let mut registry = Registry::with_prefix(PREFIX);
    registry.register_collector(Box::new(collector));
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = text::encode(&mut out, &registry);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct All([Family; 5]);

    impl Collector for All {
        fn encode(&self, mut to: DescriptorEncoder<'_>) -> fmt::Result {
            self.0.iter().try_for_each(|family| family.one(&mut to, 1.0))
        }
    }

    #[test]
    fn a_family_is_named_in_queries_as_it_is_written() {
        let all = [RESIDENT, WINDOW, WAITING, CPU, PROCESSES];
        let names = all.map(|family| family.to_string());
        assert_eq!(
            (names[2].as_str(), names[3].as_str()),
            ("vellum_job_waiting_ratio", "vellum_job_cpu_seconds_total")
        );
        let page = page(All(all));
        for name in names {
            assert!(page.lines().any(|line| line == format!("{name} 1.0")), "no {name} in\n{page}");
        }
    }
}
