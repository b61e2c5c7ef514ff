//! Table rows and JSON for an explained series of times: causes of outliers, and periodic disturbances.
//!
//! `explain.rs` finds the causes and the disturbances; `vellum bench` and `vellum obs explain` print them.

use serde::Serialize;
use vellum_measure::{Attribution, CauseTotal, Spectrum, Unit};

#[derive(Debug, Serialize)]
pub(crate) struct Beats {
    /// The lowest and highest detectable frequency, hertz.
    pub(crate) searched_hz: (f64, f64),
    pub(crate) found: Vec<Beat>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Beat {
    pub(crate) hz: f64,
    pub(crate) hz_error: f64,
    /// The source of this frequency, if there is a match.
    pub(crate) source: Option<String>,
    /// The probability that noise alone shows such a frequency.
    pub(crate) false_alarm: f64,
    /// The typical time lost by an observation that it hit, nanoseconds.
    pub(crate) typical_ns: f64,
    /// Its share of the time lost to all disturbances.
    pub(crate) share: f64,
}

/// The causes to which outliers lost time.
#[derive(Debug, Serialize)]
pub(crate) struct Losses {
    /// The time lost by all outliers, as a share of all time.
    pub(crate) of_all: f64,
    pub(crate) lost_ns: f64,
    pub(crate) outliers: usize,
    /// The largest causes first. `lost` is in picoseconds.
    pub(crate) causes: Vec<CauseTotal>,
}

/// The column heads of [`Beats::rows`].
pub(crate) const BEAT_HEADS: [&str; 5] = ["whose", "every", "Hz", "costs", "of what was lost"];
/// The column heads of [`Losses::rows`].
pub(crate) const LOSS_HEADS: [&str; 4] = ["cause", "outliers", "lost", "of what was lost"];

impl Beats {
    pub(crate) fn of(spectrum: &Spectrum) -> Self {
        let found = spectrum.periods.iter().map(|period| Beat {
            hz: period.frequency,
            hz_error: period.frequency_error,
            source: period.whose(),
            false_alarm: period.false_alarm,
            typical_ns: period.typical,
            share: period.share,
        });
        Beats { searched_hz: spectrum.searched, found: found.collect() }
    }

    /// One row per periodic disturbance; with several subjects, `subject` precedes the source.
    pub(crate) fn rows(&self, subject: Option<&str>) -> impl Iterator<Item = Vec<String>> {
        self.found.iter().map(move |beat| {
            vec![
                told(subject, beat.source.as_deref().unwrap_or("unknown")),
                Unit::Seconds.scaled(1.0 / beat.hz),
                format!("{:.2} ± {:.2}", beat.hz, beat.hz_error),
                Unit::Nanoseconds.scaled(beat.typical_ns),
                share(beat.share),
            ]
        })
    }
}

/// The range of frequencies in which no disturbance was found, in words.
pub(crate) fn sought((slowest, fastest): (f64, f64)) -> String {
    if slowest < fastest {
        format!("none was found between {slowest:.2} and {fastest:.0} Hz")
    } else {
        "too few observations to look for any".to_owned()
    }
}

impl Losses {
    pub(crate) fn of(attribution: &Attribution) -> Self {
        Losses {
            of_all: attribution.lost_share(),
            lost_ns: attribution.lost.ns(),
            outliers: attribution.outliers.len(),
            causes: attribution.causes.clone(),
        }
    }

    /// One row per cause; with several subjects, `subject` precedes the cause.
    pub(crate) fn rows(&self, subject: Option<&str>) -> impl Iterator<Item = Vec<String>> {
        self.causes.iter().map(move |total| {
            vec![
                told(subject, &total.cause.to_string()),
                Unit::Count.scaled(total.outliers as f64),
                Unit::Nanoseconds.scaled(total.lost.ns()),
                share(total.share),
            ]
        })
    }
}

fn told(subject: Option<&str>, what: &str) -> String {
    subject.map_or_else(|| what.to_owned(), |subject| format!("{subject}: {what}"))
}

/// A share as text: "12.3 %".
pub(crate) fn share(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        p if p == 0.0 || p >= 99.95 => format!("{p:.0} %"),
        p if p < 0.995 => format!("{p:.2} %"),
        p => format!("{p:.1} %"),
    }
}
